"""What a killed writer leaves beside its destination is removed by the next one, and nothing else is."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LONG_AGO = 1_000_000_000
OURS = f".{'0123456789abcdef'}.tmp"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make_old(path: Path) -> None:
    os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def leave_behind(folder: Path) -> Path:
    """The temporary file of a process that was killed while it wrote."""
    child = os.fork()
    if child == 0:

        def pieces() -> Iterator[bytes]:
            yield b"half of it"
            os.kill(os.getpid(), signal.SIGKILL)

        files.replace_private(folder / "blob", pieces())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    (left,) = [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    return left


@pytest.mark.parametrize("write", [files.create_private, files.replace_private])
def test_the_next_write_removes_it(tmp_path: Path, write: Callable[[Path, bytes], None]) -> None:
    make_old(leave_behind(tmp_path))
    write(tmp_path / "blob", b"whole")
    assert names(tmp_path) == ["blob"]
    assert (tmp_path / "blob").read_bytes() == b"whole"


def test_a_fresh_one_stays_since_its_writer_may_be_on_another_machine(tmp_path: Path) -> None:
    left = leave_behind(tmp_path)
    files.replace_private(tmp_path / "blob", b"whole")
    assert names(tmp_path) == [left.name, "blob"]
    for age, there in ((3500, True), (3700, False)):
        os.utime(left, (time.time() - age,) * 2)
        files.replace_private(tmp_path / "blob", b"whole")
        assert left.exists() is there


def test_one_that_is_being_written_stays_however_old_it_looks(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"one"
        begun.set()
        assert go_on.wait(60)
        yield b"two"

    slow = threading.Thread(target=files.replace_private, args=(tmp_path / "slow", pieces()))
    slow.start()
    assert begun.wait(60)
    (temporary,) = tmp_path.iterdir()
    make_old(temporary)
    files.replace_private(tmp_path / "quick", b"quick")
    assert names(tmp_path) == [temporary.name, "quick"]
    go_on.set()
    slow.join()
    assert names(tmp_path) == ["quick", "slow"]
    assert (tmp_path / "slow").read_bytes() == b"onetwo"


def test_a_file_keeps_its_lock_until_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = type(tmp_path).replace

    def replace(self: Path, target: Path) -> Path:
        make_old(self)
        files._sweep(self.parent)
        return rename(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", replace)
    files.replace_private(tmp_path / "blob", b"whole")
    assert (tmp_path / "blob").read_bytes() == b"whole"


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    others = ["a.tmp", ".tmp", ".0123456789ABCDEF.tmp", ".0123456789abcde.tmp", f"x{OURS}", f"{OURS}.old"]
    for name in others:
        (folder / name).write_bytes(b"theirs")
    (folder / OURS).symlink_to(elsewhere)
    (folder / f".{'1' * 16}.tmp").mkdir()
    os.mkfifo(folder / f".{'2' * 16}.tmp")
    for path in folder.iterdir():
        make_old(path)
    before = names(folder)
    files.replace_private(folder / "blob", b"whole")
    assert names(folder) == sorted([*before, "blob"])
    assert elsewhere.read_bytes() == b"kept"


def test_where_nothing_can_be_looked_at_writing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "scandir", refuse)
    files.replace_private(tmp_path / "blob", b"whole")
    assert (tmp_path / "blob").read_bytes() == b"whole"


def test_where_there_are_no_locks_nothing_is_removed_and_writing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = leave_behind(tmp_path)
    make_old(left)

    def no_locks(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    files.replace_private(tmp_path / "blob", b"whole")
    assert names(tmp_path) == [left.name, "blob"]
