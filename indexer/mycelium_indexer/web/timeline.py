"""The picture of an owner's versions: where its points, steps, gaps and labels are. Pure geometry.

Time runs to the right and versions upwards, so a history is a staircase: steep where an owner anchored often,
flat where it rested. Points and gaps are given in percent of the plot, so that it is drawn without a script
at any width and its text never shrinks; the staircase is a path over 1000 by 1000, stretched to the plot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mycelium_indexer.web.wording import clock_time, day, is_moment, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Hole", "Line", "Plot", "Point", "lines_of", "plot_of"]

_INSET = 4.0
_WIDE_INSET = 14.0  # where versions are missing before the first point: that much room shows them
_TWO_DAYS = 2 * 86400
_NAMED = 20


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the history, newest first: an anchor as the API gives it, or versions `first` to `last`,
    which the index lacks."""

    first: int
    last: int
    anchor: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Point:
    """One version. `x` and `y` in percent, from the left and from the top."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Hole:
    """Missing versions, as a box in percent."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Everything that is drawn.

    `points`: oldest first. `across`, `up`: labels of the axes as (percent, text). `dated`: False where the
    contract keeps no times. `timed`: False where versions are evenly spaced, for that reason or since all
    were anchored in the same second. `caption` says what is shown, `summary` also what is missing.
    """

    points: tuple[Point, ...]
    holes: tuple[Hole, ...]
    path: str
    radius: float
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    dated: bool
    timed: bool
    caption: str
    summary: str


def lines_of(items: Sequence[dict[str, Any]], gaps: Sequence[dict[str, int]]) -> list[Line]:
    """Anchors (newest first) and, where versions are passed over, the gaps that explain it, also those right
    below the last one."""
    found = [Line(item["version"], item["version"], item) for item in items]
    if not found:
        return []
    newest, oldest = found[0].last, found[-1].first
    holes = [Line(gap["first"], gap["last"], None) for gap in gaps if gap["first"] <= newest]
    for hole in sorted(holes, key=lambda one: -one.last):
        if hole.last >= oldest - 1:
            found.append(hole)
            oldest = min(oldest, hole.first)
    return sorted(found, key=lambda line: -line.last)


def plot_of(lines: Sequence[Line]) -> Plot | None:
    """The picture of these lines, None without an anchor among them."""
    rising = list(reversed(lines))
    anchors = [line.anchor for line in rising if line.anchor is not None]
    if not anchors:
        return None
    across = _Across(rising, [anchor["timestamp"] for anchor in anchors])
    low, high = rising[0].first, rising[-1].last
    up = _Scale(low, high, 100 - _INSET * 1.5, _INSET * 1.5)
    points: list[Point] = []
    holes: list[Hole] = []
    path: list[str] = []
    broken = True
    for place, line in enumerate(rising):
        if line.anchor is None:
            holes.append(_hole(rising, place, across, up))
            broken = True
            continue
        x, y = across.of(line), up.of(line.last)
        points.append(Point(_percent(x), _percent(y), _label(line.anchor)))
        path.append(f"M{x * 10:.1f} {y * 10:.1f}" if broken else f"H{x * 10:.1f}V{y * 10:.1f}")
        broken = False
    caption = _caption(anchors, dated=across.dated)
    return Plot(
        points=tuple(points),
        holes=tuple(holes),
        path="".join(path),
        radius=5 if len(points) <= 40 else 3.5 if len(points) <= 150 else 2.5,
        across=across.labels(),
        up=_up_labels(low, high, up),
        dated=across.dated,
        timed=across.timed,
        caption=caption,
        summary=caption + _all_missing([line for line in rising if line.anchor is None]),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps `low` to `start` percent and `high` to `end`; what has no extent, to the middle."""

    low: int
    high: int
    start: float
    end: float

    def of(self, value: float) -> float:
        if self.low == self.high:
            return (self.start + self.end) / 2
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, part)) * (self.end - self.start)


class _Across:
    """The axis to the right: time, where all anchors have one that is a date and they differ."""

    def __init__(self, rising: Sequence[Line], times: Sequence[int | None]) -> None:
        known = [time for time in times if time is not None and is_moment(time)]
        self.dated = len(known) == len(times)
        self.timed = self.dated and (len(known) == 1 or min(known) < max(known))
        if self.timed:
            start = _INSET if rising[0].anchor is not None else _WIDE_INSET
            self._scale = _Scale(min(known), max(known), start, 100 - _INSET)
        else:
            self._scale = _Scale(rising[0].first, rising[-1].last, _INSET, 100 - _INSET)

    def of(self, line: Line) -> float:
        if self.timed and line.anchor is not None:
            return self._scale.of(line.anchor["timestamp"])
        return self._scale.of(line.last)

    def labels(self) -> tuple[tuple[float, str], ...]:
        scale = self._scale
        values = [scale.low] if scale.low == scale.high else [scale.low, scale.high]
        if scale.high - scale.low >= 4:
            values.insert(1, (scale.low + scale.high) // 2)
        dated = clock_time if scale.high - scale.low < _TWO_DAYS else day
        write: Callable[[int], str] = dated if self.timed else _version
        return tuple((_percent(scale.of(value)), write(value)) for value in values)


def _hole(rising: Sequence[Line], place: int, across: _Across, up: _Scale) -> Hole:
    """The box from the anchor before the missing versions to the one after them."""
    line = rising[place]
    older = next((one for one in reversed(rising[:place]) if one.anchor is not None), None)
    newer = next(one for one in rising[place + 1 :] if one.anchor is not None)
    left = 0.0 if older is None else across.of(older)
    right = max(across.of(newer), left + 1)
    top, bottom = up.of(line.last + 0.5), up.of(line.first - 0.5)
    return Hole(
        _percent(left),
        _percent(top),
        _percent(right - left),
        _percent(max(2.0, bottom - top)),
        _missing(line),
    )


def _up_labels(low: int, high: int, up: _Scale) -> tuple[tuple[float, str], ...]:
    values = sorted({low, (low + high) // 2, high} if high - low >= 4 else {low, high})
    return tuple((_percent(up.of(value)), _version(value)) for value in values)


def _caption(anchors: Sequence[dict[str, Any]], *, dated: bool) -> str:
    first, last = anchors[0], anchors[-1]
    if len(anchors) == 1:
        text = f"Version {last['version']}"
        when = f", anchored {moment(last['timestamp'])}" if dated else ""
    else:
        text = f"{len(anchors)} versions, from {first['version']} to {last['version']}"
        when = f", anchored from {moment(first['timestamp'])} to {moment(last['timestamp'])}" if dated else ""
    return f"{text}{when}."


def _all_missing(missing: Sequence[Line]) -> str:
    holes = "".join(f" {_missing(line)}." for line in missing[:_NAMED])
    more = len(missing) - _NAMED
    return f"{holes} And {more} more gaps." if more > 0 else holes


def _missing(line: Line) -> str:
    if line.first == line.last:
        return f"Version {line.first} is missing here"
    return f"Versions {line.first} to {line.last} are missing here"


def _label(anchor: dict[str, Any]) -> str:
    when = "" if anchor["timestamp"] is None else f", {moment(anchor['timestamp'])}"
    return f"Version {anchor['version']}{when}, root {anchor['root'][:12]}…"


def _version(number: int) -> str:
    return f"v{number}"


def _percent(value: float) -> float:
    return round(value, 2)
