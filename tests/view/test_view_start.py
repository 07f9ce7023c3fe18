"""Where a window cannot be opened, one line says what to install; nothing of Qt is needed to say it."""

from __future__ import annotations

from pathlib import Path

import pytest
from meet import run_program
from qt_here import qt_reason

from edgeconv.core.optional import install
from edgeconv.view.qt.start import missing_library

UNAVAILABLE = 4
WITHOUT_PYSIDE = (
    "import sys; sys.modules['PySide6'] = None; from edgeconv.cli import main; sys.argv[0] = 'edgeconv'; main()"
)
MAIN = "from edgeconv.cli import main; main()"


def test_without_pyside_one_line_says_how_to_get_it() -> None:
    done = run_program(WITHOUT_PYSIDE, "view")
    assert done.returncode == UNAVAILABLE
    assert done.stderr == f"edgeconv: error: edgeconv view needs PySide6: {install('gui')}.\n"


def test_help_needs_no_qt() -> None:
    done = run_program(WITHOUT_PYSIDE, "view", "--help")
    assert done.returncode == 0
    assert "--filter" in done.stdout


PACKAGES = {"libEGL.so.1": "libegl1", "libX11-xcb.so.1": "libx11-xcb1", "libX11.so.6": "libx11-6"}
PACKAGES |= {"libdbus-1.so.3": "libdbus-1-3", "libglib-2.0.so.0": "libglib2.0-0", "libxcb-icccm.so.4": "libxcb-icccm4"}


@pytest.mark.parametrize(("library", "package"), PACKAGES.items())
def test_a_missing_library_is_named_with_its_package(library: str, package: str) -> None:
    words = f"{library}: cannot open shared object file: No such file or directory"
    for told in (words, f"/usr/lib/python3/QtGui.abi3.so: {words}"):
        assert missing_library(told) == f"the system library {library}: apt install {package}"


def test_what_else_the_loader_says_is_said() -> None:
    assert "undefined symbol" in missing_library("QtGui.so: undefined symbol: qt_version\n")


needs_qt = pytest.mark.skipif(qt_reason() is not None, reason=str(qt_reason()))


@needs_qt
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DISPLAY": "", "WAYLAND_DISPLAY": ""}, "neither DISPLAY nor WAYLAND_DISPLAY is set"),
        ({"DISPLAY": ":4711", "WAYLAND_DISPLAY": ""}, "none answers at DISPLAY ':4711'"),
        ({"DISPLAY": ":4711", "QT_QPA_PLATFORM": "xcb"}, "none answers at DISPLAY ':4711'"),
    ],
)
def test_without_a_screen_one_line_says_so(environment: dict[str, str], words: str) -> None:
    done = run_program(MAIN, "view", **({"QT_QPA_PLATFORM": ""} | environment))
    assert done.returncode == UNAVAILABLE
    (line,) = done.stderr.splitlines()
    assert words in line or "apt install" in line, "or the plugin itself lacks a library here"


def test_standard_input_is_refused() -> None:
    done = run_program(MAIN, "view", "-")
    assert done.returncode == 2
    assert "name a file" in done.stderr.splitlines()[-1]


@needs_qt
def test_a_wrong_parameter_is_refused_before_a_window_opens(tmp_path: Path) -> None:
    settings = str(tmp_path / "settings.ini")
    done = run_program(MAIN, "view", "--padding", "wide", QT_QPA_PLATFORM="offscreen", EDGECONV_VIEW_SETTINGS=settings)
    assert done.returncode == 2
    assert "Padding 'wide'" in done.stderr.splitlines()[-1]
