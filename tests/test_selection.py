"""Which cases stand for the others, which tests are a part of all, and what is said of those that cannot run here."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from command import PROJECT
from selection import drawn_pairs, few_then_slow, pairs_then_slow, part_of


def pairs_of(rows: Any) -> set[tuple[Any, ...]]:
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


@pytest.mark.parametrize(
    ("rows", "most"),
    [([*product(range(3), "abc", (1.0, 2.0, 3.0, 4.0))], 17), ([("a", 1, "x"), ("a", 2, "y"), ("b", 1, "y")], 3)],
)
def test_few_hold_every_pair_and_the_others_are_slow(rows: list[tuple], most: int) -> None:
    cases = pairs_then_slow(rows)
    assert [getattr(case, "values", case) for case in cases] == rows
    slow = [case for case in cases if hasattr(case, "marks")]
    assert {mark.name for case in slow for mark in case.marks} <= {"slow"}
    quick = [case for case in cases if case not in slow]
    assert pairs_of(quick) == pairs_of(rows)
    assert len(quick) <= most
    first, second = few_then_slow([(7, 2), (9, 3)])
    assert (first, second.values) == ((7, 2), ((9, 3),)), "a case that is a tuple is one argument"


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
    counts = {"a": 50, "b": 30, "c": 24, "d": 8, "e": 1}
    tests = [f"tests/{file}.py::test[{number}]" for file, count in counts.items() for number in range(count)]
    parts = [part_of(tests, f"{number}/2") for number in (1, 2)]
    assert sorted([*parts[0], *parts[1]]) == sorted(tests)
    assert [len(part) for part in parts] == [58, 55]
    for wrong in ("", "2", "0/2", "3/2", "1/x"):
        with pytest.raises(pytest.UsageError, match="1/2"):
            part_of(tests, wrong)


def test_what_is_missing_is_counted_and_a_failure_if_asked(tmp_path: Path) -> None:
    skips = (
        'import pytest\n@pytest.mark.parametrize("n", range(3))\ndef test_it(n): pytest.skip("CuPy is not installed")\n'
    )
    (tmp_path / "test_few.py").write_text("def test_it(): pass\n")
    (tmp_path / "test_many.py").write_text(skips)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), str(PROJECT / "tests")])}
    options = ("-c", str(PROJECT / "pyproject.toml"), "-p", "conftest", "-p", "no:cacheprovider", "--complete")
    command = (sys.executable, "-m", "pytest", "-q", *options, str(tmp_path), "--part", "1/1")
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    missing = [word for word in ("3: CuPy is not here", "1 passed, 3 skipped") if word not in done.stdout]
    assert (done.returncode, missing) == (1, []), done.stdout
