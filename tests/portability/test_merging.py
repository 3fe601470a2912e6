"""The merge of two sides against what they agreed on, compared with the same thing said in sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mycelium_sdk import canonical
from mycelium_sdk.facts import ChainKey
from mycelium_sdk.memory.merging import three_way
from mycelium_sdk.memory.shared_base import BaseStore, Known, Noted, SharedBase
from mycelium_sdk.records import Record
from mycelium_sdk.stored import StoredRecord

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KEY = ChainKey("network", "C", "G", "chain")
RECORDS = [
    Record(text, tags) for text in ("a", "a\0", "b", "é", "\U0001f602") for tags in ((), ("t",), ("t", "u"))
]
SETS = st.sets(st.sampled_from(RECORDS))


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> BaseStore:
    folder = tmp_path_factory.mktemp("state")
    folder.chmod(0o700)
    return BaseStore(folder)


def _sorted(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=canonical.order_key)


def _stored(records: Iterable[Record], sequence: int = 1) -> list[StoredRecord]:
    return [StoredRecord("x", canonical.fragment(one), 1, sequence, None, None) for one in _sorted(records)]


def _pairs(stored: list[StoredRecord]) -> list[Noted]:
    return [(one.fragment, one.sequence, one.time) for one in stored]


def _anchored(records: Iterable[Record], time: float | None = None) -> list[tuple[str, Record, float | None]]:
    return [(canonical.fragment(one), one, time) for one in _sorted(records)]


def _base(bases: BaseStore, records: Iterable[Record], *, anchored_at: int = 100) -> SharedBase:
    return bases.made(1, bytes(32), anchored_at, ((canonical.fragment(one), 1, 50.0) for one in records))


@given(SETS, SETS, SETS)
def test_what_either_side_did_since_the_base_is_done(
    bases: BaseStore, here: set[Record], there: set[Record], before: set[Record]
) -> None:
    merged = list(three_way(_anchored(there), _stored(here), _base(bases, before)))
    expected = (here & there) | (here - before) | (there - before)
    assert merged == [canonical.fragment(one) for one in _sorted(expected)]


@given(SETS, SETS)
def test_without_a_base_nothing_is_removed(here: set[Record], there: set[Record]) -> None:
    merged = list(three_way(_anchored(there), _stored(here), None))
    assert merged == [canonical.fragment(one) for one in _sorted(here | there)]


@given(here=SETS, there=SETS, before=SETS, locally=st.booleans())
def test_a_remember_wins_over_a_forget(
    bases: BaseStore, here: set[Record], there: set[Record], before: set[Record], *, locally: bool
) -> None:
    """What was remembered again since the base, on one side, stays, whatever the other side did."""
    if locally:
        merged = three_way(_anchored(there), _stored(here, sequence=2), _base(bases, before))
        expected = here | (there - before)
    else:
        merged = three_way(_anchored(there, time=101.0), _stored(here), _base(bases, before))
        expected = there | (here - before)
    assert list(merged) == [canonical.fragment(one) for one in _sorted(expected)]


@pytest.mark.parametrize(
    ("time", "kept"),
    [(None, False), (50.0, False), (50.000_001, False), (99.0, False), (100.0, True), (101.5, True)],
)
def test_a_memory_that_was_remembered_again_elsewhere_is_told_by_its_time(
    bases: BaseStore, time: float | None, kept: bool
) -> None:
    """It has another time than it had here, and that is not before the base was anchored, at 100."""
    one = Record("one")
    merged = list(three_way(_anchored([one], time), [], _base(bases, [one])))
    assert merged == ([canonical.fragment(one)] if kept else [])


def test_clocks_that_are_ahead_bring_back_nothing(bases: BaseStore) -> None:
    one = Record("one")
    base = bases.made(1, bytes(32), 100, [(canonical.fragment(one), 1, 500.0)])
    assert list(three_way(_anchored([one], 500.0), [], base)) == []


def test_a_base_from_a_blob_knows_no_sequences(bases: BaseStore) -> None:
    one, two = Record("one"), Record("two")
    base = bases.from_blob(1, bytes(32), 100, [canonical.fragment(one)])
    assert list(three_way([], _stored([one, two], sequence=7), base)) == [canonical.fragment(two)]


def test_equal_records_become_one(bases: BaseStore) -> None:
    one = Record("one")
    copies = [(canonical.fragment(one), one, None)] * 3
    assert list(three_way(copies, _stored([one]), _base(bases, []))) == [canonical.fragment(one)]
    assert list(three_way(copies, [], None)) == [canonical.fragment(one)]


def test_a_base_is_kept_and_found(bases: BaseStore) -> None:
    records = _stored(RECORDS, sequence=5)
    bases.keep(KEY, 3, b"r" * 32, 1234, _pairs(records))
    found = bases.find(KEY, 3, b"r" * 32)
    assert found is not None
    assert (len(found), found.version, found.anchored_at) == (len(RECORDS), 3, 1234)
    assert all(found.find(one.fragment) == Known(5, None) for one in records)
    assert found.find(canonical.fragment(Record("none"))) is None
    assert bases.find(KEY, 4, b"r" * 32) is None
    assert bases.find(KEY, 3, b"s" * 32) is None
    assert bases.find(ChainKey("network", "C", "G", "another"), 3, b"r" * 32) is None
    bases.keep(KEY, 4, b"s" * 32, 0, [])
    bases.keep(KEY, 4, b"t" * 32, 0, [])
    assert bases.find(KEY, 4, b"s" * 32) is None
    assert bases.find(KEY, 4, b"t" * 32) is not None
    assert bases.find(KEY, 3, b"r" * 32) == found, "version 4 may never have been"
    bases.keep(KEY, 5, b"u" * 32, 0, [])
    assert bases.find(KEY, 3, b"r" * 32) is None


def test_a_base_holds_no_text_and_needs_the_key(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    store = BaseStore(tmp_path)
    secret = Record("the secret of the memory")
    store.keep(KEY, 1, bytes(32), 0, _pairs(_stored([secret])))
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == 2
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert not any(b"secret" in file.read_bytes() for file in files)
    (tmp_path / "bases" / "key").unlink()
    found = BaseStore(tmp_path).find(KEY, 1, bytes(32))
    assert found is not None
    assert found.find(canonical.fragment(secret)) is None


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda _: b"", lambda data: b"X" + data[1:]])
def test_a_damaged_base_is_none(tmp_path: Path, spoil: object) -> None:
    tmp_path.chmod(0o700)
    store = BaseStore(tmp_path)
    store.keep(KEY, 1, bytes(32), 0, _pairs(_stored(RECORDS)))
    [file] = (tmp_path / "bases").glob("*.base")
    file.write_bytes(spoil(file.read_bytes()))  # type: ignore[operator]
    assert store.find(KEY, 1, bytes(32)) is None


@pytest.mark.parametrize(
    ("sequence", "time"), [("text", 1.0), (2**70, 1.0), (1, "text"), (1, b"x"), (1, 1e300), (1, float("nan"))]
)
def test_what_was_edited_into_no_number_is_not_known(bases: BaseStore, sequence: Any, time: Any) -> None:
    fragment = canonical.fragment(RECORDS[0])
    found = bases.made(1, bytes(32), 0, [(fragment, sequence, time)]).find(fragment)
    assert found == Known(1 if sequence == 1 else None, 1.0 if time == 1.0 else None)
