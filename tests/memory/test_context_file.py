"""The bytes of context files: what is written, what is read, and everything that is refused."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from mycelium_sdk.backends.values import Context
from mycelium_sdk.errors import ContextUnusable, PublishFailed, WrongPassphrase
from mycelium_sdk.memory import context_file
from mycelium_sdk.memory.context_file import ContextFile, signature_part, signed_part
from mycelium_sdk.memory.context_store import ContextDraft
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "context_v1.json").read_text("utf-8")
)
OWNER: str = VECTORS["owner"]
KEY = Ed25519PrivateKey.from_private_bytes(
    hashlib.sha256(VECTORS["private_key_is_sha256_of"].encode()).digest()
)
ROOT = hashlib.sha256(b"a blob").digest()

NOT_SIGNED_BY_THE_OWNER = 16
"""So many of the refused vectors come first."""

sessions = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
times = st.one_of(st.none(), st.floats(-1e10, 1e10), st.sampled_from([math.nan, math.inf, -0.0]))
records = st.lists(
    st.builds(
        StoredRecord,
        id=st.just("1"),
        fragment=st.just(""),
        copies=st.integers(1, 3),
        sequence=st.integers(0, 2**63 - 1),
        session=sessions,
        time=times,
    )
)


def stored(
    sequence: object = 1, session: object = None, time: object = None, copies: int = 1
) -> StoredRecord:
    return StoredRecord("1", "", copies, sequence, session, time)  # type: ignore[arg-type]


def written(of: Iterable[StoredRecord], root: bytes = ROOT) -> bytes:
    part = b"".join(signed_part(OWNER, root, of))
    return part + signature_part(hashlib.sha256(part).digest(), KEY.sign)


def read(data: bytes, number: int, root: bytes = ROOT) -> list[Context]:
    return list(ContextFile(io.BytesIO(data), OWNER, root).contexts(number))


def from_vector(vector: dict[str, Any]) -> tuple[bytes, bytes]:
    return vector["file"].encode("latin-1"), bytes.fromhex(vector["root"])


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["name"])
def test_frozen_files_are_written_and_read(vector: dict[str, Any]) -> None:
    data, root = from_vector(vector)
    expected = [
        Context(sequence, session, None if time is None else time / 10**6)
        for sequence, session, time in vector["records"]
    ]
    assert read(data, len(expected), root) == expected
    assert written((stored(*context) for context in expected), root) == data


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["name"])
def test_frozen_files_are_refused(vector: dict[str, Any]) -> None:
    data, root = from_vector(vector)
    with pytest.raises(ContextUnusable):
        read(data, vector["records"], root)


@pytest.mark.parametrize(
    "vector", VECTORS["refused"][:NOT_SIGNED_BY_THE_OWNER], ids=lambda vector: vector["name"]
)
def test_what_the_owner_has_not_signed_is_not_parsed(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> Iterator[Context]:
        raise AssertionError

    monkeypatch.setattr(context_file, "_entries", never)
    data, root = from_vector(vector)
    with pytest.raises(ContextUnusable, match="signature"):
        ContextFile(io.BytesIO(data), OWNER, root)


def test_the_others_are_signed_by_the_owner() -> None:
    """So that they are refused for what their name says."""
    for vector in VECTORS["refused"][NOT_SIGNED_BY_THE_OWNER:]:
        part, end = vector["file"].encode("latin-1").split(b',"signature":"')
        KEY.public_key().verify(
            bytes.fromhex(end[:128].decode()), b"mycelium-context/1\n" + hashlib.sha256(part).digest()
        )


def test_another_blob_s_context_is_known_before_it_is_parsed() -> None:
    with pytest.raises(ContextUnusable, match="another blob"):
        ContextFile(io.BytesIO(written([stored(1)])), OWNER, bytes(32))


def test_one_of_the_vectors_would_be_read_if_it_were_whole() -> None:
    """The entries that the refused ones are made of are good ones."""
    base = written([stored(1, "s", 0.00001), stored(2)])
    assert b'[[1,"s",10],[2,null,null]]' in base
    assert read(base, 2) == [Context(1, "s", 0.00001), Context(2, None, None)]


@given(records)
def test_what_is_written_is_read(given_records: list[StoredRecord]) -> None:
    data = written(given_records)
    document = json.loads(data)
    assert json.dumps(document, sort_keys=True, separators=(",", ":")).encode() == data
    found = read(data, sum(one.copies for one in given_records))
    expected = [one for one in given_records for _ in range(one.copies)]
    assert [(one.sequence, one.session) for one in found] == [(one.sequence, one.session) for one in expected]
    for context, one in zip(found, expected, strict=True):
        if one.time is None or not math.isfinite(one.time) or abs(one.time) >= 2**33:
            assert context.time is None
        else:
            assert context.time is not None
            assert abs(context.time - one.time) <= 1.5e-6
    assert written(stored(*context) for context in found) == data


@given(st.integers(-(2**33) * 10**6 + 1, 2**33 * 10**6 - 1))
def test_microseconds_survive_a_double(microseconds: int) -> None:
    data = written([stored(1, None, microseconds / 10**6)])
    assert json.loads(data)["records"] == [[1, None, microseconds]]


@settings(max_examples=200)
@given(records=records.filter(bool), data=st.data())
def test_any_changed_byte_is_noticed(records: list[StoredRecord], data: st.DataObject) -> None:
    whole = bytearray(written(records))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ContextUnusable):
        read(bytes(whole), sum(one.copies for one in records))


def test_many_entries_are_read_across_chunks() -> None:
    """With entries of all lengths, so that chunks end at every place of an entry."""
    many = [stored(number, "s" * (number % 97 + 1), number / 7) for number in range(20_000)]
    found = read(written(many), len(many))
    assert [one.sequence for one in found] == list(range(20_000))
    assert [one.session for one in found] == [one.session for one in many]


def test_a_long_session_is_written_up_to_its_limit_and_read() -> None:
    longest = "é" * (context_file.MAX_SESSION_BYTES // len("\\u00e9"))
    data = written([stored(1, "before"), stored(2, longest), stored(3, "after")])
    assert [one.session for one in read(data, 3)] == ["before", longest, "after"]
    with pytest.raises(ContextUnusable, match="too long"):
        written([stored(1, longest + "é")])


def test_an_entry_without_an_end_is_not_gathered() -> None:
    part = b"".join(signed_part(OWNER, ROOT, [stored(1, "s")])).replace(b'"s"', b'"' + b"s" * (16 << 20))
    data = part + signature_part(hashlib.sha256(part).digest(), KEY.sign)
    opened = ContextFile(io.BytesIO(data), OWNER, ROOT)
    tracemalloc.start()
    with pytest.raises(ContextUnusable, match="entry 1"):
        list(opened.contexts(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    "bad",
    [
        stored("1"), stored(True), stored(-1), stored(2**63), stored(None), stored(1.0),
        stored(1, ""), stored(1, b"s"), stored(1, 7), stored(1, "\ud800"),
    ],
)  # fmt: skip
def test_rows_that_were_edited_are_not_written(bad: StoredRecord) -> None:
    with pytest.raises(ContextUnusable):
        written([stored(1), bad])


@pytest.mark.parametrize("time", ["1.0", b"1", 1e300, -math.inf, math.nan])
def test_a_time_that_is_none_is_written_as_unknown(time: object) -> None:
    assert read(written([stored(1, "s", time)]), 1) == [Context(1, "s", None)]


def test_a_file_beyond_the_limit_is_not_read() -> None:
    data = written([stored(1)])
    ContextFile(io.BytesIO(data), OWNER, ROOT, max_bytes=len(data))
    with pytest.raises(ContextUnusable, match="limit"):
        ContextFile(io.BytesIO(data), OWNER, ROOT, max_bytes=len(data) - 1)


def test_no_refusal_quotes_the_file() -> None:
    for vector in VECTORS["refused"]:
        data, root = from_vector({**vector, "file": vector["file"].replace('"s"', '"xylophone"')})
        with pytest.raises(ContextUnusable) as caught:
            read(data, vector["records"], root)
        assert "xylophone" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_a_file_that_changes_after_its_signature_was_checked_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "context"
    path.write_bytes(written(stored(number, "monday") for number in range(20_000)))
    with path.open("rb") as file:
        contexts = ContextFile(file, OWNER, ROOT).contexts(20_000)
        with path.open("r+b") as other:
            other.seek(300_000)
            place = 300_000 + other.read(100).index(b"monday")
            other.seek(place)
            other.write(b"friday")
        with pytest.raises(ContextUnusable, match="changed while"):
            list(contexts)


def test_memory_is_bounded_on_both_ways(tmp_path: Path) -> None:
    number = 60_000
    tracemalloc.start()
    with contextlib.closing(
        ContextDraft(OWNER, ROOT, (stored(n, f"session {n}", n) for n in range(number)), folder=tmp_path)
    ) as draft:
        draft.store(tmp_path / "context", KEY.sign)
    with (tmp_path / "context").open("rb") as file:
        assert sum(1 for _ in ContextFile(file, OWNER, ROOT).contexts(number)) == number
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "context").stat().st_size > 1_800_000
    # A little of the draft stays in memory, and one chunk of entries as Python objects.
    assert peak < 3_000_000


# -- putting it beside a blob


def draft(folder: Path, *of: StoredRecord) -> ContextDraft:
    return ContextDraft(OWNER, ROOT, of, folder=folder)


def put(path: Path, *of: StoredRecord) -> None:
    with contextlib.closing(draft(path.parent, *of)) as made:
        made.store(path, KEY.sign)


def test_the_same_context_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "c"
    put(path, stored(1, "s", 1.0))
    before = path.stat()
    assert before.st_mode & 0o777 == 0o600
    put(path, stored(1, "s", 1.0))
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


def test_another_context_of_the_owner_and_a_damaged_copy_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c"
    good = written([stored(1, "new")])
    damaged = written([stored(1, "old")])
    for there in (damaged, good[:-1], good[:200], good + b"x", good.replace(b"new", b"odd")):
        path.write_bytes(there)
        put(path, stored(1, "new"))
        assert path.read_bytes() == good


@pytest.mark.parametrize("there", [b"", b"notes of mine", b'{"format":"mycelium-context/2"'])
def test_what_is_no_context_file_of_the_owner_is_left_alone(tmp_path: Path, there: bytes) -> None:
    path = tmp_path / "c"
    path.write_bytes(there)
    with pytest.raises(PublishFailed, match="not touched"):
        put(path, stored(1))
    assert path.read_bytes() == there


def test_links_and_folders_are_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_bytes(written([stored(1)]))
    (tmp_path / "link").symlink_to(own)
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(PublishFailed, match="not touched"):
            put(tmp_path / name, stored(2))
    assert own.read_bytes() == written([stored(1)])


@pytest.mark.parametrize("name", ["x" * 300, "absent/c"])
def test_a_place_that_cannot_be_is_an_error_of_the_tree(tmp_path: Path, name: str) -> None:
    with contextlib.closing(draft(tmp_path, stored(1))) as made, pytest.raises(PublishFailed):
        made.store(tmp_path / name, KEY.sign)


def test_a_draft_that_could_not_be_made_says_so_when_it_is_stored(tmp_path: Path) -> None:
    with contextlib.closing(draft(tmp_path, stored(1, ""))) as made, pytest.raises(ContextUnusable):
        made.store(tmp_path / "c", KEY.sign)
    assert not (tmp_path / "c").exists()


def test_what_signing_raises_passes_and_nothing_is_written(tmp_path: Path) -> None:
    def refuse(_: bytes) -> bytes:
        raise WrongPassphrase("no")

    with contextlib.closing(draft(tmp_path, stored(1))) as made, pytest.raises(WrongPassphrase):
        made.store(tmp_path / "c", refuse)
    assert list(tmp_path.iterdir()) == []


def test_a_large_draft_waits_where_it_was_told_to_and_leaves_nothing(tmp_path: Path) -> None:
    with contextlib.closing(draft(tmp_path, stored(1, "s" * 100, copies=20_000))) as made:
        made.store(tmp_path / "c", KEY.sign)
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]
    assert len(read((tmp_path / "c").read_bytes(), 20_000)) == 20_000
