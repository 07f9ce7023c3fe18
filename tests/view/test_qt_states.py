"""What the window says of itself: what it is writing, where the panel is, what a difference begins with."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from windows import PATIENCE_MILLISECONDS, PIXELS, opened, settle, shown

from edgeconv import convolve
from edgeconv.io.image import write_image
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource


def test_what_is_being_written_is_counted(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    gates = [threading.Event(), threading.Event()]
    for gate in gates:
        window.tasks.start(lambda gate=gate: (gate.wait(PATIENCE_MILLISECONDS / 1000), lambda: None)[1], writes=True)
    assert window.writing_label.text() == "writing, 1 more to come …"
    gates[0].set()
    qtbot.waitUntil(lambda: window.writing_label.text() == "writing …", timeout=PATIENCE_MILLISECONDS)
    gates[1].set()
    qtbot.waitUntil(lambda: window.writing_label.text() == "", timeout=PATIENCE_MILLISECONDS)


def test_fit_enlarges_a_small_picture_which_opens_at_its_own_size(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    assert window.canvas.zoom == 1
    window.actions_by_name["fit"].trigger()
    zoom = window.canvas.zoom
    assert zoom == pytest.approx(min(window.canvas.width() / 120, window.canvas.height() / 90))
    assert zoom > 2
    window.resize(window.width() - 200, window.height() - 100)
    assert window.canvas.zoom < zoom
    assert window.canvas.fitted


def test_the_panel_can_be_hidden_and_stays_so(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    narrow = window.canvas.width()
    window.canvas.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_F9)
    qtbot.waitUntil(lambda: window.canvas.width() > narrow + 200, timeout=PATIENCE_MILLISECONDS)
    assert not window.side.isVisible()
    window.close()
    again = opened(qtbot, picture)
    assert not again.side.isVisible()
    assert not again.actions_by_name["panel"].isChecked()
    again.actions_by_name["panel"].trigger()
    qtbot.waitUntil(again.side.isVisible, timeout=PATIENCE_MILLISECONDS)


def test_in_a_small_window_the_figures_give_way_to_the_controls(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, size=(640, 480))
    controls, figures = window.side.sizes()
    assert figures == window.tabs.tabBar().height()
    assert controls > 0.9 * window.side.height()


def test_a_fraction_is_a_number_in_the_kernel_editor(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    cells = window.controls.kernel.cells
    for cell in cells:
        cell.setFocus()
        cell.selectAll()
        qtbot.keyClicks(cell, "1/9")
    settle(qtbot, window)
    kernel = ";".join(["1/9,1/9,1/9"] * 3)
    assert [cell.text() for cell in cells] == ["1/9"] * 9
    assert window.model.parameters.kernel == kernel
    assert not window.message.isVisible()
    assert np.array_equal(shown(window), convolve(PIXELS, np.full((3, 3), 1 / 9), device="cpu"))
    assert "1/9 1/9 1/9 / 1/9 1/9 1/9 / 1/9 1/9 1/9" in window.model.runs[-1].parameters.summary()


@pytest.mark.parametrize("second", [False, True])
def test_a_difference_begins_with_what_one_asks_about_and_gives_way_again(
    qtbot: QtBot, picture: Path, tmp_path: Path, second: bool
) -> None:
    write_image(PIXELS[::-1], tmp_path / "other.png")
    others = [tmp_path / "other.png"] if second else []
    window = opened(qtbot, picture, *others)
    window.show_mode("difference")
    settle(qtbot, window)
    file = ViewSource("file", str(tmp_path / "other.png"))
    assert (window.model.left, window.model.right) == ((INPUT, file) if second else (REFERENCE_OUTPUT, OUTPUT))
    window.show_mode("split")
    settle(qtbot, window)
    assert (window.model.left, window.model.right) == (INPUT, OUTPUT)
    window.model.show(left=OUTPUT, right=INPUT)
    window.show_mode("difference")
    settle(qtbot, window)
    assert (window.model.left, window.model.right) == (OUTPUT, INPUT), "what was chosen stays"
