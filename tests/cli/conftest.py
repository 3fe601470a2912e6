"""Running the command line, in this process and as a process of its own, each test in a home of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from mycelium_cli.main import run
from mycelium_sdk.wallet import Wallet
from tests.canaries import PASSPHRASE
from tests.canaries.watch import NAME, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .terminal import Terminal

__all__ = ["PASSPHRASE", "TIMEOUT", "Cli", "Outcome", "Process"]

TIMEOUT = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


class Cli(Protocol):
    """Runs a command line and gives its outcome."""

    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Outcome: ...


class Process(Protocol):
    """Starts the command line as a process."""

    def __call__(
        self, *arguments: str | bytes, env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]: ...


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a home folder of the test's own, and no variable of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("MYCELIUM_"):
            monkeypatch.delenv(name)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("MYCELIUM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MYCELIUM_DECRYPT_KEY", PASSPHRASE)
    return tmp_path / "home"


@pytest.fixture(scope="session")
def wallet_source(tmp_path_factory: pytest.TempPathFactory) -> Wallet:
    """One wallet for all tests, since making one takes 0.2 s on purpose."""
    return Wallet.create(tmp_path_factory.mktemp("wallet") / "wallet.json", PASSPHRASE)


@pytest.fixture
def wallet(wallet_source: Wallet, own_home: Path) -> Wallet:
    """That wallet, where the test's commands look for theirs."""
    folder = Path(".mycelium")
    folder.mkdir(mode=0o700)
    return Wallet.load(shutil.copy2(wallet_source.path, folder.absolute() / "wallet.json"))


@pytest.fixture
def watch(request: pytest.FixtureRequest) -> Watch:
    """The watch over secrets; no text of a memory belongs on stderr."""
    found = request.config.pluginmanager.get_plugin(NAME)
    assert isinstance(found, Watch)
    return found


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, watch: Watch) -> Cli:
    """The command line in this process."""

    def invoke(*arguments: str, stdin: bytes | None = None) -> Outcome:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin or b"")))
        code = run(arguments)
        out, err = capsys.readouterr()
        watch.look("stderr of the command line", err)
        return Outcome(code, out, err)

    return invoke


@pytest.fixture
def process() -> Process:
    """The command line as a process without a terminal, its streams piped unless told otherwise."""

    def start(
        *arguments: str | bytes, env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        settings = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            **options,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "mycelium_cli", *arguments], env={**os.environ, **(env or {})}, **settings
        )

    return start


@pytest.fixture
def ended(process: Process, watch: Watch) -> Any:
    """The same, waited for: an `Outcome`, whose text must be UTF-8."""

    def finish(*arguments: str | bytes, stdin: bytes | None = None, **options: Any) -> Outcome:
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        with process(*arguments, **options) as started:
            out, err = started.communicate(stdin, timeout=TIMEOUT)
        watch.look("stderr of the command line", err or b"")
        return Outcome(started.returncode, (out or b"").decode("utf-8"), (err or b"").decode("utf-8"))

    return finish


@pytest.fixture
def at_terminal() -> Iterator[Callable[..., Terminal]]:
    """Starts the command line at a terminal of its own."""
    from .terminal import Terminal

    with contextlib.ExitStack() as stack:

        def start(*arguments: str, piped: str = "") -> Terminal:
            return stack.enter_context(contextlib.closing(Terminal(*arguments, piped=piped)))

        yield start
