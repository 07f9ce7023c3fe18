"""The bars that the project sets itself (goals.toml), and what a record says about each: figure beside goal.

A goal stands for every size and stride that it names. The figure is that of the fastest of its candidates there:

    floor      share of the floor                                                        at least
    roofline   share of the roofline                                                     at least
    rivals     its time over that of the fastest rival                                   at most
    call       seconds per call, back to back on a stream                                at most
    own bytes  its time over that of its own bytes at the copy's bandwidth               at most
    lead       the fastest rival's time over its own, geometric mean of all of the goal  at least
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import fastest, geometric_mean, median
from edgeconv.core.records import as_type

Measure = Literal["floor", "roofline", "rivals", "call", "own bytes", "lead"]
AT_MOST: tuple[Measure, ...] = ("rivals", "call", "own bytes")
MICROSECOND = 1e-6


@dataclass(frozen=True)
class Goal:
    """One bar."""

    measure: Measure
    bar: float
    device: str
    dtype: str
    filter: str
    channels: str
    sizes: tuple[int, ...] = (4096,)
    strides: tuple[int, ...] = (1,)
    candidates: tuple[str, ...] = ("sliding",)
    rivals: tuple[str, ...] = ()
    binds: str = ""
    """What binds it where it is missed."""

    @property
    def case(self) -> str:
        """What it is about, in a few words."""
        return f"{self.device.upper()}, {self.dtype}, {self.filter}, {self.channels}"

    @property
    def words(self) -> str:
        """The bar, in words."""
        sign = "≤" if self.measure in AT_MOST else "≥"
        bar = f"{self.bar / MICROSECOND:g} µs" if self.measure == "call" else f"{self.bar:g}"
        return f"{self.measure} {sign} {bar}"


@dataclass(frozen=True)
class GoalResult:
    """What a record says about a goal at a size and stride; `size` and `stride` are None for a mean over all."""

    goal: Goal
    size: int | None
    stride: int | None
    candidate: str
    figure: float
    present: frozenset[str] = frozenset()
    """Those of the goal's rivals that have a time there."""

    @property
    def words(self) -> str:
        """The bar and whom it was held against, in words."""
        rivals = [name for name in self.goal.rivals if name in self.present]
        return f"{self.goal.words} ({', '.join(rivals)})" if rivals else self.goal.words

    @property
    def met(self) -> bool:
        """Whether the bar is reached."""
        at_most = self.goal.measure in AT_MOST
        return self.figure <= self.goal.bar if at_most else self.figure >= self.goal.bar

    @property
    def short_by(self) -> float:
        """By how much of the bar it is missed; 0 where it is met."""
        return 0.0 if self.met else abs(self.figure / self.goal.bar - 1)


KEYS = {"by": "candidates", "against": "rivals"}
"""Short words of goals.toml, so that a row is a line."""


def _goals(content: Mapping[str, Any]) -> Iterator[Goal]:
    """A goal for each case of each row."""
    names = content["names"]
    for row in content["goals"]:
        (measure,) = row.keys() & set(get_args(Measure))
        words = {"measure": measure, "bar": row[measure]}
        for key in row.keys() - {measure}:
            words[KEYS.get(key, key)] = names[row[key]] if isinstance(row[key], str) else row[key]
        for place in words.pop("on"):
            case = dict(zip(("device", "dtype", "filter", "channels"), place.split(), strict=True))
            yield as_type(words | case, Goal)


GOALS = tuple(_goals(tomllib.loads(Path(__file__).with_name("goals.toml").read_text(encoding="utf-8"))))


def outcomes(record: BenchRecord) -> list[GoalResult]:
    """Every goal that the record has rows for, in the table's order."""
    return [outcome for goal in GOALS for outcome in _of_goal(record, goal)]


def _of_goal(record: BenchRecord, goal: Goal) -> Iterator[GoalResult]:
    leads, met_in_all = [], frozenset[str]()
    for stride, size in product(goal.strides, goal.sizes):
        rows = [row for row in record.rows if _is_about(row, goal, size, stride)]
        own = fastest(row for row in rows if row.candidate in goal.candidates)
        rival = fastest(row for row in rows if row.candidate in goal.rivals)
        present = frozenset(row.candidate for row in rows) & set(goal.rivals)
        figure = None if own is None else _figure(goal.measure, own, rival, rows)
        if own is None or figure is None or (goal.rivals and rival is None):
            continue
        if goal.measure == "lead":
            leads.append(figure)
            met_in_all |= present
        else:
            yield GoalResult(goal, size, stride, own.candidate, figure, present)
    mean = geometric_mean(leads)
    if mean is not None:
        yield GoalResult(goal, None, None, f"{len(leads)} cases", mean, met_in_all)


def _is_about(row: BenchRow, goal: Goal, size: int, stride: int) -> bool:
    case = row.case
    asked = (goal.device, goal.dtype, goal.filter, goal.channels, size, stride)
    found = (row.device, case.dtype, case.filter, case.channels, case.size, case.stride)
    return asked == found and case.picture is None and row.lead_series is not None


def _figure(measure: Measure, own: BenchRow, rival: BenchRow | None, rows: list[BenchRow]) -> float | None:
    """Of the fastest candidate, the fastest rival and all rows of a case; None where they do not say."""
    match measure:
        case "floor" | "roofline":
            found = own.lead_metrics
            share = None if found is None else found.floor_share if measure == "floor" else found.roofline_share
            return share
        case "call":
            return None if own.launch is None else own.launch.stream_seconds
        case "own bytes":  # the copy moves its bytes in its time, so in proportion the method's own in theirs
            copy = fastest(row for row in rows if row.kind == "copy")
            if copy is None or not own.moved_bytes or not copy.moved_bytes:
                return None
            return median(own) / (median(copy) * float(own.moved_bytes) / float(copy.moved_bytes))
    if rival is None:
        return None
    return median(own) / median(rival) if measure == "rivals" else median(rival) / median(own)
