"""Scripts explain themselves as the commands do: help, and mistakes of one line."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest
from command import PROJECT, SCRIPTS, script

SOURCES = sorted((PROJECT / "scripts").glob("*.py"))
FRONTS = ("resize_images",)
"""Scripts that are a command, help and mistakes included."""
NAMES = [
    path.stem
    for path in SOURCES
    if path.stem not in FRONTS and 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
]
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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_script_explains_itself_without_any_extra(path: Path) -> None:
    """What it imports before it reads its options is there with the base dependencies."""
    there = {*sys.stdlib_module_names, *(source.stem for source in SOURCES), "edgeconv", "numpy", "cv2", "PIL", "typer"}
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    names = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    assert {name.partition(".")[0] for name in names} <= there
    assert not [name for name in names if name.startswith("edgeconv.view.qt") and not name.endswith(".actions")]


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_script(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    code, out, err = ran(name, capsys, monkeypatch, "--help")
    assert (code, err) == (0, "")
    usage, _, rest = out.partition("\n\n")
    assert usage.startswith(f"Usage: python3 scripts/{name}.py [OPTIONS]")
    assert str(PROJECT) not in out, "a path of this machine"
    summary, *_ = rest.split("\n\n")
    assert summary.startswith("  ")
    assert summary.endswith(".")
    assert out.endswith("Show this message and exit.\n")
    assert [line for line in out.partition("Options:\n")[2].splitlines() if len(line) > 72] == []


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
        "benchmark_canny_passes": ["--output", "x"],
        "benchmark_canny_peers": ["--output", "x"],
        "benchmark_crew": ["--output", "x"],
        "run_matrix": ["--machine", "x"],
        "screenshots": ["view"],
    }.get(name, [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Missing argument 'folder'."),
        ("here", "Missing option '--seed'."),
        ("here --seed one", "Invalid value for '--seed': 'one' is not a valid integer."),
        ("here --seed", "Option '--seed' requires an argument."),
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
    parser.add_argument("--device", choices=("cpu", "cuda"), help="What computes: {choices}.")
    with pytest.raises(SystemExit) as left:
        parser.parse_args(words.split())
    assert left.value.code == 2
    assert capsys.readouterr().err == f"tool: error: {says} See 'python3 scripts/tool.py --help'.\n"
