"""The whole window off the screen: what the user does, what is then seen, written and remembered."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_records import changed
from command import edgeconv
from jsonschema import Draft202012Validator
from problems import random_image
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication, QImage
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QSpinBox,
    QStyle,
    QStyleOptionSlider,
    QWidget,
)
from pytestqt.qtbot import QtBot
from run_reports import all_run_reports
from windows import PATIENCE_MILLISECONDS, PIXELS, drawn, opened, pixels_of, settle, shown, trigger

from edgeconv import canny, convolve
from edgeconv.api.prepared import PreparedFilter
from edgeconv.core.chains import automatic_thresholds
from edgeconv.export.schemas import schema
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image
from edgeconv.run.report import as_report
from edgeconv.view.parameters import Parameters
from edgeconv.view.qt import actions, export_actions
from edgeconv.view.qt.runs import HistoryPanel, speed_head, speed_rows
from edgeconv.view.qt.window import ViewWindow
from edgeconv.view.state import INPUT, MODES, OUTPUT, REFERENCE_OUTPUT, MeasuredRun, ViewSource

SOBEL = {"filter": "sobel", "channels": "each", "method": "sliding"}


def choose(qtbot: QtBot, window: ViewWindow, box: QWidget, word: str) -> None:
    """A word of a list, as a user picks it."""
    assert isinstance(box, QComboBox)
    box.setCurrentText(word)
    box.textActivated.emit(word)
    settle(qtbot, window)


def type_into(qtbot: QtBot, window: ViewWindow, line: QLineEdit, text: str) -> None:
    line.setFocus()
    line.selectAll()
    qtbot.keyClicks(line, text)
    qtbot.keyClick(line, Qt.Key.Key_Return)
    settle(qtbot, window)


def press(qtbot: QtBot, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    widget = QApplication.focusWidget()
    assert widget is not None
    qtbot.keyClick(widget, key, modifier)


def grey(pixels: np.ndarray) -> np.ndarray:
    return np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)


def mask_of(limit: float) -> np.ndarray:
    return np.where(convolve(PIXELS, "sobel", "reference", channels="each") >= limit, 255, 0)


# --- opening ----------------------------------------------------------------------------------------------------


def test_a_picture_opens_with_its_output_speed_and_history(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, **SOBEL)
    assert np.array_equal(shown(window), convolve(PIXELS, "sobel", channels="each"))
    assert "GFLOPS" in window.speed.toPlainText()
    assert window.speed.shown["check"].startswith("right: largest error 0")
    assert {"kernel", "speed", "roofline"} <= window.speed.shown.keys()
    assert "convolve" in window.speed.shown["phases"]
    assert [run.number for run in window.model.runs] == [1]
    assert "120×90×3 uint8" in window.picture_label.text()
    assert window.windowTitle() == "picture.png – edgeconv"


@pytest.mark.parametrize("content", [None, b"", b"nothing of the sort"])
def test_a_bad_file_is_one_line_and_the_picture_before_it_stays(
    qtbot: QtBot, picture: Path, tmp_path: Path, content: bytes | None
) -> None:
    window = opened(qtbot, picture, **SOBEL)
    bad = tmp_path / "bad.png"
    if content is not None:
        bad.write_bytes(content)
    window.open_pictures([str(bad)])
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    settle(qtbot, window)
    assert window.message.text().startswith(f"{bad}: ")
    assert "\n" not in window.message.text()
    assert window.model.picture == str(picture)
    assert np.array_equal(shown(window), convolve(PIXELS, "sobel", channels="each"))
    trigger(qtbot, window, "swap")
    assert not window.message.isVisible(), "the line goes with the next thing that is asked for"


def test_a_window_without_a_picture_is_quiet_and_opens_the_next(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot)
    assert not window.actions_by_name["save"].isEnabled()
    assert not window.message.isVisible()
    window.open_pictures([str(picture)])
    settle(qtbot, window)
    picture.unlink()
    trigger(qtbot, window, "reload")
    assert "no such file" in window.message.text()
    assert window.canvas.frame is None, "nothing of the only picture stays when it has gone"
    assert window.picture_label.text() == ""


def drop(place: QWidget, dropped: QMimeData) -> bool:
    """Whether what is dragged over a widget and let go there is taken."""
    over = dropped, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entered = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, *over)
    QApplication.sendEvent(place, entered)
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, *over)
    QApplication.sendEvent(place, event)
    return entered.isAccepted() and event.isAccepted()


def dragged(content: QUrl | QImage | str) -> QMimeData:
    data = QMimeData()
    if isinstance(content, QUrl):
        data.setUrls([content])
    elif isinstance(content, QImage):
        data.setImageData(content)
    else:
        data.setText(content)
    return data


def image_of(pixels: np.ndarray) -> QImage:
    height, width = pixels.shape[:2]
    return QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()


def test_files_paths_and_pictures_may_be_pasted_and_dropped(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, **SOBEL)
    clipboard = QGuiApplication.clipboard()
    clipboard.setText(f" {picture} ")
    trigger(qtbot, window, "paste")
    assert window.model.picture == str(picture)

    for seed in (3, 4):
        clipboard.setImage(image_of(random_image(20, 30, np.uint8, seed)))
        window.actions_by_name["paste"].trigger()
    settle(qtbot, window)
    stored = [Path(path) for path in window.model.pictures[1:]]
    assert [read_image(path).pixels.tolist() for path in stored] == [
        random_image(20, 30, np.uint8, seed).tolist() for seed in (3, 4)
    ]
    assert window.model.picture == str(stored[1]), "the newest is shown"

    for place in (window.canvas.viewport(), window.controls.kernel.cells[4], window.tabs):
        window.open_pictures([str(stored[0])])
        assert drop(place, dragged(QUrl.fromLocalFile(str(picture))))
        settle(qtbot, window)
        assert window.model.picture == str(picture), "wherever it is dropped"
    assert drop(window.canvas.viewport(), dragged(image_of(PIXELS)))
    settle(qtbot, window)
    assert np.array_equal(read_image(str(window.model.picture)).pixels, PIXELS)
    assert not drop(window.canvas.viewport(), dragged("no picture at all"))
    assert not drop(window.canvas.viewport(), dragged(QUrl("https://example.org/picture.png")))
    assert "save it first" in window.message.text()
    clipboard.setText("no picture at all")
    trigger(qtbot, window, "paste")
    assert "no picture" in window.message.text()
    window.close()
    assert not any(path.exists() for path in stored), "what was pasted goes with the window"


def test_several_pictures_are_walked_and_may_stand_beside_each_other(
    qtbot: QtBot, picture: Path, tmp_path: Path
) -> None:
    others = [tmp_path / folder / picture.name for folder in ("two", "three")]
    for seed, path in enumerate(others, 2):
        path.parent.mkdir()
        write_image(random_image(90, 120, np.uint8, seed), path)
    window = opened(qtbot, picture, *others)
    index = window.right_box.findText("two/picture.png")
    assert window.right_box.itemData(index, Qt.ItemDataRole.ToolTipRole) == str(others[0])
    window.right_box.setCurrentIndex(index)
    window.right_box.activated.emit(index)
    settle(qtbot, window)
    assert np.array_equal(shown(window), random_image(90, 120, np.uint8, seed=2))
    assert window.canvas.right is not None
    assert window.canvas.right.label == "two/picture.png"
    trigger(qtbot, window, "next")
    assert window.windowTitle() == "two/picture.png – edgeconv"


def test_names_are_never_taken_for_markup(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "<b>a&b.png"
    write_image(PIXELS, path)
    window = opened(qtbot, path)
    rich = [label for label in window.findChildren(QLabel) if label.textFormat() != Qt.TextFormat.PlainText]
    assert not [label for label in rich if not window.controls.isAncestorOf(label)]
    item = window.history.topLevelItem(0)
    assert item is not None
    assert "&lt;b&gt;a&amp;b.png" in item.toolTip(0)
    window.speed.show_rows([("<i>", "<b>")], "<u>", "a\nb")
    assert [word in window.speed.toPlainText() for word in ("<i>", "<b>", "<u>", "a\nb")] == [True] * 4


# --- controls ---------------------------------------------------------------------------------------------------


def test_typing_a_kernel_shows_it_and_undo_takes_it_back(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="laplacian8")
    cell = window.controls.kernel.cells[4]
    cell.setFocus()
    cell.selectAll()
    for typed in ("-", "-0", "-0.", "-0.1", "-0.15"):
        qtbot.keyClicks(cell, typed[-1])
        assert cell.text() == typed
    qtbot.keyClicks(cell, "x-")
    assert cell.text() == "-0.15", "letters that make no number cannot be typed"
    settle(qtbot, window)
    kernel = [[1, 1, 1], [1, -0.15, 1], [1, 1, 1]]
    assert np.array_equal(shown(window), convolve(PIXELS, kernel, device="cpu"))
    assert window.controls.filter.currentText() == "custom"
    trigger(qtbot, window, "copy-command")
    assert "'--kernel=1,1,1;1,-0.15,1;1,1,1'" in QGuiApplication.clipboard().text()
    qtbot.keyClick(cell, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    settle(qtbot, window)
    assert (cell.text(), window.controls.filter.currentText()) == ("-8", "laplacian8")
    assert np.array_equal(shown(window), convolve(PIXELS, "laplacian8", device="cpu"))
    trigger(qtbot, window, "redo")
    assert cell.text() == "-0.15"
    before = window.model.parameters
    cell.clear()
    qtbot.keyClicks(cell, "-")
    assert (window.model.parameters, cell.placeholderText()) == (before, "-0.15"), "which is no number yet"


def test_a_fraction_is_a_number_and_custom_begins_with_the_numbers_of_the_filter(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="laplacian8")
    choose(qtbot, window, window.controls.filter, "custom")
    assert window.model.parameters.kernel == "1,1,1;1,-8,1;1,1,1"
    for cell in window.controls.kernel.cells:
        cell.setFocus()
        cell.selectAll()
        qtbot.keyClicks(cell, "1/9")
    settle(qtbot, window)
    assert [cell.text() for cell in window.controls.kernel.cells] == ["1/9"] * 9
    assert window.model.parameters.kernel == ";".join(["1/9,1/9,1/9"] * 3)
    assert np.array_equal(shown(window), convolve(PIXELS, np.full((3, 3), 1 / 9), device="cpu"))
    qtbot.keyClick(cell, Qt.Key.Key_Backspace)
    qtbot.keyClicks(cell, "0")
    assert "1/0" in window.message.text()


@pytest.mark.parametrize("name", ["stride", "threads", "workspace_limit", "threshold"])
def test_undo_is_the_windows_in_every_field(qtbot: QtBot, picture: Path, name: str) -> None:
    window = opened(qtbot, picture)
    before = window.model.parameters
    window.activateWindow()
    window.controls.advanced.setChecked(True)
    field = window.controls.threshold.number if name == "threshold" else window.controls.fields[name]
    field.setFocus()
    assert isinstance(field, QLineEdit | QSpinBox)
    field.selectAll()
    press(qtbot, Qt.Key.Key_2)
    press(qtbot, Qt.Key.Key_Return)
    assert float(getattr(window.model.parameters, name)) == 2
    press(qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.model.parameters == before
    press(qtbot, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    assert float(getattr(window.model.parameters, name)) == 2
    settle(qtbot, window)


def test_a_kernel_file_is_read_anew_when_it_is_loaded_reloaded_or_saved(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernel.csv"
    window = opened(qtbot, picture)
    monkeypatch.setattr(export_actions, "ask_name", lambda *_: str(tmp_path / "out.png"))
    monkeypatch.setattr("edgeconv.view.qt.window.QFileDialog.getOpenFileName", lambda *_: (str(kernel), ""))
    for centre, way in ((3, "load-kernel"), (5, "load-kernel"), (7, "reload"), (9, "save")):
        kernel.write_text(f"0,0,0\n0,{centre},0\n0,0,-1\n")
        trigger(qtbot, window, way)
        weights = [[0, 0, 0], [0, centre, 0], [0, 0, -1]]
        assert np.array_equal(shown(window), convolve(PIXELS, weights, device="cpu")), centre
        assert window.controls.kernel.cells[4].text() == str(centre)
    assert np.array_equal(shown(window), read_image(tmp_path / "out.png").pixels)
    full = np.arange(81).reshape(3, 3, 3, 3) - 40
    np.save(tmp_path / "full.npy", full)
    window.load_kernel(str(tmp_path / "full.npy"))
    settle(qtbot, window)
    assert np.array_equal(shown(window), convolve(PIXELS, full, device="cpu"))
    assert not window.controls.kernel.isEnabled()
    (tmp_path / "full.npy").unlink()
    trigger(qtbot, window, "reload")
    assert "full.npy" in window.message.text()


def test_every_list_and_the_rarer_controls_are_live(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, padding="7")
    fields: dict[str, Any] = window.controls.fields
    assert fields["padding"].currentText() == "7"
    choose(qtbot, window, fields["padding"], "same")
    assert not fields["luma"].isVisible()
    fields["stride"].setValue(3)
    choose(qtbot, window, fields["channels"], "luma")
    choose(qtbot, window, fields["luma"], "bt709")
    fields["threads"].setValue(1)
    fields["cudnn_find"].setChecked(True)
    choose(qtbot, window, fields["block"], "8")
    for name, word in (("border", "reflect"), ("output_mode", "clip"), ("method", "im2col")):
        choose(qtbot, window, fields[name], word)
    type_into(qtbot, window, fields["workspace_limit"], "64M")
    assert fields["luma"].isVisible()
    words = "--channels=luma --luma=bt709 --stride=3 --border=reflect --output-mode=clip --method=im2col --device=cpu"
    words += " --workspace-limit=64M --threads=1 --cudnn-find"
    assert " ".join(window.model.parameters.arguments()) == f"{words} --block=8"
    fields["cudnn_find"].setChecked(False)  # what concerns only methods of a GPU is refused by the others
    choose(qtbot, window, fields["block"], "16")
    expected = convolve(PIXELS, channels="luma", luma="bt709", stride=3, border="reflect", output_mode="clip")
    assert np.array_equal(shown(window), grey(expected))
    trigger(qtbot, window, "reset")
    assert window.model.parameters == Parameters()
    assert fields["stride"].value() == 1


def test_canny_has_controls_of_its_own_and_single_filters_have_theirs(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="sobel", channels="each", stride=2)
    controls = window.controls
    of_chains = (controls.rule, controls.low, controls.high, controls.fields["gradient"], controls.fields["blur"])
    names = ("channels", "stride", "padding", "border", "output_mode")
    of_filters = (controls.kernel, controls.threshold, *(controls.fields[name] for name in names))

    def seen() -> tuple[set[bool], set[bool]]:
        return {widget.isVisible() for widget in of_chains}, {widget.isVisible() for widget in of_filters}

    assert seen() == ({False}, {True})
    choose(qtbot, window, controls.filter, "canny")
    assert seen() == ({True}, {False})
    assert controls.note.text() == "a chain of stages: sobel, thin, hysteresis"
    assert np.array_equal(shown(window), grey(canny(PIXELS)))
    assert "million pixels/s" in window.speed.toPlainText()
    found = automatic_thresholds("median", PIXELS)
    assert (controls.low.value, controls.high.value) == found, "what the rule chose"
    controls.high.slider.setValue(controls.high.slider.value() + 9)
    settle(qtbot, window)
    low, high = map(float, str(window.model.parameters.thresholds).split(","))
    assert (low, high) == (found[0], controls.high.value)
    assert controls.rule.currentText() == "by hand"
    assert np.array_equal(shown(window), grey(canny(PIXELS, low, high)))
    controls.low.slider.setValue(controls.high.slider.value() + 1)
    assert controls.low.value == controls.high.value, "one takes the other along"
    type_into(qtbot, window, controls.high.number, "150")
    type_into(qtbot, window, controls.low.number, "50")
    choose(qtbot, window, controls.fields["gradient"], "l2")
    choose(qtbot, window, controls.fields["blur"], "3")
    words = "--filter=canny --thresholds=50,150 --gradient=l2 --blur=3 --device=cpu"
    assert " ".join(window.model.parameters.arguments()) == words
    assert np.array_equal(shown(window), grey(canny(PIXELS, 50, 150, gradient="l2", blur=3)))
    choose(qtbot, window, controls.rule, "otsu")
    assert window.model.parameters.thresholds == "otsu"
    assert (controls.low.value, controls.high.value) != (50, 150)
    choose(qtbot, window, controls.filter, "kirsch")
    assert window.model.parameters.arguments() == ["--filter=kirsch", "--device=cpu"]
    assert seen() == ({False}, {True})


# --- the threshold ----------------------------------------------------------------------------------------------


def test_the_slider_shows_the_mask_and_left_of_all_there_is_none(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, **SOBEL)
    slider = window.controls.threshold.slider
    slider.setFocus()
    qtbot.keyClick(slider, Qt.Key.Key_End)
    for _ in range(3):
        qtbot.keyClick(slider, Qt.Key.Key_PageDown)
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    settle(qtbot, window)
    assert window.model.parameters.threshold == 255 - 3 * 15 - 1
    assert np.array_equal(shown(window), mask_of(209))
    assert window.controls.threshold.number.text() == "209"
    assert window.picture_label.text().startswith("sobel by sliding on CPU, threshold 209 · ")
    assert window.model.runs[-1].parameters.summary() == "sobel, channels each, threshold 209"
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    settle(qtbot, window)
    assert window.model.parameters.threshold is None
    assert np.array_equal(shown(window), convolve(PIXELS, "sobel", channels="each"))


def test_the_slider_is_dragged_and_the_filter_runs_once(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, picture, **SOBEL)
    slider = window.controls.threshold.slider
    option = QStyleOptionSlider()
    slider.initStyleOption(option)
    parts = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
    handle = slider.style().subControlRect(parts[0], option, parts[1], slider).center()
    runs: list[int] = []
    run_of = PreparedFilter.run
    monkeypatch.setattr(PreparedFilter, "run", lambda *words, **more: (runs.append(1), run_of(*words, **more))[1])
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=handle)
    for x in range(handle.x(), slider.width() // 2, 7):
        qtbot.mouseMove(slider, QPoint(x, handle.y()))
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 2, handle.y()))
    settle(qtbot, window)
    assert runs == []
    limit = window.model.parameters.threshold
    assert limit is not None
    assert 90 < limit < 165
    assert np.array_equal(shown(window), mask_of(limit))
    trigger(qtbot, window, "undo")
    assert window.model.parameters.threshold is None, "one drag is one step"


@pytest.mark.parametrize(
    ("typed", "limit", "said"),
    [
        ("99.5", 99.5, ""),
        (" ", None, ""),
        ("loud", 70.0, "'loud' is not a number"),
        ("0", 70.0, "is not a number above 0"),
        ("300", 300.0, "300 is above 255"),
        ("nan", 70.0, "nan"),
    ],
)
def test_a_number_may_be_typed(qtbot: QtBot, picture: Path, typed: str, limit: float | None, said: str) -> None:
    window = opened(qtbot, picture, **SOBEL, threshold=70.0)
    number = window.controls.threshold.number
    assert (number.text(), window.controls.threshold.slider.value()) == ("70", 70)
    type_into(qtbot, window, number, typed)
    assert window.model.parameters.threshold == limit
    assert window.message.isVisible() == bool(said)
    assert said in window.message.text()
    assert "\n" not in window.message.text()
    seen = 70.0 if said else limit
    assert np.array_equal(shown(window), mask_of(seen) if seen else convolve(PIXELS, "sobel", channels="each"))


# --- ways to look -----------------------------------------------------------------------------------------------


def test_keys_choose_the_view_and_exchange_the_sides(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    window.activateWindow()
    window.canvas.setFocus()
    for number, mode in enumerate(MODES, 1):
        qtbot.keyClick(window.canvas, str(number))
        settle(qtbot, window)
        assert window.canvas.mode == mode
        assert window.actions_by_name[mode].isChecked()
        assert window.left_box.isVisible() == (mode != "single")
        assert not window.message.isVisible()
    qtbot.keyClick(window.canvas, "1")
    qtbot.keyClick(window.canvas, "x")
    settle(qtbot, window)
    assert (window.model.left, window.model.right) == (OUTPUT, INPUT)
    assert np.array_equal(shown(window), PIXELS)


def test_the_difference_shows_and_copies_the_map_with_the_figures_of_diff(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    trigger(qtbot, window, "difference")
    heat = window.canvas.heat
    assert heat is not None
    assert [label for _, label in heat.legend] == ["0"]
    assert window.difference.shown["verdict"] == f"same: all {PIXELS.size:,} samples are equal"
    assert window.model.left == REFERENCE_OUTPUT
    trigger(qtbot, window, "copy-picture")
    assert np.array_equal(pixels_of(QGuiApplication.clipboard().image()), heat.levels[0])
    window.model.show(left=INPUT)
    window.refresh()
    settle(qtbot, window)
    assert window.difference.shown["verdict"].startswith("differs: ")
    window.controls.fields["stride"].setValue(2)  # sizes that differ cannot be subtracted, and stand beside each other
    settle(qtbot, window)
    assert "compare pictures of one size" in window.message.text()
    trigger(qtbot, window, "side")
    assert not window.message.isVisible()


def test_the_values_of_both_sides_are_read_under_the_pointer(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, **SOBEL)
    trigger(qtbot, window, "split")
    window.canvas.hovered.emit((7, 9))
    output = convolve(PIXELS, "sobel", channels="each")
    inside = " ".join(map(str, PIXELS[9, 7])), " ".join(map(str, output[9, 7]))
    assert window.values_label.text() == f"x 7  y 9    input {inside[0]}    sobel by sliding on CPU {inside[1]}"
    window.canvas.hovered.emit(None)
    assert window.values_label.text() == ""


@pytest.mark.parametrize("parameters", [{"filter": "sobel"}, {"filter": "canny"}], ids=str)
def test_in_a_small_window_the_figures_give_way_to_the_controls(
    qtbot: QtBot, picture: Path, parameters: dict[str, Any]
) -> None:
    window = opened(qtbot, picture, size=(640, 480), **parameters)
    controls, figures = window.side.sizes()
    assert figures == window.tabs.tabBar().height()
    assert controls > 0.9 * window.side.height()


# --- what leaves the window -------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{"stride": 2}, {"threshold": 90.0}], ids=str)
def test_saving_writes_the_commands_picture_and_report(
    qtbot: QtBot, picture: Path, tmp_path: Path, parameters: dict[str, Any]
) -> None:
    window = opened(qtbot, picture, **SOBEL, **parameters)
    window.export.save(str(tmp_path / "saved.png"))
    settle(qtbot, window)
    done = edgeconv("run", picture, *window.model.parameters.arguments(), "-o", tmp_path / "by_command.png")
    assert done.code == 0, done.err
    assert (tmp_path / "saved.png").read_bytes() == (tmp_path / "by_command.png").read_bytes()
    record = json.loads((tmp_path / "saved.json").read_text())
    Draft202012Validator(schema("run")).validate(record)
    assert record["problem"] == json.loads((tmp_path / "by_command.json").read_text())["problem"]
    assert "saved.png" in window.statusBar().currentMessage()


def test_what_must_not_or_cannot_be_written_is_one_line(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch
) -> None:
    other, kernel = tmp_path / "other.png", tmp_path / "kernel.json"
    write_image(PIXELS, other)
    kernel.write_text("[[0,1,0],[1,-4,1],[0,1,0]]")
    window = opened(qtbot, picture, other, kernel_file=str(kernel))
    monkeypatch.setattr(export_actions, "may_replace", lambda *_: True)
    writers = (window.export.save, window.export.page_of_sides)
    attempts = [(write, path) for write in writers for path in (picture, other, kernel)]
    attempts.append((window.export.save, kernel.with_suffix(".png")))  # the report would be the kernel's file
    before = {path: path.read_bytes() for path in (picture, other, kernel)}
    for write, path in attempts:
        write(str(path))
        settle(qtbot, window)
        assert "is an input" in window.message.text()
        window.message.hide()
    assert {path: path.read_bytes() for path in before} == before
    assert not kernel.with_suffix(".png").exists()
    window.export.save(str(tmp_path / "nowhere" / "out.png"))
    settle(qtbot, window)
    assert "does not exist" in window.message.text()


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("there", ["out.png", "out.json", "page.html"])
def test_a_file_that_exists_is_replaced_only_when_the_user_says_so(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bool, there: str
) -> None:
    window = opened(qtbot, picture)
    (tmp_path / there).write_text("precious")
    asked: list[str] = []
    monkeypatch.setattr(export_actions, "may_replace", lambda parent, question: (asked.append(question), answer)[1])
    page = there == "page.html"
    write = window.export.page_of_sides if page else window.export.save
    for _ in range(2):
        write(str(tmp_path / ("page.html" if page else "out.png")))
        settle(qtbot, window)
    assert all(str(tmp_path / there) in question for question in asked)
    assert len(asked) == (1 if answer and not page else 2), "a run's own unchanged output is replaced unasked"
    assert ((tmp_path / there).read_bytes() == b"precious") != answer
    assert (tmp_path / "out.png").exists() == (there == "out.png" or (answer and not page))


def test_the_question_is_answered_no_by_default_and_a_name_gets_the_suffix_of_the_offered_one(
    qtbot: QtBot, tmp_path: Path, monkeypatch
) -> None:
    window = opened(qtbot)

    def press_return() -> None:
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        qtbot.keyClick(box, Qt.Key.Key_Return)

    QTimer.singleShot(0, press_return)
    assert not export_actions.may_replace(window, "<b>?")
    typed = str(tmp_path / "edges")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (typed, ""))
    offered = str(tmp_path / "picture_sobel.tiff")
    named = export_actions.ask_name(window, "Save", offered, export_actions.PICTURE_FILTER)
    assert named == str(tmp_path / "edges.tiff")


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"filter": "laplacian8", "output_mode": "raw", "method": "opencv"}, "picture_laplacian8_raw_opencv_s1.tiff"),
        ({"filter": "sobel", "method": "sliding", "stride": 2}, "picture_sobel_sliding_s2.png"),
        ({"filter": "sobel", "method": "sliding", "threshold": 90.0}, "picture_sobel_t90_sliding_s1.png"),
    ],
)
def test_the_dialogs_offer_the_commands_names(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch, parameters: dict[str, Any], name: str
) -> None:
    window = opened(qtbot, picture, channels=None, **parameters)
    offered: list[str] = []
    monkeypatch.setattr(export_actions, "ask_name", lambda parent, title, path, filters: offered.append(path) or path)
    for command in ("save", "export"):
        trigger(qtbot, window, command)
    assert offered == [str(tmp_path / each) for each in (name, "picture_diff.html")]
    for path in (offered[0], f"{os.path.splitext(offered[0])[0]}.json"):
        assert Path(path).stat().st_size > 0


def test_the_command_line_and_the_picture_are_copied(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture, filter="scharr")
    trigger(qtbot, window, "copy-picture")
    assert np.array_equal(pixels_of(QGuiApplication.clipboard().image()), convolve(PIXELS, "scharr", device="cpu"))
    trigger(qtbot, window, "copy-command")
    assert QGuiApplication.clipboard().text() == f"edgeconv run {picture} --filter=scharr --device=cpu"
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    try:
        odd.write_bytes(picture.read_bytes())
    except OSError:
        pytest.skip("this file system holds no such name")
    window.open_pictures([str(odd)])
    settle(qtbot, window)
    trigger(qtbot, window, "copy-command")
    assert "scharr" in QGuiApplication.clipboard().text()
    assert "rename the file" in window.message.text()


def test_the_page_is_that_of_the_command(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    write_image(random_image(90, 120, np.uint8, seed=2), other)
    window = opened(qtbot, picture, other)
    window.model.show(left=INPUT, right=ViewSource("file", str(other)))
    window.export.page_of_sides(str(tmp_path / "sides.html"))
    settle(qtbot, window)
    edgeconv("diff", picture, other, "--html", tmp_path / "diff.html")
    assert (tmp_path / "sides.html").read_bytes() == (tmp_path / "diff.html").read_bytes()


# --- figures of runs --------------------------------------------------------------------------------------------


def made_up_record() -> Any:
    made = all_run_reports()["cuda_sliding_s2"]
    made["timing"]["kernel"]["median_seconds"] = 2.2e-3
    made["speed"]["kernel_gflops"] = 1234.56
    made["phases_seconds"] = {"decode": 0.01, "host_to_device": 0.02, "convolve": 0.05}
    return as_report(made)


def test_the_speed_panel_has_the_lines_of_a_report() -> None:
    """What they say: test_shown_figures.py."""
    record = made_up_record()
    assert speed_head(record) == "1,235 nominal GFLOPS"
    rows = dict(speed_rows(record))
    assert list(rows) == ["phases", "kernel", "end to end", "speed", "roofline", "check"]
    assert rows["phases"] == "decode 10 ms, host to device 20 ms, convolve 50 ms"
    changed(record, speed=None, check=None)
    assert (list(dict(speed_rows(record))), speed_head(record)) == (["phases", "kernel", "end to end"], "–")


def test_each_cell_of_the_history(qtbot: QtBot) -> None:
    panel, record = HistoryPanel(), made_up_record()
    qtbot.addWidget(panel)
    record.method.name, record.device.kind = "sliding", "cuda"
    runs = [MeasuredRun(number, "a.png", Parameters(), record) for number in (7, 8, 9)]
    panel.show_runs(runs[:2])
    panel.show_runs(runs[1:])
    assert panel.topLevelItemCount() == 2, "the oldest goes where there are too many"
    item = panel.topLevelItem(1)
    assert item is not None
    cells = [item.text(column) for column in range(panel.columnCount())]
    assert cells == ["8", Parameters().summary(), "sliding CUDA", "2.2 ms", "1,235"]


def test_history_leads_back_to_parameters(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, method="opencv", filter="laplacian8")
    window.set_parameters(window.model.parameters.with_filter("sobel"))
    settle(qtbot, window)
    assert window.history.topLevelItemCount() == 2
    window.history.itemActivated.emit(window.history.topLevelItem(1), 0)
    settle(qtbot, window)
    assert window.model.parameters.filter == "laplacian8"
    assert window.history.topLevelItemCount() == 2, "what was measured is not measured again"
    trigger(qtbot, window, "undo")
    assert window.model.parameters.filter == "sobel"


# --- keyboard, settings, the end --------------------------------------------------------------------------------


def test_every_command_has_a_menu_and_no_key_or_mnemonic_has_two(qtbot: QtBot) -> None:
    window = opened(qtbot)
    assert window.actions_by_name.keys() == {command.name for command in actions.COMMANDS}
    keys = [key for command in actions.COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))
    assert {command.name for command in actions.COMMANDS} <= {n for _, names in actions.MENUS for n in names.split()}
    for menu in (window.menuBar(), *(action.menu() for action in window.menuBar().actions())):
        texts = [action.text() for action in menu.actions() if "&" in action.text()]
        letters = [text[text.index("&") + 1].upper() for text in texts]
        assert letters
        assert sorted(letters) == sorted(set(letters))


def test_everything_is_reached_by_tab(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    trigger(qtbot, window, "split")
    window.activateWindow()
    window.canvas.setFocus()
    reached: list[QWidget] = []
    while (widget := QApplication.focusWidget()) not in reached:
        assert widget is not None
        reached.append(widget)
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    controls, names = window.controls, ("channels", "stride", "padding", "border", "output_mode", "method", "device")
    order = [controls.filter, *controls.kernel.cells, *(controls.fields[name] for name in names), controls.advanced]
    places = [reached.index(field) for field in order]
    assert places == sorted(places), "the order of Tab is that of the eye"
    assert {window.canvas, window.left_box, window.right_box, window.tabs.tabBar()} <= set(reached)


def test_window_and_settings_are_remembered(qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "kernel.csv").write_text("0,0,0\n0,3,0\n0,0,-1\n")
    monkeypatch.chdir(tmp_path)
    first = opened(qtbot, picture, kernel_file="kernel.csv", stride=2, size=(1100, 700))
    trigger(qtbot, first, "split")
    first.canvas.setFocus()
    narrow = first.canvas.width()
    qtbot.keyClick(first, Qt.Key.Key_F9)
    qtbot.waitUntil(lambda: first.canvas.width() > narrow + 200, timeout=PATIENCE_MILLISECONDS)
    monkeypatch.chdir("/")
    assert f"--kernel-file={tmp_path / 'kernel.csv'}" in first.model.parameters.arguments()
    first.close()
    second = opened(qtbot, size=(1100, 700))
    assert second.model.parameters == first.model.parameters
    assert second.model.mode == "split"
    assert not second.side.isVisible()
    second.actions_by_name["panel"].trigger()
    qtbot.waitUntil(second.side.isVisible, timeout=PATIENCE_MILLISECONDS)


@pytest.mark.parametrize("state", ["{", "[]", r'"{\"parameters\": {\"stride\": -4}, \"mode\": {}}"'])
def test_nonsense_in_the_settings_is_passed_over(qtbot: QtBot, monkeypatch, tmp_path: Path, state: str) -> None:
    settings = tmp_path / "nonsense.ini"
    settings.write_text(f'[General]\nstate={state}\ngeometry="[1]"\nside=7\n')
    monkeypatch.setenv("EDGECONV_VIEW_SETTINGS", str(settings))
    window = opened(qtbot)
    assert window.model.parameters == Parameters(device="cpu")
    assert window.model.mode == "single"


def test_closing_while_something_is_computed_ends_quietly(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.export.save(str(tmp_path / "last.png"))
    window.set_parameters(window.model.parameters.with_filter("kirsch"))
    window.close()
    assert read_image(tmp_path / "last.png").pixels.shape == PIXELS.shape, "what is being written is written"


def test_icons_follow_the_palette(qtbot: QtBot) -> None:
    window = opened(qtbot)
    light = drawn(window)
    palette = window.palette()
    palette.setColor(palette.ColorRole.ButtonText, Qt.GlobalColor.red)
    window.setPalette(palette)
    assert not np.array_equal(drawn(window)[20:60, :120], light[20:60, :120])
