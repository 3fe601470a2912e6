"""What the contract costs, as exact numbers: they follow from the code and the network's settings alone."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.chain.artifact import memory_anchor_wasm

if TYPE_CHECKING:
    from benchmarks.contract_costs import Cost

# call: instructions declared, bytes read from disk, bytes written, resource fee in stroops
COSTS = {
    "upload the code": (3_293_101, 0, 2_864, 3_175_138),
    "create the contract": (576_196, 0, 104, 88_109),
    "set_anchor, first": (488_109, 0, 352, 759_684),
    "set_anchor_if, first": (489_293, 0, 352, 760_246),
    "set_anchor, update": (542_246, 0, 352, 73_462),
    "set_anchor_if, update": (543_430, 0, 352, 74_024),
    "get_anchor": (386_735, 0, 0, 55_364),
    "get_version": (379_668, 0, 0, 52_652),
    "is_anchored": (353_624, 0, 0, 52_542),
}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Cost]:
    """What `make bench` prints."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    costs: list[Cost] = importlib.import_module("benchmarks.contract_costs").measure(
        memory_anchor_wasm(), compare_and_set=True
    )
    return {cost.call: cost for cost in costs}


def test_every_call_costs_what_is_written_here(measured: dict[str, Cost]) -> None:
    assert {
        call: (cost.instructions, cost.read_bytes, cost.write_bytes, cost.fee)
        for call, cost in measured.items()
    } == COSTS


def test_the_readme_says_the_same() -> None:
    readme = (Path(__file__).parents[2] / "contracts" / "README.md").read_text()
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in readme.splitlines()
        if line.startswith("| ") and line.count("|") == 6
    ]
    table = {
        row[0].replace("`", ""): tuple(int(cell.replace(",", "")) for cell in row[1:]) for row in rows[1:]
    }
    assert table == COSTS
