"""What may happen to machines in the tests of crashes: steps to die at, and faults of the chain."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mycelium_localnet.faults import kinds
from mycelium_sdk.steps import Step

steps = st.sampled_from(list(Step))
conflicts = st.sampled_from(["refuse", "merge", "replace"])


def aims() -> list[tuple[kinds.FaultKind, str | None]]:
    """Every fault, for all requests that it can hit and for those of one method; the two that transactions
    depend on come twice as often."""
    methods = ("sendTransaction", "getTransaction", "simulateTransaction", "getLedgerEntries")
    return [
        (kind, method)
        for kind in kinds.KINDS
        for method in (None, *methods, "sendTransaction", "getTransaction")
        if method is None or method in kinds._CONCERNS[kind]
    ]


@st.composite
def faults(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of `Chain.fault`."""
    kind, method = draw(st.sampled_from(aims()))
    fault: dict[str, Any] = {
        "kind": kind,
        "count": draw(st.sampled_from([1, 3, 25, 1_000_000, 1_000_000])),
        "seed": draw(st.integers(0, 7)),
    }
    if method is not None:
        fault["methods"] = [method]
    options: dict[str, list[Any]] = {
        "ledgers": [1, 2, 5], "carried_out": [None, True, False], "seconds": [0.0005]
    }  # fmt: skip
    for option, values in options.items():
        if option in kinds._TAKES[kind]:
            fault[option] = draw(st.sampled_from(values))
    return fault


troubles = st.lists(faults(), max_size=2)
