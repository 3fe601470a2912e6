"""What was forgotten securely is in none of the store's files; no error repeats what was remembered."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.errors import InputError, StoreLocked

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "xylophonequartz Grünspan 秘密暗号 " + "padding " * 3000
TRACES = [
    b"xylophonequartz",
    "Grünspan".encode(),
    b"Gr\\u00fcnspan",
    b"grunspan",
    b"\\u79d8\\u5bc6",
    "秘密".encode(),
    b"hush-hush-tag",
    b"hush",
]


def _traces(folder: Path) -> set[bytes]:
    data = b"".join(entry.read_bytes() for entry in folder.iterdir())
    return {trace for trace in TRACES if trace in data}


def _embed(text: str) -> list[float]:
    return [float(len(text)), 1.0, float("秘" in text)]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("way", ["id", "tag", "clear"])
def test_securely_forgotten_text_is_in_no_file(owner: str, path: Path, way: str, *, indexed: bool) -> None:
    with LocalVectorBackend(owner, path, _embed) as backend:
        backend.remember_many(f"harmless note {number}" for number in range(400))
        secret = backend.remember(SECRET, ["hush-hush-tag"])
        backend.remember_many(f"other note {number}" for number in range(400 if indexed else 1))
        assert backend.recall("xylophonequartz", k=1)[0]["id"] == secret
        assert _traces(path.parent)
        if way == "id":
            assert backend.forget(secret, secure=True) == 1
        elif way == "tag":
            assert backend.forget(tag="hush-hush-tag", secure=True) == 1
        else:
            assert backend.clear(secure=True) > 400
        assert _traces(path.parent) == set()
        assert all(hit["id"] != secret for hit in backend.recall("xylophonequartz harmless"))
    assert _traces(path.parent) == set()


def test_what_was_forgotten_earlier_goes_as_well(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path) as backend:
        backend.remember_many(f"harmless note {number}" for number in range(400))
        backend.remember(SECRET, ["hush-hush-tag"])
        backend.recall("note")
        backend.forget(tag="hush-hush-tag")
        assert _traces(path.parent)
        assert backend.forget(tag="hush-hush-tag", secure=True) == 0
        assert _traces(path.parent) == set()
        assert backend.count() == 400
        assert len(backend.recall("harmless", k=1000)) == 400


def test_a_reader_that_holds_the_text_back_is_said_so(owner: str, path: Path) -> None:
    with LocalVectorBackend(owner, path, busy_timeout=0.1) as backend:
        secret = backend.remember(SECRET, ["hush-hush-tag"])
        with LocalVectorBackend(owner, path) as reader, reader.export() as (chunks, _):
            next(chunks)
            with pytest.raises(StoreLocked, match="forgotten") as caught:
                backend.forget(secret, secure=True)
            assert caught.value.hint
            assert backend.count() == 0
        assert backend.forget(secret, secure=True) == 0
        assert _traces(path.parent) == set()


def test_no_error_repeats_the_text(store: LocalVectorBackend) -> None:
    secret = "xylophonequartz"
    store.max_record_bytes = 20
    for bad in (secret * 2, secret + "\ud800"):
        with pytest.raises(InputError) as caught:
            store.remember(bad, [secret])
        shown = (
            "".join(traceback.format_exception(caught.value)[1:])
            + repr(caught.value)
            + str(caught.value.hint)
        )
        # A traceback shows lines of source, never values, so the text could only come from a message.
        assert secret not in shown
