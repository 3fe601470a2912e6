"""The statistics of getFeeStats, by themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mycelium_localnet.rpc.fee_stats import distribution


def test_no_fees_are_zeros() -> None:
    answer = distribution([], 50)
    assert answer.pop("ledgerCount") == 0
    assert set(answer.values()) == {"0"}


def test_a_known_distribution() -> None:
    answer = distribution([100] * 90 + [200] * 9 + [5000], 7)
    assert answer == {
        "max": "5000",
        "min": "100",
        "mode": "100",
        **{f"p{percent}": "100" for percent in (10, 20, 30, 40, 50, 60, 70, 80, 90)},
        "p95": "200",
        "p99": "200",
        "transactionCount": "100",
        "ledgerCount": 7,
    }


@given(fees=st.lists(st.integers(100, 10**6), min_size=1, max_size=60))
def test_percentiles_are_fees_that_cover_their_share(fees: list[int]) -> None:
    answer = distribution(fees, 3)
    for percent in (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99):
        value = int(str(answer[f"p{percent}"]))
        assert value in fees
        assert sum(fee <= value for fee in fees) * 100 >= percent * len(fees)
        assert sum(fee < value for fee in fees) * 100 < percent * len(fees)
    assert fees.count(int(str(answer["mode"]))) == max(map(fees.count, fees))
