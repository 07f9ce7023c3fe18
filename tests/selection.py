"""Which cases of a matrix stand for the others where there is little time, and which tests are a part of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from random import Random
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

    At each step the row with the most that is new is taken, the first of several: what is new in a row never grows, so
    that a row is counted again only where it may be that one.
    """
    held = [set(combinations(enumerate(row), together)) for row in rows]
    missing = set().union(*held)
    waiting = [(-len(pairs), number) for number, pairs in enumerate(held)]
    heapify(waiting)
    chosen: set[int] = set()
    while missing:
        _, number = heappop(waiting)
        now = (-len(held[number] & missing), number)
        if waiting and now > waiting[0]:
            heappush(waiting, now)
        else:
            chosen.add(number)
            missing -= held[number]
    return chosen


MOST_DRAWN, BEST_OF = 300, 12


def drawn_pairs(
    properties: Sequence[Sequence[Hashable]], allowed: Callable[..., bool], seed: int = 0
) -> list[tuple[Any, ...]]:
    """Allowed rows, one value of each property, in which any two values that can be together are.

    For products that are far too large to list. Each row is the best of some drawn ones that hold the first pair which
    is still missing; a pair that no drawn row may hold cannot be had. The rows are the same every time.
    """
    draw = Random(seed)
    missing = dict.fromkeys(
        ((i, first), (j, second))
        for (i, here), (j, there) in combinations(enumerate(properties), 2)
        for first in here
        for second in there
    )
    rows = []
    while missing:
        needed = next(iter(missing))
        drawn: list[tuple[Any, ...]] = []
        for _ in range(MOST_DRAWN):
            row = [draw.choice(values) for values in properties]
            for column, value in needed:
                row[column] = value
            if allowed(*row):
                drawn.append(tuple(row))
            if len(drawn) == BEST_OF:
                break
        missing.pop(needed)
        if drawn:
            held = [[pair for pair in combinations(enumerate(row), 2) if pair in missing] for row in drawn]
            best = max(range(len(drawn)), key=lambda number: len(held[number]))
            rows.append(drawn[best])
            for pair in held[best]:
                missing.pop(pair)
    return rows


def part_of(tests: Sequence[str], part: str) -> set[str]:
    """Those of one part (`1/2`), by their names: whole files, so that all parts have about as many tests."""
    number, _, parts = part.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise pytest.UsageError(f"--part {part}: one of how many it is, as in 1/2")
    files = Counter(test.partition("::")[0] for test in tests)
    held: list[list[str]] = [[] for _ in range(int(parts))]
    for file, _ in sorted(files.items(), key=lambda each: (-each[1], each[0])):
        min(held, key=lambda files_of_part: sum(files[name] for name in files_of_part)).append(file)
    return {test for test in tests if test.partition("::")[0] in held[int(number) - 1]}
