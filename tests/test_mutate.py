"""The mutation run: what it changes, what it catches and misses in a tiny module, and that its lists are up to date."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command import PROJECT, script

mutants: Any = script("mutants")
needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="it forks")
TABLE = tomllib.loads((PROJECT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
EXPLAINED = tomllib.loads((PROJECT / "tests" / "mutants_equivalent.toml").read_text(encoding="utf-8"))["mutant"]


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants.mutants_of(source, ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["a < b → a <= b"]),
        ("x = a == b != c", ["a == b != c → a != b != c", "a == b != c → a == b == c"]),
        ("x = a < b < c", ["a < b < c → a <= b < c", "a < b < c → a < b <= c"]),
        ("x = a is b or c", ["a is b or c → a is b and c", "a is b → a is not b"]),
        ("x = b not in c", ["b not in c → b in c"]),
        ("x = a + b * c", ["a + b * c → a - b * c", "b * c → b / c"]),
        ("x = not a, -b", ["not a → a", "-b → b"]),
        ("x = 5, 0", ["5 → 6", "5 → 4", "0 → 1"]),
        ("x = 0.5, True", ["0.5 → 1.0", "True → False"]),
        ("x = 'text', None", []),
        ("x = a[1:b]", ["1:b → :b", "1:b → 1:", "1 → 2"]),
        ("x = min(a, b)", ["min → max"]),
        ("x = f(a, b=c)", ["b=c → dropped"]),
        ("x = zip(a, b, strict=True)", []),
        ("x = axis.plot(a, fontsize=8 + 1)", []),
        ("f(a)", ["f(a) → dropped"]),
        ("x += a", ["x += a → dropped"]),
        ("x.a = b", ["x.a = b → dropped"]),
        ("x = a if b else c", ["b → not b"]),
        ("x = [a for a in b if c]", ["c → not c"]),
        ("while a:\n    break", ["a → not a", "break → dropped"]),
        ("def f(a: 1 = 3, b='x') -> 4:\n    'text'", ["3 → 4", "3 → 2", "'x' → 'x?'"]),
        ("def f(a):\n    return a", ["return a → return None"]),
        ("if TYPE_CHECKING:\n    x = 1", []),
        ("@f(1)\ndef g():\n    raise E", ["raise E → dropped"]),
    ],
)
def test_what_is_changed(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


def test_each_change_is_made_and_no_other() -> None:
    source = "def f(a, b):\n    if a < b and b > 2:\n        g(a)\n    return [a, b][1:]\n"
    plain = ast.unparse(ast.parse(source))
    made = set()
    for number in range(len(changes(source))):
        tree = ast.parse(source)
        mutants.mutants_of(source, tree)[number].apply()
        compile(ast.fix_missing_locations(tree), "made", "exec")
        made.add(ast.unparse(tree))
    assert plain not in made
    assert len(made) == len(changes(source)) == 10


def test_two_of_the_same_in_one_line_keep_their_own_names() -> None:
    assert [change for change in changes("x = f(1, 1)") if "1" in change] == ["1 → 2", "1 → 2 #2"]


TINY = """LIMIT = 3


def above(value):
    return value > LIMIT


def unchecked(value):
    return value * 7


def unreached(value):
    return value - 1


def down(value):
    while value > 0:
        value -= 1
    return value
"""
TEST = """import tiny


def test_above():
    assert [tiny.above(value) for value in (3, 4)] == [False, True]


def test_unchecked():
    tiny.unchecked(2)


def test_down():
    assert tiny.down(3) == 0
