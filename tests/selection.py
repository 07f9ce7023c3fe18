"""Which cases of a matrix stand for the others where there is little time: the rest carries the mark `slow`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import Any

import pytest


def few_then_slow(cases: Sequence[Any], few: int = 1) -> list[Any]:
    """The first `few` cases as they are; the others for a run that takes the slow tests too (.ci/run)."""
    return [*cases[:few], *(pytest.param(case, marks=pytest.mark.slow) for case in cases[few:])]


def pairs_then_slow(
    cases: Sequence[Any],
    values: Callable[[Any], Sequence[Hashable]] = tuple,
    *,
    several: bool | None = None,
    together: int = 2,
) -> list[Any]:
    """So many cases as they are that any two values which meet in a case meet in one of these; the others slow.

    `values` are the properties of a case, in one order for all; by default a case is a row of several arguments, which
    are its properties. With `together=1` each value is in one of the cases. Most faults need one value or two of them
    to show (Kuhn, Wallace and Gallo, Software fault interactions, 2004).
    """
    chosen = covering([tuple(values(case)) for case in cases], together)
    rows = cases if (values is tuple if several is None else several) else [(case,) for case in cases]
    return [
        case if number in chosen else pytest.param(*row, marks=pytest.mark.slow)
        for number, (case, row) in enumerate(zip(cases, rows, strict=True))
    ]


def covering(rows: Sequence[tuple[Hashable, ...]], together: int = 2) -> set[int]:
    """Numbers of rows in which every `together` values occur together that do so at all.

    At each step the row with the most that is new is taken, the first of several.
    """
    held = [set(combinations(enumerate(row), together)) for row in rows]
    missing = set().union(*held)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(rows)), key=lambda number: len(held[number] & missing))
        chosen.add(best)
        missing -= held[best]
    return chosen
