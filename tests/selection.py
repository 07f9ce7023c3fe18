"""Which cases of a matrix stand for the others where there is little time: the rest carries the mark `slow`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import Any

import pytest


def few_then_slow(cases: Sequence[Any], few: int = 1) -> list[Any]:
    """The first `few` cases as they are; the others for a run that takes the slow tests too (.ci/run)."""
    return [*cases[:few], *(_slow(case) for case in cases[few:])]


def pairs_then_slow(cases: Sequence[Any], values: Callable[[Any], Sequence[Hashable]] = tuple) -> list[Any]:
    """As they are so many cases that any two values which meet in a case meet in one of these; the others slow.

    `values` are the properties of a case, in one order for all. Most faults need one value or two of them to show
    (Kuhn, Wallace and Gallo, Software fault interactions, 2004).
    """
    chosen = in_pairs([tuple(values(case)) for case in cases])
    return [case if number in chosen else _slow(case) for number, case in enumerate(cases)]


def in_pairs(rows: Sequence[tuple[Hashable, ...]]) -> set[int]:
    """Numbers of rows in which every pair of values occurs that occurs at all; at each step the row with the most new
    pairs, the first of several.
    """
    pairs = [set(combinations(enumerate(row), 2)) or set(enumerate(row)) for row in rows]
    missing = set().union(*pairs) if pairs else set()
    chosen: set[int] = set()
    while missing:
        best = max(range(len(rows)), key=lambda number: len(pairs[number] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return chosen


def _slow(case: Any) -> Any:
    """The case with the mark; one that has several arguments stays so."""
    several = type(case) is tuple
    return pytest.param(*case, marks=pytest.mark.slow) if several else pytest.param(case, marks=pytest.mark.slow)
