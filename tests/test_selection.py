"""Which cases of a matrix are not slow: each pair of values is in one of them."""

from __future__ import annotations

from itertools import combinations, product

import cpu_problems
import pytest
from selection import covering, few_then_slow, pairs_then_slow

MATRICES = {
    "two by two": [*product("ab", "cd")],
    "three by three by four": [*product(range(3), "abc", (1.0, 2.0, 3.0, 4.0))],
    "not all there are": [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "y"), ("b", 1, "x")],
    "geometry": list(cpu_problems.GEOMETRY),
}


@pytest.mark.parametrize("rows", MATRICES.values(), ids=MATRICES)
def test_every_pair_that_occurs_is_chosen(rows: list[tuple]) -> None:
    chosen = [rows[number] for number in covering(rows)]
    for first, second in combinations(range(len(rows[0])), 2):
        assert {(row[first], row[second]) for row in chosen} == {(row[first], row[second]) for row in rows}


def test_fewer_are_chosen_where_there_are_more_than_two_properties() -> None:
    rows = MATRICES["three by three by four"]
    assert len(covering(rows)) < len(rows) / 2
    assert len(covering(MATRICES["two by two"])) == 4


def test_every_value_alone_is_chosen() -> None:
    rows = MATRICES["three by three by four"]
    chosen = [rows[number] for number in covering(rows, 1)]
    assert len(chosen) == 4
    for number in range(3):
        assert {row[number] for row in chosen} == {row[number] for row in rows}


def test_the_others_are_slow_and_none_is_lost() -> None:
    rows = MATRICES["three by three by four"]
    cases = pairs_then_slow(rows)
    slow = [case for case in cases if hasattr(case, "marks")]
    assert [getattr(case, "values", case) for case in cases] == rows
    assert len(slow) == len(rows) - len(covering(rows))
    assert {mark.name for case in slow for mark in case.marks} == {"slow"}


def test_a_case_that_is_a_tuple_is_one_argument_or_several_as_the_test_wants() -> None:
    first, second = few_then_slow([(7, 2), (9, 3)])
    assert (first, second.values) == ((7, 2), ((9, 3),))
    kept = pairs_then_slow(["aa", "ab", "aa"], list)
    assert (kept[:2], kept[2].values) == (["aa", "ab"], ("aa",))
