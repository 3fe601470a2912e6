"""The picture: where points, steps and gaps are."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest

from mycelium_indexer.web.timeline import Plot, lines_of, plot_of

START = 1_700_000_000
DAY = 86_400


def anchor(version: int, timestamp: int | None) -> dict[str, Any]:
    return {"version": version, "timestamp": timestamp, "root": f"{version:064x}"}


def history(*versions: int, step: int = DAY) -> list[dict[str, Any]]:
    """Newest first, one each day."""
    return [anchor(version, START + version * step) for version in sorted(versions, reverse=True)]


def gap(first: int, last: int) -> dict[str, int]:
    return {"first": first, "last": last, "noticed_ledger": 1}


def plot(items: list[dict[str, Any]], *gaps: dict[str, int]) -> Plot:
    made = plot_of(lines_of(items, gaps))
    assert made is not None
    inside(made)
    return made


def inside(made: Plot) -> None:
    """Nothing is drawn outside the plot."""
    for point in made.points:
        assert 0 < point.x < 100
        assert 0 < point.y < 100
    for hole in made.holes:
        assert hole.x >= 0
        assert hole.y >= 0
        assert hole.x + hole.width <= 100
        assert hole.y + hole.height <= 100
        assert hole.width > 0
        assert hole.height > 0
    assert all(0 <= float(number) <= 1000 for number in re.findall(r"[\d.]+", made.path))


def test_time_runs_to_the_right_and_versions_upwards() -> None:
    made = plot([anchor(3, START + 10 * DAY), anchor(2, START + DAY), anchor(1, START)])
    first, second, third = made.points
    assert first.x < second.x < third.x
    assert first.y > second.y > third.y
    assert (second.x - first.x) * 9 == pytest.approx(third.x - second.x, rel=0.02)
    assert first.y - second.y == pytest.approx(second.y - third.y, abs=0.02)
    assert made.path == (
        f"M{first.x * 10:.1f} {first.y * 10:.1f}"
        f"H{second.x * 10:.1f}V{second.y * 10:.1f}H{third.x * 10:.1f}V{third.y * 10:.1f}"
    )
    assert made.timed
    assert [text for _, text in made.across] == ["2023-11-14", "2023-11-19", "2023-11-24"]
    assert [text for _, text in made.up] == ["v1", "v3"]


def test_a_single_version_is_in_the_middle() -> None:
    made = plot(history(1))
    (point,) = made.points
    assert made.timed
    assert (point.x, point.y) == (50.0, 50.0)
    assert made.across == ((50.0, "2023-11-15 22:13"),)
    assert made.caption == "Version 1, anchored 2023-11-15 22:13:20 UTC."


def test_hundreds_of_versions_are_hundreds_of_points_in_order() -> None:
    made = plot(history(*range(1, 501)))
    assert len(made.points) == 500
    assert all(one.x < two.x and one.y > two.y for one, two in pairwise(made.points))
    assert made.radius < plot(history(1, 2, 3)).radius
    assert [text for _, text in made.up] == ["v1", "v250", "v500"]


def test_a_gap_is_a_gap_and_the_steps_stop_at_it() -> None:
    made = plot(history(1, 2, 6, 7), gap(3, 5))
    (hole,) = made.holes
    before, after = made.points[1], made.points[2]
    assert hole.x == before.x
    assert hole.x + hole.width == pytest.approx(after.x, abs=0.02)
    assert after.y < hole.y < hole.y + hole.height < before.y
    assert hole.label == "Versions 3 to 5 are missing here"
    assert [part[0] for part in re.findall(r"[MHV][^MHV]*", made.path)] == list("MHVMHV")
    assert made.summary == made.caption + " Versions 3 to 5 are missing here."


def test_what_is_missing_before_the_first_has_room() -> None:
    made = plot(history(4, 5), gap(1, 3))
    (hole,) = made.holes
    assert hole.x == 0
    assert hole.width > 10
    assert hole.width == made.points[0].x
    assert [text for _, text in made.up] == ["v1", "v3", "v5"]


def test_a_page_shows_the_gap_below_its_last_version_but_none_further_down() -> None:
    lines = lines_of(history(9, 10), [gap(1, 2), gap(4, 6), gap(7, 8), gap(12, 13)])
    assert [(line.first, line.last) for line in lines] == [(10, 10), (9, 9), (7, 8), (4, 6)]
    assert lines_of(history(9, 10), [gap(1, 7)])[-1].anchor is not None


def test_nothing_is_no_picture() -> None:
    assert plot_of(lines_of([], [gap(1, 3)])) is None


@pytest.mark.parametrize(
    "strange", [None, -1, 2**63, 2**64 - 1], ids=["older contract", "negative", "far", "farther"]
)
def test_without_times_versions_are_evenly_spaced(strange: int | None) -> None:
    made = plot([anchor(3, strange), anchor(2, START), anchor(1, strange)])
    assert not made.timed
    assert not made.dated
    first, second, third = (point.x for point in made.points)
    assert second - first == pytest.approx(third - second, abs=0.02)
    assert [text for _, text in made.across] == ["v1", "v3"]


def test_times_that_run_backwards_stay_inside() -> None:
    made = plot([anchor(3, START), anchor(2, START + 5), anchor(1, START + 9)])
    assert made.points[0].x > made.points[2].x


def test_what_was_anchored_in_one_second_is_evenly_spaced() -> None:
    made = plot([anchor(3, START), anchor(2, START), anchor(1, START)])
    first, second, third = (point.x for point in made.points)
    assert second - first == pytest.approx(third - second, abs=0.02)
    assert (made.dated, made.timed) == (True, False)
    assert made.caption.endswith("anchored from 2023-11-14 22:13:20 UTC to 2023-11-14 22:13:20 UTC.")


def test_hours_are_shown_where_days_say_too_little() -> None:
    made = plot(history(1, 2, step=3600))
    assert [text for _, text in made.across] == [
        "2023-11-14 23:13",
        "2023-11-14 23:43",
        "2023-11-15 00:13",
    ]


def test_many_gaps_are_not_all_named() -> None:
    gaps = [gap(number, number) for number in range(2, 82, 2)]
    made = plot(history(*range(1, 83, 2)), *gaps)
    assert len(made.holes) == 40
    assert made.summary.count("is missing here") == 20
    assert made.summary.endswith("And 20 more gaps.")
