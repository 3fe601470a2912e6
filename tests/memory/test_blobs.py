"""Blob files and their URIs."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk.blobs.file_uri import path_from_file_uri, path_to_file_uri
from mycelium_sdk.blobs.files import FileBlobStore, read_blob_file
from mycelium_sdk.blobs.uris import check_anchor_uri
from mycelium_sdk.errors import BlobError, BlobNotFound, InputError, LimitExceeded

BLOB = b'{"owner":"G","records":[]}'
ROOT = hashlib.sha256(BLOB).digest()


def test_put_names_by_root_and_get_gives_the_bytes_back(tmp_path: Path) -> None:
    store = FileBlobStore(tmp_path)
    uri = store.put(BLOB, ROOT)
    assert uri == (tmp_path / f"{ROOT.hex()}.json").as_uri()
    assert store.get(uri) == BLOB
    assert store.find(ROOT) == BLOB
    assert stat.S_IMODE(store.path(ROOT).stat().st_mode) == 0o600


def test_putting_again_does_not_write(tmp_path: Path) -> None:
    store = FileBlobStore(tmp_path)
    store.put(BLOB, ROOT)
    before = store.path(ROOT).stat()
    store.put(BLOB, ROOT)
    after = store.path(ROOT).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_damaged_copy_is_not_found_and_putting_mends_it(tmp_path: Path) -> None:
    store = FileBlobStore(tmp_path)
    store.put(BLOB, ROOT)
    store.path(ROOT).write_bytes(BLOB[:-1] + b"]")
    assert store.find(ROOT) is None
    store.put(BLOB, ROOT)
    assert store.find(ROOT) == BLOB


def test_a_missing_folder_is_an_error_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(BlobError) as caught:
        FileBlobStore(tmp_path / "absent").put(BLOB, ROOT)
    assert caught.value.hint


def test_links_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    target = tmp_path / "real.json"
    target.write_bytes(BLOB)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (link, fifo, tmp_path, Path("/dev/zero")):
        with pytest.raises(BlobError):
            read_blob_file(path)
    with pytest.raises(BlobNotFound):
        read_blob_file(tmp_path / "absent")


def test_the_size_limit_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"x" * 10)
    assert read_blob_file(path, max_bytes=10) == b"x" * 10
    with pytest.raises(LimitExceeded, match="limit is 9"):
        read_blob_file(path, max_bytes=9)


@given(
    st.lists(
        st.text(st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1), min_size=1
    )
)
def test_every_path_survives_its_uri(names: list[str]) -> None:
    names = [name for name in names if name not in (".", "..")] or ["a"]
    path = Path("/", *names)
    assert path_from_file_uri(path_to_file_uri(path)) == path


@pytest.mark.parametrize(
    "uri",
    [
        "https://host/blob.json",
        "file:blob.json",
        "file:/blob.json",
        "file://host/blob.json",
        "file:///blob.json?x=1",
        "file:///blob.json#x",
        "file:///a%00b",
        "file:///%ff%fe",
        "file://[::1/x",
        "file://",
    ],
)
def test_other_uris_are_no_files_of_this_machine(uri: str) -> None:
    with pytest.raises(BlobError):
        path_from_file_uri(uri)


def test_localhost_is_this_machine() -> None:
    assert path_from_file_uri("file://localhost/a%20b.json") == Path("/a b.json")


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/a/b.json",
        "file:///home/me/m.json",
        "s3://bucket/key",
        "ipfs://bafy",
        "https://h/x?v=3",
    ],
)
def test_plain_uris_may_be_anchored(uri: str) -> None:
    assert check_anchor_uri(uri) == uri


@pytest.mark.parametrize(
    "uri",
    [
        "example.org/blob.json",
        "ftp://host/x",
        "https://user:pw@host/x",
        "https://user@host/x",
        "https://b.s3.amazonaws.com/k?X-Amz-Signature=abc",
        "https://storage/k?x-goog-signature=abc",
        "https://h/k?Signature=abc&Expires=1",
        "https://h/k?sig=abc",
        "https://h/a b",
        "https://h/a\nb",
        "https://[h/x",
        "https://h/\ud800",
        "https://h/" + "x" * 1024,
    ],
)
def test_uris_with_secrets_or_nonsense_are_never_anchored(uri: str) -> None:
    with pytest.raises(InputError) as caught:
        check_anchor_uri(uri)
    assert caught.value.hint


def test_the_longest_uri_has_1024_bytes() -> None:
    assert check_anchor_uri("https://h/" + "x" * 1014)
