"""A full disk loses nothing acknowledged and is said so; a durable write waits for the disk once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ALONE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]

# A file system of eight megabytes that only this process sees; `ballast` fills it, and can be removed again.
_SMALL_DISK = """
    import os, pathlib, subprocess, sqlite3, sys
    from mycelium_sdk import canonical
    from mycelium_sdk.backends.local import LocalVectorBackend
    from mycelium_sdk.errors import BackendError
    from mycelium_sdk.records import Record
    owner, disk = sys.argv[1], pathlib.Path(sys.argv[2])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(disk)], check=True)
    os.environ["MYCELIUM_HOME"] = str(disk / "home")
    path, ballast = disk / "memory.db", disk / "ballast"

    def fill():
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def refused(act):
        try:
            act()
        except BackendError as error:
            assert "the disk is full" in str(error), error
            assert "free some space" in error.hint
        else:
            raise AssertionError("it was not refused")

    def check_whole():
        with LocalVectorBackend(owner, path) as store:
            assert store.check(), store.check()
            connection = sqlite3.connect(path)
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            connection.close()
"""


def _on_a_small_disk(owner: str, tmp_path: Path, script: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(
        [*_ALONE, sys.executable, "-c", textwrap.dedent(_SMALL_DISK) + textwrap.dedent(script), owner, disk],
        check=True,
    )


@pytest.fixture(autouse=True, scope="module")
def _mounting(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("probe")
    probe = [*_ALONE, "mount", "-t", "tmpfs", "none", str(folder)]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system of its own")


def test_writing_until_the_disk_is_full_loses_nothing(owner: str, tmp_path: Path) -> None:
    script = """
        with LocalVectorBackend(owner, path) as store:
            kept = []
            def write():
                while True:
                    kept.append(store.remember(f"note {len(kept)} " + "x" * 900, ["tag"]))
            refused(write)
            assert len(kept) > 50
            refused(lambda: store.remember_many(f"more {n}" for n in range(5000)))
            refused(lambda: store.import_blob(canonical.encode(
                owner, [Record(f"other {n} " + "y" * 900) for n in range(3000)])))
            assert [one.id for one in sorted(store.iter_records(), key=lambda one: one.sequence)] == kept
            assert store.recall("note 7", k=1)[0]["content"].startswith("note 7 ")
        check_whole()
    """
    _on_a_small_disk(owner, tmp_path, script)


def test_everything_works_again_when_there_is_space(owner: str, tmp_path: Path) -> None:
    script = """
        with LocalVectorBackend(owner, path) as store:
            store.remember_many(f"note {n}" for n in range(300))
            fill()
            refused(lambda: [store.remember("z" * 50_000 + str(n)) for n in range(50)])
            before = store.count()
            assert store.recall("note 77", k=1)[0]["content"] == "note 77"
            ballast.unlink()
            store.remember("after")
            assert store.count() == before + 1
            assert store.recall("after", k=1)[0]["content"] == "after"
            assert store.forget(tag="none", secure=True) == 0
        check_whole()
    """
    _on_a_small_disk(owner, tmp_path, script)


def test_a_full_disk_is_called_that_also_where_a_file_is_only_opened(owner: str, tmp_path: Path) -> None:
    script = """
        LocalVectorBackend(owner, path).close()
        fill()
        refused(lambda: LocalVectorBackend(owner, path).recall("anything"))
        ballast.unlink()
        check_whole()
    """
    _on_a_small_disk(owner, tmp_path, script)


def test_a_rewrite_that_has_no_space_says_what_remains(owner: str, tmp_path: Path) -> None:
    script = """
        with LocalVectorBackend(owner, path) as store:
            store.remember_many(f"note {n} " + "x" * 900 for n in range(1000))
            secret = store.remember("xylophonequartz")
            fill()
            with ballast.open("r+b") as file:
                file.truncate(ballast.stat().st_size - 400_000)
            try:
                store.forget(secret, secure=True)
            except BackendError as error:
                assert "is forgotten, but a copy of the text remains" in str(error), error
                assert "the disk is full" in str(error), error
                assert "again" in error.hint
            else:
                raise AssertionError("there was space")
            assert store.count() == 1000
            ballast.unlink()
            assert store.forget(secret, secure=True) == 0
            assert not any(b"xylophonequartz" in file.read_bytes() for file in disk.glob("memory.db*"))
        check_whole()
    """
    _on_a_small_disk(owner, tmp_path, script)


def test_a_memory_that_could_not_be_made_can_be_made_later(owner: str, tmp_path: Path) -> None:
    script = """
        fill()
        refused(lambda: LocalVectorBackend(owner, path))
        ballast.unlink()
        with LocalVectorBackend(owner, path) as store:
            assert store.remember("first") == "1"
        check_whole()
    """
    _on_a_small_disk(owner, tmp_path, script)


# -- synchronisation


def _synchronised(owner: str, path: Path, durability: str, script: str, tmp_path: Path) -> Sequence[str]:
    """The endings of the files that were synchronised between the two marks in `script`, as the kernel saw
    it."""
    program = textwrap.dedent(
        """
        import os, sys
        from mycelium_sdk.backends.local import LocalVectorBackend
        owner, path, durability = sys.argv[1:]
        mark = lambda: os.stat("/mark")
        def marked():
            try:
                mark()
            except FileNotFoundError:
                pass
        with LocalVectorBackend(owner, path, durability=durability) as store:
            store.remember("the first makes the log")
        """
    ) + textwrap.indent(textwrap.dedent(script), "    ")
    log = tmp_path / "calls"
    subprocess.run(
        ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,sync_file_range,stat,newfstatat", "-o", log,
         sys.executable, "-c", program, owner, path, durability],
        check=True,
    )  # fmt: skip
    calls = log.read_text(errors="replace").split('"/mark"')
    assert len(calls) == 3
    return re.findall(r"(?:fsync|fdatasync)\(\d+<.*?memory\.db(.*?)>\)", calls[1])


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(("durability", "each"), [("power", 1), ("process", 0)])
def test_a_durable_write_waits_for_the_disk_once(
    owner: str, path: Path, tmp_path: Path, durability: str, each: int
) -> None:
    script = """
        marked()
        for number in range(50):
            store.remember(f"note {number}", ["tag"], session="s")
        marked()
    """
    assert _synchronised(owner, path, durability, script, tmp_path) == ["-wal"] * (50 * each)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_many_at_once_and_reading_wait_no_more_often(owner: str, path: Path, tmp_path: Path) -> None:
    script = """
        marked()
        store.remember_many(f"note {number}" for number in range(50))
        for number in range(20):
            store.recall(f"note {number}")
        store.remember("note 7")
        store.export_blob()
        marked()
    """
    assert _synchronised(owner, path, "power", script, tmp_path) == ["-wal"]


@pytest.mark.parametrize("durability", ["", "disk", None])
def test_another_durability_is_refused(owner: str, path: Path, durability: str) -> None:
    with pytest.raises(InputError):
        LocalVectorBackend(owner, path, durability=durability)  # type: ignore[arg-type]
    assert not path.exists()
