"""Scripts and commands explain themselves in one style: the same typography, short sentences, mistakes of one line."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest
from command import PROJECT, SCRIPTS, edgeconv, script

from edgeconv.cli import COMMANDS

SOURCES = sorted((PROJECT / "scripts").glob("*.py"))
FRONTS = ("resize_images",)
"""Scripts that are a command, help and mistakes included."""
NAMES = [
    path.stem
    for path in SOURCES
    if path.stem not in FRONTS and 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
]
VERBS = set(["Change", "Compile", "Count", "Draw", "Find", "Fuzz", "Measure", "Read", "Run", "Save", "Set", "Write"])
FLAGS = r"(?:-\w, )?--[a-z0-9-]+(?: / --no-\w+)?(?: <\w+>)?(?:\.\.\.)?"
PLACE = r"[\w\[\]]+(?:\.\.\.)? <[\w\[\]]+>"
ROW = re.compile(rf"  ({FLAGS}|{PLACE})(?:  +(\S.*))?")
LONGEST = 90
"""Letters of a sentence about an option, so that it fits a line."""

script_options = script("script_options")


def ran(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str, str]:
    """Exit code and output of a script in this process, which has most of what it imports already."""
    path = Path(SCRIPTS) / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    if SCRIPTS not in sys.path:
        monkeypatch.syspath_prepend(SCRIPTS)
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(path), run_name="__main__")
    out, err = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, out, err


def sections(text: str) -> dict[str, str]:
    """What stands under each heading; the first part has none."""
    parts = re.split(r"^(\w+):\n", f"\n{text}", flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def rows(section: str) -> list[tuple[str, str]]:
    """Names and texts of a list in two columns, with what is broken joined."""
    found: list[list[str]] = []
    for line in section.splitlines():
        row = ROW.fullmatch(line)
        if row:
            found.append([row[1], row[2] or ""])
        elif line.strip():
            assert line.startswith("     "), line
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
    return [(name, text) for name, text in found]


def check_typography(text: str, usage: str, columns: int) -> dict[str, list[tuple[str, str]]]:
    """Usage, an indented description, headings, two columns, nothing wider than the terminal; the rows."""
    lines = text.splitlines()
    assert lines[0].startswith(f"Usage: {usage} [OPTIONS]")
    assert lines[1] == ""
    parts = sections(text)
    assert set(parts) <= {"", "Arguments", "Options", "Commands"}
    described = parts[""].partition("\n\n")[2].splitlines()
    assert all(line.startswith("  ") for line in described if line), "the description is indented"
    listed = {name: rows(part) for name, part in parts.items() if name in ("Arguments", "Options")}
    assert listed["Options"][-1] == ("-h, --help", "Show this message and exit.")
    assert all(len(line) <= columns for name in listed for line in parts[name].splitlines())
    return listed


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_script_explains_itself_without_any_extra(path: Path) -> None:
    """What it imports before it reads its options is there with the base dependencies."""
    there = {*sys.stdlib_module_names, *(source.stem for source in SOURCES), "edgeconv", "numpy", "cv2", "PIL", "typer"}
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    names = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    assert {name.partition(".")[0] for name in names} <= there
    assert not [name for name in names if name.startswith("edgeconv.view.qt") and not name.endswith(".actions")]


@pytest.mark.parametrize("columns", [72, 120])
@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_script(
    name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    code, out, err = ran(name, capsys, monkeypatch, "--help")
    assert (code, err) == (0, "")
    listed = check_typography(out, f"python3 scripts/{name}.py", columns)
    assert str(PROJECT) not in out, "a path of this machine"
    summary = " ".join(out.partition("\n\n")[2].partition("\n\n")[0].split())
    assert summary.split()[0] in VERBS
    assert summary.endswith(".")
    for option, text in (row for part in listed.values() for row in part):
        sentence = re.sub(r" +\[(default: .*|required)\]$", "", text)
        assert sentence[:1].isupper() or option.startswith("--interpolation"), option  # its choices
        assert sentence.endswith("."), option
        assert len(sentence) <= LONGEST, option


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_looks_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    check_typography(
        edgeconv(name, "--help").text, "edgeconv bench grid" if name == "bench" else f"edgeconv {name}", 120
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_one_line(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, says = ("--no-such", "No such option: --no-such.")
    if name == "bootstrap":  # which passes options on
        wrong, says = ("tests", "what 'tests' is not one of run, test. Did you mean 'test'?")
    code, out, err = ran(name, capsys, monkeypatch, wrong, *needed(name))
    assert (code, out) == (2, "")
    assert err == f"{name}: error: {says} See 'python3 scripts/{name}.py --help'.\n"


def needed(name: str) -> list[str]:
    """What a script asks for, so that nothing else is wrong."""
    return {
        "benchmark_calls": ["--output", "x"],
        "benchmark_canny": ["--output", "x"],
        "benchmark_canny_passes": ["--output", "x"],
        "benchmark_canny_peers": ["--output", "x"],
        "benchmark_crew": ["--output", "x"],
        "compare_checkouts": ["before", "after"],
        "draw_coast": ["folder"],
        "run_matrix": ["--machine", "x"],
    }.get(name, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Missing argument 'folder'."),
        ("here", "Missing option '--seed'."),
        ("here --seed 1 more", "Got unexpected extra argument (more)."),
        ("here --seed one", "Invalid value for '--seed': 'one' is not a valid integer."),
        ("here --seed 1 --share x", "Invalid value for '--share': 'x' is not a valid float."),
        ("here --seed", "Option '--seed' requires an argument."),
        ("here --sed 1", "No such option: --sed. Did you mean '--seed'?"),
        ("here --seed 1 --see=2", "No such option: --see. Did you mean '--seed'?"),
        ("here --seed 1 --device gpu", "--device 'gpu' is not one of cpu, cuda. Did you mean 'cpu'?"),
    ],
)
def test_mistakes_are_said_as_the_commands_say_them(
    words: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/tool.py"])
    parser = script_options.Arguments("Do it.")
    parser.add_argument("folder", help="Where.")
    parser.add_argument("--seed", type=int, required=True, help="Which.")
    parser.add_argument("--share", type=float, help="How much.")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="What computes: {choices}.")
    with pytest.raises(SystemExit) as left:
        parser.parse_args(words.split())
    assert left.value.code == 2
    assert capsys.readouterr().err == f"tool: error: {says} See 'python3 scripts/tool.py --help'.\n"


def test_no_script_reads_its_options_or_ends_in_a_way_of_its_own() -> None:
    for path in SOURCES:
        if path.stem == "script_options":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("argparse.ArgumentParser", "ArgumentParser", "typer.run"), place
                assert called != "SystemExit", f"{place}: use script_options.stopped"


def test_tests_import_scripts_in_one_way() -> None:
    """By `script` of command.py, which lets scripts find each other: each test file can be run alone."""
    files = sorted((PROJECT / "tests").rglob("*.py"))
    loading = "spec_from_" + "file_location"
    assert [path.name for path in files if loading in path.read_text(encoding="utf-8")] == ["command.py"]
