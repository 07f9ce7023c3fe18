"""Scripts explain themselves, without any extra."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from canny_pictures import canny_chain, oracle
from command import PROJECT, SCRIPTS, script

from edgeconv.errors import UnavailableError

SOURCES = sorted((PROJECT / "scripts").glob("*.py"))
NAMES = [path.stem for path in SOURCES if "parse_" in path.read_text(encoding="utf-8")]


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
    path = Path(SCRIPTS) / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.syspath_prepend(SCRIPTS)
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(path), run_name="__main__")
    out, err = capsys.readouterr()
    assert (left.value.code, err) == (0, "")
    assert str(PROJECT) not in out, "a path of this machine"
    story = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert story in out


def test_rivals_of_canny_are_judged_by_where_their_edges_lie() -> None:
    rivals = script("benchmark_canny_peers")
    picture, chain = np.zeros((60, 90), np.uint8), canny_chain(60, 200, blur=3)
    picture[20:40, 10:80] = 220
    expected, found = oracle(picture, chain), rivals.opencv(picture, chain)()
    assert (expected > 0).any()
    elsewhere = [rivals.share_elsewhere(expected, np.roll(found, rows, axis=0)) for rows in (0, 1, 20)]
    assert (elsewhere[0], elsewhere[1], elsewhere[2] > 0.2) == (0, 0, True)
    for rival in rivals.PEERS["cpu"][1:] + rivals.PEERS["cuda"]:
        with pytest.raises(UnavailableError):
            rival(picture, chain)
