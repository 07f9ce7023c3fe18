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
from statistics import geometric_mean
from typing import Any, Literal, get_args

from edgeconv.bench.grid import Case
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.summary import fastest, median, timed_by_case
from edgeconv.core.records import as_type

Measure = Literal["floor", "roofline", "rivals", "call", "own bytes", "lead"]
AT_MOST: tuple[Measure, ...] = ("rivals", "call", "own bytes")
MICROSECOND = 1e-6


@dataclass(frozen=True)
class Goal:
    """One bar on a case; `by` are its candidates, and `against` its rivals."""

    measure: Measure
    bar: float
    on: str
    """Device, type, filter and channels."""
    sizes: tuple[int, ...] = (4096,)
    strides: tuple[int, ...] = (1,)
    by: tuple[str, ...] = ("sliding",)
    against: tuple[str, ...] = ()
    binds: str = ""
    """What binds it where it is missed."""

    @property
    def case(self) -> str:
        """What it is about, in a few words."""
        device, *others = self.on.split()
        return ", ".join([device.upper(), *others])


@dataclass(frozen=True)
class GoalResult:
    """What a record says about a goal at a size and stride; `size` and `stride` are None for a mean over all."""

    goal: Goal
    size: int | None
    stride: int | None
    candidate: str
    figure: float
    present: set[str]
    """Who has a time there."""

    @property
    def words(self) -> str:
        """The bar and whom it was held against, in words."""
        goal = self.goal
        sign = "≤" if goal.measure in AT_MOST else "≥"
        bar = f"{goal.bar / MICROSECOND:g} µs" if goal.measure == "call" else f"{goal.bar:g}"
        rivals = ", ".join(name for name in goal.against if name in self.present)
        return f"{goal.measure} {sign} {bar}" + (f" ({rivals})" if rivals else "")

    @property
    def met(self) -> bool:
        """Whether the bar is reached."""
        return self.figure <= self.goal.bar if self.goal.measure in AT_MOST else self.figure >= self.goal.bar

    @property
    def short_by(self) -> float:
        """By how much of the bar it is missed; 0 where it is met."""
        return 0.0 if self.met else abs(self.figure / self.goal.bar - 1)


def _goals(content: Mapping[str, Any]) -> Iterator[Goal]:
    """A goal for each case of each row."""
    for row in content["goals"]:
        words = {key: content["names"][word] if isinstance(word, str) else word for key, word in row.items()}
        (measure,) = row.keys() & set(get_args(Measure))
        words |= {"measure": measure, "bar": words.pop(measure)}
        for case in words["on"]:
            yield as_type(words | {"on": case}, Goal)


GOALS = tuple(_goals(tomllib.loads(Path(__file__).with_name("goals.toml").read_text(encoding="utf-8"))))


def outcomes(record: BenchRecord) -> list[GoalResult]:
    """Every goal that the record has rows for, in the table's order."""
    timed = timed_by_case(record)
    return [outcome for goal in GOALS for outcome in _of_goal(goal, timed)]


def _of_goal(goal: Goal, timed: Mapping[tuple[str, Case], list[BenchRow]]) -> list[GoalResult]:
    found = []
    device, dtype, filter_name, channels = goal.on.split()
    for stride, size in product(goal.strides, goal.sizes):
        rows = timed.get((device, Case(size, stride, dtype, filter_name, channels)), [])
        own = fastest(row for row in rows if row.candidate in goal.by)
        rival = fastest(row for row in rows if row.candidate in goal.against)
        copy = fastest(row for row in rows if row.kind == "copy")
        figure = None if own is None else _figure(goal.measure, own, rival, copy)
        if own is not None and figure is not None:
            found.append(GoalResult(goal, size, stride, own.candidate, figure, {row.candidate for row in rows}))
    if goal.measure != "lead" or not found:
        return found
    mean = geometric_mean(each.figure for each in found)
    return [GoalResult(goal, None, None, f"{len(found)} cases", mean, set().union(*(each.present for each in found)))]


def _figure(measure: Measure, own: BenchRow, rival: BenchRow | None, copy: BenchRow | None) -> float | None:
    """Of the fastest candidate, the fastest rival and the copy at a case; None where they do not say."""
    metrics = own.lead_metrics
    match measure:
        case "floor" if metrics is not None:
            return metrics.floor_share
        case "roofline" if metrics is not None:
            return metrics.roofline_share
        case "call" if own.launch is not None:
            return own.launch.stream_seconds
        case "own bytes" if copy is not None and own.moved_bytes and copy.moved_bytes:
            # the copy moves its bytes in its time, so in proportion the method's own in theirs
            return median(own) / median(copy) * copy.moved_bytes / own.moved_bytes
        case "rivals" if rival is not None:
            return median(own) / median(rival)
        case "lead" if rival is not None:
            return median(rival) / median(own)
    return None
