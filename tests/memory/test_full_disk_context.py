"""A full disk says so, also where a context file is in the way; a blob is on the disk once it is put."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.blobs.files import FileBlobStore
from mycelium_sdk.errors import BackendError, BlobError, ContextUnusable
from mycelium_sdk.memory.context_store import ContextDraft
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
ROOT = b"\x01" * 32
_ALONE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]

_PROGRAM = """
    import os, pathlib, subprocess, sys
    from mycelium_sdk.errors import BlobError
    from mycelium_sdk.memory.context_store import ContextDraft
    from tests.memory.test_full_disk_context import OWNER, ROOT, rows

    base = pathlib.Path(sys.argv[1])
    disk = base / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", str(disk)], check=True)
    outcomes = set()
    for pages in (0, 32, 64, 65, 66, 68, 72, 100, 240):
        ballast = disk / "ballast"
        ballast.unlink(missing_ok=True)
        free = os.statvfs(disk)
        ballast.write_bytes(bytes(max(0, (free.f_bavail - pages) * free.f_frsize)))
        draft = ContextDraft(OWNER, ROOT, rows(), folder=disk)
        try:
            draft.store(base / f"{pages}.json", lambda _: bytes(64))
            outcomes.add("stored")
        except BlobError as error:
            assert "cannot be kept on the disk" in error.message, error
            assert not (base / f"{pages}.json").exists()
            outcomes.add("refused")
        finally:
            draft.close()
    assert outcomes == {"stored", "refused"}, outcomes
"""


def rows() -> Iterator[StoredRecord]:
    """So many that their context takes about 600 KB."""
    for number in range(1, 12_001):
        fragment = canonical.fragment(Record(f"m{number:07d}", ()))
        yield StoredRecord(str(number), fragment, 1, number, f"session {number * 7919 % 99991}", 1e9 + number)


def test_a_draft_on_a_disk_that_fills_up(tmp_path: Path) -> None:
    probe = [*_ALONE, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system of its own")
    done = subprocess.run(
        [*_ALONE, sys.executable, "-W", "error", "-c", textwrap.dedent(_PROGRAM), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


class _Full:
    """A file that takes nothing any more, and says so whenever it tries to write what it holds."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        return len(data)

    def _refuse(self, *_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    seek = flush = read = _refuse

    def close(self) -> None:
        self._file.close()
        self._refuse()


def test_the_errors_of_a_full_disk_are_never_bare(tmp_path: Path) -> None:
    draft = ContextDraft(OWNER, ROOT, rows(), folder=tmp_path)
    draft._spool = _Full(draft._spool)  # type: ignore[assignment]
    with pytest.raises(ContextUnusable, match="No space left"):
        draft.store(tmp_path / "context.json", lambda _: bytes(64))
    draft.close()
    draft.close()
    assert list(tmp_path.iterdir()) == []


def test_closing_hides_no_other_error(tmp_path: Path) -> None:
    def anchoring() -> None:
        draft = ContextDraft(OWNER, ROOT, rows(), folder=tmp_path)
        draft._spool = _Full(draft._spool)  # type: ignore[assignment]
        with contextlib.closing(draft):
            raise BackendError("the disk is full")

    with pytest.raises(BackendError, match="the disk is full"):
        anchoring()


def test_a_blob_that_is_there_is_on_the_disk_before_it_is_anchored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = b"x" * 100
    root = canonical.root([blob])
    store = FileBlobStore(tmp_path)
    store.path(root).write_bytes(blob)  # as a process leaves it that is killed before it synchronises
    synchronised = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synchronised.add((status.st_dev, status.st_ino))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.put(blob, root)
    for path in (store.path(root), tmp_path):
        status = path.stat()
        assert (status.st_dev, status.st_ino) in synchronised, path


def test_a_blob_that_cannot_be_put_on_the_disk_is_not_anchored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = b"x" * 100
    root = canonical.root([blob])
    store = FileBlobStore(tmp_path)
    store.path(root).write_bytes(blob)

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(BlobError, match="could not be published"):
        store.put(blob, root)
