"""Debian's Chromium, driven by Playwright, which downloads nothing.

As root it is run as another account: Chromium refuses to run as root in its sandbox, and a test without the
sandbox would be one of another browser.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserContext

__all__ = ["PLAIN_HOST", "Chromium", "chromium"]

PLAIN_HOST = "explorer.test"
"""A name of this machine that browsers do not take for it: what comes from there by http is not secure."""

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ACCOUNT = "nobody"
_SIZE = (1200, 900)


class Chromium:
    """A browser that runs: `context` opens pages, `folder` holds files that it may read."""

    def __init__(self, context: BrowserContext, folder: Path) -> None:
        self.context = context
        self.folder = folder

    def file(self, name: str, content: bytes | None = None, *, size: int = 0) -> Path:
        """A file that this browser may read and nobody else; `size` for one of zeros that takes no room."""
        path = self.folder / name
        path.touch(0o600)
        if content is None:
            os.truncate(path, size)
        else:
            path.write_bytes(content)
        _give(path)
        return path


@contextmanager
def chromium() -> Iterator[Chromium]:
    """The browser, with a profile of its own that is gone afterwards."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("Playwright for Python is missing: run `make dev`")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.fail("Chromium is missing: apt-get install chromium, or put a `chromium` into PATH")
    with tempfile.TemporaryDirectory(prefix="mycelium-chromium-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        files, profile = folder / "files", folder / "profile"
        for one in (files, profile):
            one.mkdir(0o700)
            _give(one)
        folder.chmod(0o711)
        with sync_playwright() as playwright:
            context = playwright.chromium.launch_persistent_context(
                profile,
                executable_path=_starter(folder, found, profile),
                chromium_sandbox=True,
                viewport={"width": _SIZE[0], "height": _SIZE[1]},
                args=[f"--host-resolver-rules=MAP {PLAIN_HOST} 127.0.0.1", "--disable-dev-shm-usage"],
            )
            try:
                yield Chromium(context, files)
            finally:
                context.close()


def _starter(folder: Path, found: str, profile: Path) -> str:
    """What to run: the browser itself, or a script that runs it as the other account."""
    if os.geteuid() != 0:
        return found
    account = pwd.getpwnam(_ACCOUNT)
    script = folder / "chromium"
    script.write_text(
        f"#!/bin/sh\nHOME={shlex.quote(str(profile))} exec setpriv --reuid={account.pw_uid} "
        f'--regid={account.pw_gid} --clear-groups {shlex.quote(found)} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        account = pwd.getpwnam(_ACCOUNT)
        os.chown(path, account.pw_uid, account.pw_gid)
