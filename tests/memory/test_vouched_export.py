"""What is anchored was read once: checked against its seals, hashed and published from the same rows. Only
where nothing vouches for the rows is the blob parsed to know that it can be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.backends.local.view import View
from mycelium_sdk.errors import LimitExceeded, Tampered
from mycelium_sdk.memory.verification import TamperedWarning
from mycelium_sdk.verdicts import Verdict
from tests.backends.minimal import ListBackend
from tests.backends.tampering import edit, rewrite_cells

if TYPE_CHECKING:
    import sqlite3

    from tests.memory.conftest import World


class Parsed(Exception):  # noqa: N818 - no error
    """Somebody parses a blob."""


@pytest.fixture
def unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object, **__: object) -> NoReturn:
        raise Parsed

    for name in ("check", "parse", "parse_fragments"):
        monkeypatch.setattr(canonical, name, parse)


@pytest.mark.usefixtures("unparsed")
def test_rows_that_are_vouched_for_are_not_parsed(world: World) -> None:
    memory = world.machine("a")
    memory.backend.remember_many(["one", "two"])
    assert memory.anchor() == 1
    assert memory.verify()


@pytest.mark.usefixtures("unparsed")
def test_rows_that_nothing_vouches_for_are_parsed(world: World) -> None:
    context = world.context("a")
    with ListBackend(context.address) as unsealed:
        memory = world.machine("a", backend=unsealed)
        memory.remember("one")
        with pytest.raises(Parsed):
            memory.anchor()


@pytest.mark.usefixtures("unparsed")
def test_edited_rows_are_parsed_where_they_are_to_be_anchored_all_the_same(world: World) -> None:
    memory = world.machine("a")
    memory.remember("one")
    edit(world.context("a").home.memory_file(memory.owner), "UPDATE memories SET time = 1")
    with pytest.raises(Tampered, match="nothing was anchored"):
        memory.anchor()
    with pytest.raises(Parsed), pytest.warns(TamperedWarning):
        memory.anchor(overwrite=True)


def test_genuine_rows_out_of_their_order_are_never_anchored(world: World) -> None:
    memory = world.machine("a")
    memory.backend.remember_many(["one", "two", "three"])
    file = world.context("a").home.memory_file(memory.owner)
    memory.close()
    rewrite_cells(file, lambda cells: cells[::-1])
    memory = world.machine("a")
    with pytest.raises(Tampered):
        memory.anchor()
    with pytest.raises(Tampered), pytest.warns(TamperedWarning):
        memory.anchor(overwrite=True)
    answer = memory.verify()
    assert (answer.verdict, answer.anchor) == (Verdict.TAMPERED, None)
    assert "--genuine" in answer.next_step
    assert "replace" not in answer.next_step, "nothing is anchored that could be loaded"


def test_a_blob_that_is_too_large_to_load_is_not_anchored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    size = len(memory.backend.export_blob())
    monkeypatch.setattr("mycelium_sdk.memory.anchoring.DEFAULT_MAX_BYTES", size - 1)
    with pytest.raises(LimitExceeded, match="could not be loaded") as caught:
        memory.anchor()
    assert caught.value.hint
    monkeypatch.setattr("mycelium_sdk.memory.anchoring.DEFAULT_MAX_BYTES", size)
    assert memory.anchor() == 1


def test_verifying_reads_the_rows_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = world.machine("a")
    memory.backend.remember_many(["one", "two"])
    memory.anchor()
    asked: list[str] = []
    rows = View._rows

    def asking(view: View, sql: str, *parameters: object) -> sqlite3.Cursor:
        asked.append(sql)
        return rows(view, sql, *parameters)

    monkeypatch.setattr(View, "_rows", asking)
    assert memory.verify()
    assert len(asked) == 1
