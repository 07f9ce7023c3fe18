"""Scripts explain themselves: help without any extra, and mistakes of one line."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest
from command import PROJECT, SCRIPTS

SOURCES = sorted((PROJECT / "scripts").glob("*.py"))
NAMES = [path.stem for path in SOURCES if "parse_" in path.read_text(encoding="utf-8")]


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
    code, out, err = ran(name, capsys, monkeypatch, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: python3 scripts/{name}.py [-h]")
    assert str(PROJECT) not in out, "a path of this machine"
    story = ast.get_docstring(ast.parse((PROJECT / "scripts" / f"{name}.py").read_text(encoding="utf-8")))
    assert story in out


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_one_line(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = ran(name, capsys, monkeypatch, "tests", "--no-such")
    assert (code, out) == (2, "")
    assert err.startswith(f"{name}: error: ")
    assert err.endswith(f". See 'python3 scripts/{name}.py --help'.\n")
    assert err.count("\n") == 1
