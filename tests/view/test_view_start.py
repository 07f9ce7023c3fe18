"""Where a window cannot be opened, one line says what to install; nothing of Qt is needed to say it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import PROJECT, Finished
from qt_here import qt_reason

from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError
from edgeconv.view.qt import start
from edgeconv.view.qt.start import DEBIAN_PACKAGES, missing_library

UNAVAILABLE = 4
WITHOUT_PYSIDE = (
    "import sys; sys.modules['PySide6'] = None; from edgeconv.cli import main; sys.argv[0] = 'edgeconv'; main()"
)


def run_python(code: str, *arguments: str, **environment: str) -> Finished:
    variables = {**os.environ, "PYTHONPATH": str(PROJECT), **environment}
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, env=variables, check=False)
    return Finished(done.returncode, done.stdout, done.stderr.decode())


def view(**environment: str) -> Finished:
    return run_python("from edgeconv.cli import main; main()", "view", **environment)


def test_without_pyside_one_line_says_how_to_get_it() -> None:
    done = run_python(WITHOUT_PYSIDE, "view")
    assert done.code == UNAVAILABLE
    assert done.error_lines == [f"edgeconv: error: edgeconv view needs PySide6: {install('gui')}."]


def test_help_needs_no_qt() -> None:
    done = run_python(WITHOUT_PYSIDE, "view", "--help")
    assert done.code == 0
    assert "--filter" in done.text


@pytest.mark.parametrize("library", DEBIAN_PACKAGES)
def test_a_missing_library_is_named_with_its_package(library: str) -> None:
    words = f"{library}: cannot open shared object file: No such file or directory"
    expected = f"the system library {library}: apt install {DEBIAN_PACKAGES[library]}"
    assert missing_library(words) == expected
    assert missing_library(f"/usr/lib/python3/QtGui.abi3.so: {words}") == expected


def test_a_library_of_no_known_package_is_named_all_the_same() -> None:
    found = missing_library("libodd++-2.so.7: cannot open shared object file: No such file")
    assert found == "the system library libodd++-2.so.7: install the system package that has it"
    assert "undefined symbol" in missing_library("QtGui.so: undefined symbol: qt_version\n")


needs_qt = pytest.mark.skipif(qt_reason() is not None, reason=str(qt_reason()))
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="screens are named otherwise")


@needs_qt
@on_linux
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DISPLAY": "", "WAYLAND_DISPLAY": ""}, "neither DISPLAY nor WAYLAND_DISPLAY is set"),
        ({"DISPLAY": ":4711", "WAYLAND_DISPLAY": ""}, "none answers at DISPLAY ':4711'"),
        ({"DISPLAY": ":4711", "QT_QPA_PLATFORM": "xcb"}, "none answers at DISPLAY ':4711'"),
    ],
)
def test_without_a_screen_one_line_says_so(environment: dict[str, str], words: str) -> None:
    done = view(**({"QT_QPA_PLATFORM": ""} | environment))
    assert done.code == UNAVAILABLE
    (line,) = done.error_lines
    assert words in line or "apt install" in line, "or the plugin itself lacks a library here"


def test_standard_input_is_refused() -> None:
    done = run_python("from edgeconv.cli import main; main()", "view", "-")
    assert done.code == 2
    assert "name a file" in done.error_lines[-1]


@needs_qt
def test_a_qt_that_ends_python_after_a_while_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_gives_back_too_much", lambda: True)
    with pytest.raises(UnavailableError, match=r"another PySide6: \d+\.\d+.*pip install"):
        start.require_qt()


@needs_qt
def test_a_wrong_parameter_is_refused_before_a_window_opens(tmp_path: Path) -> None:
    code = "from edgeconv.cli import main; main()"
    settings = str(tmp_path / "settings.ini")
    done = run_python(code, "view", "--padding", "wide", QT_QPA_PLATFORM="offscreen", EDGECONV_VIEW_SETTINGS=settings)
    assert done.code == 2
    assert "Padding 'wide'" in done.error_lines[-1]


@needs_qt
def test_no_thread_imports_while_qt_looks_through_the_modules(tmp_path: Path) -> None:
    """Its bindings go through `sys.modules` in Python while they load, and end the process if that grows meanwhile."""
    code = (
        "import os, sys\n"
        "from edgeconv.view.compute import Workshop\n"
        "Workshop.begin = lambda *_: (print('shibokensupport' in sys.modules, flush=True), os._exit(0))\n"
        "from edgeconv.cli import main\n"
        "main()\n"
    )
    assert run_python(code, "view", str(tmp_path / "any.png")).text == "True\n"
