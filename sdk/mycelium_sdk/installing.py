"""How to install what is missing: the command that fits where this package came from."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

__all__ = ["install_command"]

_PACKAGE = "mycelium-memory"
_UNKNOWN = "/path/to/mycelium"


def install_command(extra: str) -> str:
    """The `pip install` command that adds an extra, for use in a hint.

    It names the clone that this package was installed from, as the installer recorded it (PEP 610: the file
    `direct_url.json`), since the packages are on no index; where that is not known, `/path/to/mycelium`
    stands for it. `local` is a package of its own in the clone's folder `localnet`.
    """
    clone, editable = _source()
    target = f"{clone}/localnet" if extra == "local" else f"{clone}[{extra}]"
    return f"pip install {'--editable ' if editable else ''}{shlex.quote(target)}"


def _source() -> tuple[str, bool]:
    """The clone's folder, and whether changes in it are to take effect at once."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        recorded = json.loads(distribution(_PACKAGE).read_text("direct_url.json") or "{}")
        editable = bool(recorded.get("dir_info", {}).get("editable"))
        folder = Path(unquote(urlsplit(recorded.get("url", "")).path))
        if (folder / "pyproject.toml").is_file() and folder.is_absolute():
            return str(folder), editable
    except (PackageNotFoundError, ValueError, AttributeError):  # unknown, or no record of an installer
        pass
    return _UNKNOWN, False
