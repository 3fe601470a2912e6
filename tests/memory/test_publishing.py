"""What `publish` may be, and what is anchored for it."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.errors import InputError, MyceliumError, PublishFailed, VersionConflict
from mycelium_sdk.memory.publishing import (
    Publication,
    Publish,
    PublishingWarning,
    publish_blob,
    require_target,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.memory.conftest import World

BLOB = b'{"owner":"G","records":[]}'
ROOT = hashlib.sha256(BLOB).digest()


def published(tmp_path: Path, publish: Publish | None, *, public: bool = False) -> Publication:
    blobs = tmp_path / "blobs"
    blobs.mkdir(exist_ok=True)
    return publish_blob(BLOB, ROOT, publish, blobs=blobs, public_network=public)


def test_by_default_the_blob_goes_to_the_blobs_folder(tmp_path: Path) -> None:
    path = tmp_path / "blobs" / f"{ROOT.hex()}.json"
    assert published(tmp_path, None) == Publication(path.as_uri(), path)
    assert path.read_bytes() == BLOB


@pytest.mark.parametrize("form", ["path", "text", "slash", "uri", "uri-slash"])
def test_a_folder_takes_the_whole_root_as_name(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    forms: dict[str, Publish] = {
        "path": folder, "text": str(folder), "slash": f"{folder}/",
        "uri": folder.as_uri(), "uri-slash": f"{folder.as_uri()}/",
    }  # fmt: skip
    path = folder / f"{ROOT.hex()}.json"
    assert published(tmp_path, forms[form]) == Publication(path.as_uri(), path)


def test_a_file_gets_a_sibling_named_by_root_and_follows_the_latest(tmp_path: Path) -> None:
    publication = published(tmp_path, str(tmp_path / "mem.json"))
    sibling = tmp_path / f"mem.{ROOT.hex()[:16]}.json"
    assert publication == Publication(sibling.as_uri(), sibling, latest=tmp_path / "mem.json")
    assert sibling.read_bytes() == BLOB
    assert not (tmp_path / "mem.json").exists()
    publication.refresh_latest(BLOB)
    assert (tmp_path / "mem.json").read_bytes() == BLOB


def test_a_relative_file_is_anchored_absolutely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert published(tmp_path, "mem.json").uri == (tmp_path / f"mem.{ROOT.hex()[:16]}.json").as_uri()


def test_a_function_is_called_once_with_the_blob(tmp_path: Path) -> None:
    calls: list[bytes] = []

    def upload(blob: bytes) -> str:
        calls.append(blob)
        return "https://example.org/m.json"

    kept = tmp_path / "blobs" / f"{ROOT.hex()}.json"
    assert published(tmp_path, upload) == Publication("https://example.org/m.json", kept)
    assert calls == [BLOB]


def test_a_function_s_exception_is_the_cause(tmp_path: Path) -> None:
    problem = ConnectionError("no route")

    def upload(blob: bytes) -> str:
        raise problem

    with pytest.raises(PublishFailed) as caught:
        published(tmp_path, upload)
    assert caught.value.__cause__ is problem


def test_what_says_itself_why_publishing_failed_passes(tmp_path: Path) -> None:
    problem = PublishFailed("the server said no", hint="ask it")

    def upload(blob: bytes) -> str:
        raise problem

    with pytest.raises(PublishFailed) as caught:
        published(tmp_path, upload)
    assert caught.value is problem


def test_an_error_about_something_else_is_not_taken_for_the_chains(tmp_path: Path) -> None:
    """`sync` begins again after a conflict of its own."""
    problem = VersionConflict("of another memory", expected=1)

    def upload(blob: bytes) -> str:
        raise problem

    with pytest.raises(PublishFailed) as caught:
        published(tmp_path, upload)
    assert caught.value.__cause__ is problem


@pytest.mark.parametrize("answer", ["", None, 7, b"https://x/y"])
def test_a_function_that_gives_no_uri_fails(tmp_path: Path, answer: object) -> None:
    with pytest.raises(PublishFailed):
        published(tmp_path, lambda _: answer)  # type: ignore[arg-type]


def test_a_function_that_gives_a_presigned_uri_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        published(tmp_path, lambda _: "https://b/k?X-Amz-Signature=1")


@pytest.mark.parametrize(
    "given",
    ["", "  ", "https://host/put", "s3://bucket/key", "a\0b", 3, b"bytes", "~nobody-of-that-name/m.json"],
)
def test_other_things_are_refused(tmp_path: Path, given: object) -> None:
    with pytest.raises(InputError) as caught:
        published(tmp_path, given)  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize("prefix", ["", "file:///"])
def test_a_name_that_is_too_long_fails_with_an_error_of_the_tree(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(MyceliumError):
        published(tmp_path, prefix + "x" * 300)


def test_a_missing_folder_fails_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(PublishFailed) as caught:
        published(tmp_path, f"{tmp_path}/absent/")
    assert caught.value.hint


@pytest.mark.parametrize("form", ["path", "uri", "link"])
def test_a_pipe_is_refused_before_anything_is_made(tmp_path: Path, form: str) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    targets: dict[str, Publish] = {"path": pipe, "uri": pipe.as_uri(), "link": link}
    with pytest.raises(PublishFailed, match="is not a regular file"):
        require_target(targets[form])
    with pytest.raises(PublishFailed, match="is not a regular file"):
        require_target("/dev/null")


def test_a_pipe_that_came_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "mem.json"
    os.mkfifo(pipe)
    found: list[str] = []

    def publish() -> None:
        with pytest.raises(PublishFailed) as caught:
            published(tmp_path, pipe)
        found.append(caught.value.message)

    publishing = threading.Thread(target=publish, daemon=True)  # where it hangs, it does so alone
    publishing.start()
    publishing.join(30)
    assert "is not a published memory of this owner" in "".join(found)


@pytest.mark.parametrize("target", ["x", "below/x"])
def test_a_file_in_the_place_of_a_folder_is_not_to_be_made_a_folder(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PublishFailed, match="a file where a folder should be") as caught:
        require_target(tmp_path / "file" / target)
    assert "mkdir" not in (caught.value.hint or "")
    with pytest.raises(PublishFailed, match="is not a folder"):
        require_target(f"{tmp_path}/file/")
    with pytest.raises(PublishFailed, match="its folder does not exist") as caught:
        require_target(tmp_path / "absent" / target)
    assert "mkdir" in (caught.value.hint or "")


@pytest.mark.parametrize("publish", [None, "folder"])
def test_on_a_public_network_a_path_is_not_anchored_silently(tmp_path: Path, publish: str | None) -> None:
    (tmp_path / "folder").mkdir()
    target = None if publish is None else str(tmp_path / publish)
    with pytest.warns(PublishingWarning):
        publication = published(tmp_path, target, public=True)
    assert publication.uri == ""
    assert publication.file.read_bytes() == BLOB


def test_on_a_public_network_a_file_uri_is_anchored_as_said(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        publication = published(tmp_path, (tmp_path / "folder").as_uri(), public=True)
    assert publication.uri.startswith("file:///")


@pytest.mark.parametrize("stored", [None, b"", b"something else", b"longer than the blob" * 100])
def test_what_a_function_stores_here_is_read_back(world: World, stored: bytes | None) -> None:
    memory = world.machine("a")
    memory.remember("one")
    target = world.folder / "stored.json"

    def store(blob: bytes) -> str:
        if stored is not None:
            target.write_bytes(stored)
        return target.as_uri()

    with pytest.raises(PublishFailed):
        memory.anchor(publish=store)
    assert memory.get_anchor() is None

    def store_it(blob: bytes) -> str:
        target.write_bytes(blob)
        return target.as_uri()

    assert memory.anchor(publish=store_it) == 1
