"""Watches a whole run of the tests: no secret may come out where it does not belong.

Looked at are, while tests run,
* every record of every logger, of any level,
* every error of the project's trees as it is made, and every exception that a test catches or ends with, or
  that ends a command, with all that a traceback would show of its causes,
* the arguments of every process that is started,
* what the command line writes on stderr (`tests/cli/conftest.py` hands it in);
and, at the end of the run, below the tests' temporary folders,
* files that others than their owner may read,
* core files.

No file is exempt: published blobs are as private as the memory they are made of. What a user types as an
argument of the command line is on the argument list by the user's own hand, so tests hand texts of canaries
to processes on stdin.

A leak fails the test that it happened in; what is found at the end, or in another process of pytest-xdist,
fails the run. Secrets themselves are never shown.
"""

from __future__ import annotations

import functools
import logging
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_cli import failures
from mycelium_localnet.errors import LocalnetError
from mycelium_sdk import wallet as wallets
from mycelium_sdk.errors import MyceliumError
from mycelium_sdk.records import Record
from tests.canaries.sought import Sought

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

__all__ = ["NAME", "Watch", "begin", "watched_folders"]

NAME = "canaries"
"""The plugin's name."""

_STARTING = {"subprocess.Popen": 1, "os.exec": 1, "os.posix_spawn": 1, "os.spawn": 2, "os.system": 0}
"""Audit events of starting a program, and which of their arguments holds the program's."""

_OF_TESTS = (AssertionError, pytest.fail.Exception, pytest.skip.Exception)
"""What tests say themselves, where pytest shows the values that they compare."""

_CORE_FILE = 4  # e_type of an ELF file: ET_CORE


class Watch:
    """A pytest plugin."""

    def __init__(self) -> None:
        self.sought = Sought()
        self._leaks: list[str] = []
        self._of_run: list[str] = []
        self._folders: set[Path] = set()

    # -- looking

    def look(self, where: str, data: str | bytes) -> None:
        """Notice a secret in what came out at `where`."""
        for kind in sorted(self.sought.kinds(data)):
            self._leaks.append(f"a {kind} came out in {where}")

    def look_at_exception(self, where: str, error: BaseException) -> None:
        """The same for an exception and everything that its traceback would show before it."""
        for each in _shown_with(error):
            if not isinstance(each, _OF_TESTS):
                notes = "\n".join(getattr(each, "__notes__", ()))
                hint = getattr(each, "hint", None) or ""
                self.look(f"{where}, {type(each).__name__}", f"{each}\n{each!r}\n{notes}\n{hint}")

    def add_folder(self, folder: Path) -> None:
        """Look through what is below this folder at the end."""
        self._folders.add(folder)

    def look_through_folders(self) -> list[str]:
        """The leaks in files."""
        leaks = []
        for folder in sorted(self._folders):
            for path, status in _files_below(folder):
                if _is_core(path):
                    leaks.append(f"a core file was left: {path}")
                elif status.st_mode & 0o044:
                    leaks += [
                        f"a {kind} is in {path}, which others may read"
                        for kind in sorted(self.sought.kinds_in_file(path))
                    ]
        return leaks

    # -- the places that are watched

    def install(self) -> None:
        """Begin to watch this process, for as long as it lives."""
        self._watch_logging()
        sys.addaudithook(self._audit)
        for kind in (MyceliumError, LocalnetError):
            _follow(kind, "__init__", lambda error, *_, **__: self.look_at_exception("an error", error))
        _follow(wallets.Secret, "__init__", lambda secret, *_, **__: self.sought.note_seed(secret.seed))
        _follow(pytest.RaisesExc, "__exit__", self._caught)
        _before(failures, "report", lambda error: self.look_at_exception("an error of a command", error))
        _before(wallets, "_passphrase_bytes", self.sought.note_passphrase)
        _before(Record, "from_input", self.sought.note_text)

    def _watch_logging(self) -> None:
        make = logging.getLogRecordFactory()

        def watched(*arguments: Any, **options: Any) -> logging.LogRecord:
            record = make(*arguments, **options)
            self.look(f"a log record of {record.name}", f"{record.msg!r} {record.args!r}\n{_message(record)}")
            if record.exc_info and record.exc_info[1] is not None:
                self.look_at_exception(f"a log record of {record.name}", record.exc_info[1])
            return record

        logging.setLogRecordFactory(watched)
        logging.getLogger().setLevel(logging.DEBUG)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        place = _STARTING.get(event)
        if place is None:
            return
        given = arguments[place]
        for word in [given] if isinstance(given, (str, bytes, os.PathLike)) else list(given):
            self.look("the arguments of a process", os.fsencode(word))

    def _caught(self, raises: Any, *_: object) -> None:
        caught = getattr(raises, "excinfo", None)
        if caught is not None and getattr(caught, "_excinfo", None):
            self.look_at_exception("an exception that a test caught", caught.value)

    # -- pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Each test has texts of its own."""
        self.sought.forget_texts()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Look at what a test ended with."""
        if call.excinfo is not None:
            self.look_at_exception("the exception that a test ended with", call.excinfo.value)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Fail the test that leaked."""
        result = yield
        leaks, self._leaks = self._leaks, []
        if leaks:
            pytest.fail("\n".join(dict.fromkeys(leaks)), pytrace=False)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Look through the files, and fail the run, or have the process that began this one do it."""
        leaks = [*dict.fromkeys(self._leaks), *self.look_through_folders()]
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[NAME] = leaks
            return
        self._of_run += leaks
        if self._of_run:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what another process found at its end."""
        self._of_run += getattr(node, "workeroutput", {}).get(NAME, [])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why the run failed."""
        if self._of_run:
            terminalreporter.section("secrets came out", red=True)
            for leak in self._of_run:
                terminalreporter.write_line(leak)


def begin(config: pytest.Config) -> Watch:
    """Watch this process: for `pytest_configure` of a `conftest.py`, which imports `watched_folders` too."""
    watch = Watch()
    watch.install()
    config.pluginmanager.register(watch, NAME)
    return watch


@pytest.fixture(scope="session", autouse=True)
def watched_folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests' temporary folders are looked through at the end."""
    watch = request.config.pluginmanager.get_plugin(NAME)
    assert isinstance(watch, Watch)
    watch.add_folder(tmp_path_factory.getbasetemp())


def _follow(owner: type, name: str, then: Callable[..., None]) -> None:
    """Call `then` with the arguments of a method, after it."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def watched(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        then(*arguments, **options)
        return result

    setattr(owner, name, watched)


def _before(owner: Any, name: str, note: Callable[[Any], None]) -> None:
    """Call `note` with the first argument of a function or class method, before it."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def watched(first: Any, *arguments: Any, **options: Any) -> Any:
        note(first)
        return original(first, *arguments, **options)

    setattr(owner, name, staticmethod(watched) if isinstance(owner, type) else watched)


def _shown_with(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that its traceback shows before it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting.append(each.__cause__)
        if not each.__suppress_context__:
            waiting.append(each.__context__)
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # arguments that do not fit; logging says so itself
        return ""


def _files_below(folder: Path) -> Iterable[tuple[Path, os.stat_result]]:
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status


def _is_core(path: Path) -> bool:
    if path.name != "core" and not path.name.startswith("core."):
        return False
    with path.open("rb") as file:
        header = file.read(18)
    return header.startswith(b"\x7fELF") and int.from_bytes(header[16:18], sys.byteorder) == _CORE_FILE