"""
LIVED = {
    ("unchecked", "return value * 7", "return value * 7 → return None"),
    ("unchecked", "return value * 7", "value * 7 → value / 7"),
    ("unchecked", "return value * 7", "7 → 8"),
    ("unchecked", "return value * 7", "7 → 6"),
    ("unreached", "return value - 1", "return value - 1 → return None"),
    ("unreached", "return value - 1", "value - 1 → value + 1"),
    ("unreached", "return value - 1", "1 → 2"),
}


def run(folder: Path, explained: set[tuple[str, str, str]], *words: str) -> tuple[int, str, Any]:
    """Exit code, output and record of a run over the tiny module."""
    (folder / "tests").mkdir(exist_ok=True)
    entries = "".join(
        f"[[mutant]]\nmodule = 'tiny.py'\nfunction = '{f}'\nline = '{line}'\nchange = '{change}'\nreason = 'a test'\n"
        for f, line, change in explained
    )
    (folder / "tests" / "mutants_equivalent.toml").write_text(entries, encoding="utf-8")
    asked = ["--root", str(folder), "--module", "tiny.py", "--tests", "test_tiny.py", "--least-seconds", "1"]
    asked += ["--record", str(folder / "record.json"), *words]
    command = [sys.executable, str(PROJECT / "scripts" / "mutate.py"), *asked]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout + done.stderr, json.loads((folder / "record.json").read_text(encoding="utf-8"))


@needs_fork
def test_a_run_catches_what_tests_check_and_misses_what_they_do_not(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY, encoding="utf-8")
    (tmp_path / "test_tiny.py").write_text(TEST, encoding="utf-8")
    before = {path.name for path in tmp_path.iterdir()}
    code, said, record = run(tmp_path, set(), "--floor", "50")
    assert code == 1
    for function, line, change in LIVED:
        assert f"tiny.py: {function}: {line}\n    {change}" in said
    counts = record["modules"]["tiny.py"]
    assert counts["lived"] == len(LIVED)
    assert counts["ran"] == counts["mutants"] == counts["noticed"] + len(LIVED)
    assert counts["hung"] >= 1, "value -= 1 dropped"
    assert (tmp_path / "tiny.py").read_text(encoding="utf-8") == TINY
    left = {path.name for path in tmp_path.iterdir()} - before
    assert left <= {"tests", "record.json", "__pycache__"}

    other = ("above", "return value > LIMIT", "no such → change")
    code, said, record = run(tmp_path, LIVED | {other}, "--floor", "50")
    assert (code, record["all"]["explained"], record["all"]["lived"]) == (1, len(LIVED), 0)
    assert "no such mutant: tiny.py | above | return value > LIMIT | no such → change" in said


@needs_fork
def test_what_runs_while_a_package_is_imported_is_changed_too(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("LIMIT = 3\n", encoding="utf-8")
    (tmp_path / "test_pack.py").write_text(
        "import pack\n\n\ndef test_limit():\n    assert pack.LIMIT == 3\n", encoding="utf-8"
    )
    asked = ["--root", str(tmp_path), "--module", "pack/__init__.py", "--tests", "test_pack.py"]
    command = [sys.executable, str(PROJECT / "scripts" / "mutate.py"), *asked]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100.0 %     2 of    2" in done.stdout


@pytest.mark.parametrize(
    ("lived", "stale", "score", "floor", "code"),
    [(0, [], 85.0, 85.0, 0), (1, [], 99.0, 85.0, 1), (0, ["a"], 99.0, 85.0, 1), (0, [], 84.9, 85.0, 1)],
)
@needs_fork
def test_exit_code(lived: int, stale: list[str], score: float, floor: float, code: int) -> None:
    mutate: Any = script("mutate")
    assert mutate.exit_code({"lived": lived, "score_percent": score}, stale, floor) == code


def test_the_lists_name_modules_tests_and_mutants_that_are_there() -> None:
    for path, tests in TABLE.items():
        assert (PROJECT / path).is_file(), path
        assert tests
        assert all((PROJECT / each).is_file() for each in tests), path
    keys = [(each["module"], each["function"], each["line"], each["change"]) for each in EXPLAINED]
    assert len(keys) == len(set(keys))
    assert all(len(each["reason"]) > 10 for each in EXPLAINED)
    for path in dict.fromkeys(each["module"] for each in EXPLAINED):
        assert path in TABLE
        source = (PROJECT / path).read_text(encoding="utf-8")
        known = {mutant.key for mutant in mutants.mutants_of(source, ast.parse(source))}
        assert [key for key in keys if key[0] == path and key[1:] not in known] == []
