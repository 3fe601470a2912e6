"""Exporting and checking in one pass: the same blob, the same answer as `check`, and what is vouched for is
canonical, however the file's pages were changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.integrity import Integrity
from mycelium_sdk.backends.local import LocalVectorBackend
from mycelium_sdk.backends.local.view import View
from mycelium_sdk.errors import Tampered
from mycelium_sdk.records import Record
from tests.backends.minimal import ListBackend
from tests.backends.tampering import ROW_EDITS, TEXTS, edit, rewrite_cells

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from mycelium_sdk.backends.base import BaseBackend
    from mycelium_sdk.backends.integrity import IntegrityReport

BEGINNING = "these begin alike for longer than a key keeps of them, which is sixty-four bytes, "


def exported(store: BaseBackend) -> tuple[bytes, IntegrityReport]:
    with store.export_checked() as (chunks, view, integrity):
        blob = b"".join(chunks)
        assert view.stats == store.stats()
        return blob, integrity()


@pytest.mark.parametrize(
    "records",
    [
        [],
        [Record(f"memory {number}", ("a", "b")) for number in range(300)],
        [Record(f"{BEGINNING}{number}") for number in range(300)],
        [Record("a", ("b",))] * 3 + [Record("a", ("b", "b")), Record("", ("",)), Record("\0")],
        [Record("long " * 500), Record("long " * 501, ("tag",)), Record("x" * 200_000)],
        [Record("z" * 64), Record("z" * 65), Record("z" * 63), Record("z" * 64 + "\0")],
    ],
    ids=["none", "many", "alike", "odd", "long", "about the cut"],
)
def test_it_is_the_blob_and_the_answer_of_check(
    owner: str, path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = canonical.encode(owner, records)
    with LocalVectorBackend(owner, path) as store:
        store.import_blob(blob)
        for most in (5000, 100):  # the second has SQLite sort what begins alike
            monkeypatch.setattr("mycelium_sdk.backends.local.view._SORTED_IN_MEMORY", most)
            assert exported(store) == (blob, store.check())
            report = store.check()
            assert (report.state, report.findings) == (Integrity.KEPT, ())
            assert report.checked == len(set(records))


@pytest.mark.parametrize("name", ROW_EDITS)
def test_an_edited_row_is_said(owner: str, filled: Path, name: str) -> None:
    edit(filled, ROW_EDITS[name])
    with LocalVectorBackend(owner, filled) as store:
        try:
            _, report = exported(store)
        except Tampered:  # no text that could stand in a blob
            report = store.check()
        assert report == store.check()
        assert report.state is Integrity.BROKEN


def test_without_the_key_nobody_can_tell(owner: str, filled: Path, home: Path) -> None:
    for key in (home / "state" / "integrity").iterdir():
        key.unlink()
    with LocalVectorBackend(owner, filled) as store:
        blob, report = exported(store)
        assert blob == store.export_blob()
        assert report.state is Integrity.UNKNOWN
        assert report == store.check()


def test_a_store_without_seals_says_so(owner: str) -> None:
    with ListBackend(owner) as store:
        store.remember_many(["b", "a"])
        blob, report = exported(store)
    assert blob == canonical.encode(owner, [Record("a"), Record("b")])
    assert report.state is Integrity.UNPROTECTED


@pytest.mark.parametrize(
    ("lost", "said"), [(1, "1 memory is missing"), (2, "2 memories are missing")], ids=["one", "two"]
)
def test_lost_rows_are_counted(owner: str, path: Path, lost: int, said: str) -> None:
    with LocalVectorBackend(owner, path) as store:
        store.remember_many(list("abcd"))
    rewrite_cells(path, lambda cells: cells[lost:])
    with LocalVectorBackend(owner, path) as store:
        assert store.check().findings == (said,)


def swap(cells: list[int]) -> list[int]:
    return [cells[1], cells[0], *cells[2:]]


def repeat(cells: list[int]) -> list[int]:
    return [cells[0], cells[0], *cells]


def move_to_the_end(cells: list[int]) -> list[int]:
    return [*cells[1:], cells[0]]


@pytest.mark.parametrize("change", [swap, repeat, move_to_the_end])
@pytest.mark.parametrize("beginning", ["", BEGINNING])
def test_genuine_rows_in_another_order_or_repeated_are_found(
    owner: str, path: Path, beginning: str, change: Callable[[list[int]], list[int]]
) -> None:
    """The exclusive or of a row taken three times is the row's own, and it knows no order."""
    with LocalVectorBackend(owner, path) as store:
        store.remember_many([f"{letter} {beginning}" for letter in "abcd"])
        before = store.export_blob()
    rewrite_cells(path, change)
    with LocalVectorBackend(owner, path) as store:
        blob, report = exported(store)
        assert blob != before
        assert report.state is Integrity.BROKEN
        assert report == store.check()


def test_the_rows_are_read_once(owner: str, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    rows = View._rows

    def asking(view: View, sql: str, *parameters: object) -> sqlite3.Cursor:
        asked.append(sql)
        return rows(view, sql, *parameters)

    monkeypatch.setattr(View, "_rows", asking)
    with LocalVectorBackend(owner, filled) as store:
        _, report = exported(store)
    assert report.checked == len(TEXTS)
    assert len(asked) == 1
