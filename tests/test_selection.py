"""Which cases stand for the others, which tests are a part of all, and what is said of those that cannot run here."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import cpu_problems
import pytest
from command import PROJECT
from selection import covering, drawn_pairs, few_then_slow, pairs_then_slow, part_of

MATRICES = {
    "three by three by four": [*product(range(3), "abc", (1.0, 2.0, 3.0, 4.0))],
    "not all there are": [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "y"), ("b", 1, "x")],
    "geometry": list(cpu_problems.GEOMETRY),
}


def pairs_of(rows: Any) -> set[tuple[Any, ...]]:
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


@pytest.mark.parametrize("rows", MATRICES.values(), ids=MATRICES)
def test_every_pair_that_occurs_is_chosen(rows: list[tuple]) -> None:
    assert pairs_of(rows[number] for number in covering(rows)) == pairs_of(rows)


def test_fewer_are_chosen_where_there_are_more_than_two_properties() -> None:
    rows = MATRICES["three by three by four"]
    assert len(covering(rows)) < len(rows) / 2
    assert len(covering(rows, together=1)) == 4


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


def test_drawn_rows_hold_every_pair_that_is_allowed_and_no_other_rows() -> None:
    properties = ("abcde", range(4), (False, True), range(5))

    def allowed(letter: str, number: int, flag: bool, last: int) -> bool:
        return not (letter == "a" and flag) and number <= last + 1

    rows = drawn_pairs(properties, allowed)
    assert rows == drawn_pairs(properties, allowed)
    possible = [row for row in product(*properties) if allowed(*row)]
    assert set(rows) <= set(possible)
    assert pairs_of(rows) == pairs_of(possible)
    assert len(rows) < len(possible) / 3


def test_parts_are_whole_files_of_about_as_many_tests_and_all_of_them() -> None:
    tests = [
        f"tests/{file}.py::test[{number}]"
        for file, count in zip("abcde", (50, 30, 24, 8, 1), strict=True)
        for number in range(count)
    ]
    parts = [part_of(tests, f"{number}/2") for number in (1, 2)]
    assert sorted([*parts[0], *parts[1]]) == sorted(tests)
    assert [len({test[:8] for test in part}) for part in parts] == [2, 3]
    assert [len(part) for part in parts] == [58, 55]
    for wrong in ("", "2", "0/2", "3/2", "1/x"):
        with pytest.raises(pytest.UsageError, match="1/2"):
            part_of(tests, wrong)


def test_what_is_missing_is_counted_and_a_failure_if_asked(tmp_path: Path) -> None:
    (tmp_path / "test_few.py").write_text("def test_it(): pass\n")
    skipping = (
        'import pytest\n@pytest.mark.parametrize("n", range(3))\ndef test_it(n): pytest.skip("CuPy is not installed")\n'
    )
    (tmp_path / "test_many.py").write_text(skipping)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), str(PROJECT / "tests")])}

    def run(*words: str) -> tuple[int, str]:
        options = ("-c", str(PROJECT / "pyproject.toml"), "-p", "conftest", "-p", "no:cacheprovider")
        command = (sys.executable, "-m", "pytest", "-q", *options, str(tmp_path), *words)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    for words, code, says in (
        (("--complete",), 1, ("3: CuPy is not here", "1 passed, 3 skipped")),
        (("--complete", "--part", "2/2"), 0, ("1 passed, 3 deselected",)),
    ):
        ended, text = run(*words)
        assert (ended, [word for word in says if word not in text]) == (code, []), text
