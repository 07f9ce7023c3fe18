"""The whole window off the screen: what the user does, what is then seen, written and remembered."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator
from problems import random_image
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication, QImage
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMessageBox,
    QWidget,
)
from pytestqt.qtbot import QtBot
from windows import PATIENCE_MILLISECONDS, PIXELS, opened, pixels_of, settle, shown

from edgeconv import canny, convolve
from edgeconv.core.chains import automatic_thresholds
from edgeconv.export.schemas import schema
from edgeconv.io.image import read_image, write_image
from edgeconv.methods import METHODS
from edgeconv.view.qt import actions, export_actions
from edgeconv.view.qt.window import ViewWindow
from edgeconv.view.render import LayerReady, RenderService
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource
from edgeconv.view.state import MODES


def trigger(window: ViewWindow, name: str) -> None:
    action = window.actions_by_name[name]
    assert action.isEnabled(), name
    action.trigger()


# --- opening ----------------------------------------------------------------------------------------------------


def test_a_picture_opens_with_its_output_speed_and_history(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    assert np.array_equal(shown(window), convolve(PIXELS, device="cpu"))
    assert window.speed.gflops.text().endswith("GFLOPS")
    assert dict(window.speed.texts())["error"].startswith("right, largest 0")
    assert {"kernel", "cold", "memory", "roofline"} <= dict(window.speed.texts()).keys()
    assert "convolve" in window.speed.phases_text.text()
    assert [run.number for run in window.model.runs] == [1]
    assert "120×90×3 uint8" in window.picture_label.text()
    assert window.windowTitle() == "picture.png – edgeconv"
    assert window.model.recent == [str(picture)]


def test_a_window_without_a_picture_is_quiet(qtbot: QtBot) -> None:
    window = opened(qtbot)
    assert not window.actions_by_name["save"].isEnabled()
    assert not window.message.isVisible()


@pytest.mark.parametrize("content", [None, b"", b"nothing of the sort"])
def test_a_bad_file_is_one_line_and_the_picture_before_it_stays(
    qtbot: QtBot, picture: Path, tmp_path: Path, content: bytes | None
) -> None:
    window = opened(qtbot, picture)
    bad = tmp_path / "bad.png"
    if content is not None:
        bad.write_bytes(content)
    window.open_pictures([str(bad)])
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    settle(qtbot, window)
    assert window.message_text.text().startswith(f"{bad}: ")
    assert "\n" not in window.message_text.text()
    assert window.model.picture == str(picture)
    assert np.array_equal(shown(window), convolve(PIXELS, device="cpu"))
    trigger(window, "swap")
    assert not window.message.isVisible(), "the line goes with the next thing that is asked for"


def test_a_bad_file_alone_leaves_an_empty_window_that_opens_the_next(
    qtbot: QtBot, picture: Path, tmp_path: Path
) -> None:
    window = opened(qtbot, tmp_path / "gone.png")
    assert "no such file" in window.message_text.text()
    assert window.canvas.frame is None
    window.open_pictures([str(picture)])
    settle(qtbot, window)
    assert np.array_equal(shown(window), convolve(PIXELS, device="cpu"))


def drop(window: ViewWindow, url: QUrl) -> QDropEvent:
    dropped = QMimeData()
    dropped.setUrls([url])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, dropped, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dropEvent(event)
    return event


def image_of(pixels: np.ndarray) -> QImage:
    height, width = pixels.shape[:2]
    return QImage(pixels.data, width, height, 3 * width, QImage.Format.Format_RGB888).copy()


def test_files_paths_and_pictures_may_be_pasted_and_dropped(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot)
    clipboard = QGuiApplication.clipboard()
    clipboard.setText(f" {picture} ")
    trigger(window, "paste")
    settle(qtbot, window)
    assert window.model.picture == str(picture)

    pasted = random_image(20, 30, np.uint8, seed=3)
    clipboard.setImage(image_of(pasted))
    trigger(window, "paste")
    qtbot.waitUntil(lambda: window.model.picture != str(picture), timeout=PATIENCE_MILLISECONDS)
    settle(qtbot, window)
    assert np.array_equal(shown(window), convolve(pasted, device="cpu"))
    kept = Path(str(window.model.picture))
    assert kept.exists()

    event = drop(window, QUrl.fromLocalFile(str(picture)))
    settle(qtbot, window)
    assert event.isAccepted()
    assert window.model.picture == str(picture)

    clipboard.setText("no picture at all")
    trigger(window, "paste")
    assert "no picture" in window.message_text.text()
    window.close()
    assert not kept.exists(), "what was pasted goes with the window"


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
    trigger(window, "next")
    settle(qtbot, window)
    assert window.windowTitle() == "two/picture.png – edgeconv"


def press(qtbot: QtBot, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    widget = QApplication.focusWidget()
    assert widget is not None
    qtbot.keyClick(widget, key, modifier)


def test_when_the_only_picture_has_gone_nothing_of_it_stays(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    picture.unlink()
    trigger(window, "reload")
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    settle(qtbot, window)
    assert window.canvas.frame is None
    assert window.picture_label.text() == ""


def test_the_newest_of_two_pasted_pictures_is_shown_and_none_is_lost(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, picture)
    tasks: list[Any] = []
    monkeypatch.setattr(window.tasks, "start", tasks.append)
    clipboard = QGuiApplication.clipboard()
    for side in (10, 20):
        clipboard.setImage(image_of(random_image(side, side, np.uint8)))
        trigger(window, "paste")
    older, newer = tasks
    finish_newer = newer()
    finish_older = older()
    monkeypatch.undo()
    finish_newer()
    finish_older()
    settle(qtbot, window)
    assert [read_image(path).pixels.shape[0] for path in window.model.pictures] == [90, 20, 10]
    assert window.model.picture == window.model.pictures[1]


def test_a_link_that_is_dropped_is_refused_in_one_line(qtbot: QtBot) -> None:
    window = opened(qtbot)
    assert not drop(window, QUrl("https://example.org/picture.png")).isAccepted()
    assert "save it first" in window.message_text.text()


def test_no_field_takes_a_drop_from_the_window(qtbot: QtBot) -> None:
    window = opened(qtbot)
    assert not [line for line in window.findChildren(QLineEdit) if line.acceptDrops()]


def test_names_are_never_taken_for_markup(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "<b>a&b.png"
    write_image(PIXELS, path)
    window = opened(qtbot, path)
    (action,) = window.recent_menu.actions()
    assert action.text() == str(path).replace("&", "&&")
    rich = [label.text() for label in window.findChildren(QLabel) if label.textFormat() != Qt.TextFormat.PlainText]
    knobs = [label.text() for label in window.controls.findChildren(QLabel)]
    assert [text for text in rich if text not in knobs] == [window.speed.phases_text.text()]
    tips = window.history.model().index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "&lt;b&gt;a&amp;b.png" in tips


# --- knobs ------------------------------------------------------------------------------------------------------


def test_typing_a_kernel_shows_it_and_undo_takes_it_back(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    cell = window.controls.kernel.cells[4]
    cell.setFocus()
    cell.selectAll()
    for typed in ("-", "-0", "-0.", "-0.1", "-0.15"):
        qtbot.keyClicks(cell, typed[-1])
        assert cell.text() == typed
    settle(qtbot, window)
    kernel = [[1, 1, 1], [1, -0.15, 1], [1, 1, 1]]
    assert np.array_equal(shown(window), convolve(PIXELS, kernel, device="cpu"))
    assert window.controls.filter.currentText() == "custom"
    assert window.model.command() == f"edgeconv run {picture} '--kernel=1,1,1;1,-0.15,1;1,1,1' --device=cpu"
    qtbot.keyClick(cell, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    settle(qtbot, window)
    assert cell.text() == "-8"
    assert window.controls.filter.currentText() == "laplacian8"
    assert np.array_equal(shown(window), convolve(PIXELS, device="cpu"))
    trigger(window, "redo")
    assert cell.text() == "-0.15"


def test_a_cell_without_a_number_is_marked_and_changes_nothing(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    cell = window.controls.kernel.cells[0]
    cell.selectAll()
    before = window.model.parameters
    qtbot.keyClicks(cell, "-")
    assert cell.styleSheet()
    assert window.model.parameters == before
    assert not window.message.isVisible(), "a sign is the beginning of a number"
    qtbot.keyClicks(cell, "-")
    assert window.model.parameters == before
    assert "not a number" in window.message_text.text()
    qtbot.keyClick(cell, Qt.Key.Key_Backspace)
    qtbot.keyClicks(cell, "3")
    assert not cell.styleSheet()
    assert window.model.parameters.kernel == "-3,1,1;1,-8,1;1,1,1"


@pytest.mark.parametrize("knob", ["stride", "padding", "threads", "workspace_limit"])
def test_undo_is_the_windows_in_every_field(qtbot: QtBot, picture: Path, knob: str) -> None:
    window = opened(qtbot, picture)
    before = window.model.parameters
    window.activateWindow()
    window.controls.advanced.setChecked(True)
    field = window.controls.of_methods.get(knob) or getattr(window.controls, knob)
    field.setFocus()
    (field if isinstance(field, QLineEdit) else field.lineEdit()).selectAll()
    press(qtbot, Qt.Key.Key_2)
    press(qtbot, Qt.Key.Key_Return)
    assert str(getattr(window.model.parameters, knob)) == "2"
    press(qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.model.parameters == before
    press(qtbot, Qt.Key.Key_Y, Qt.KeyboardModifier.ControlModifier)
    assert str(getattr(window.model.parameters, knob)) == "2"


def test_a_kernel_file_that_was_written_anew_is_read_anew(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.csv"
    window = opened(qtbot, picture)
    for centre in (3, 5, 7):
        kernel.write_text(f"0,0,0\n0,{centre},0\n0,0,-1\n")
        if centre == 7:
            trigger(window, "reload")
        else:
            window.load_kernel(str(kernel))
        settle(qtbot, window)
        weights = [[0, 0, 0], [0, centre, 0], [0, 0, -1]]
        assert np.array_equal(shown(window), convolve(PIXELS, weights, device="cpu")), centre
        assert window.controls.kernel.cells[4].text() == str(centre)


def test_what_is_saved_is_shown_though_the_kernel_file_changed(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "kernel.csv"
    kernel.write_text("0,0,0\n0,3,0\n0,0,-1\n")
    window = opened(qtbot, picture, kernel_file=str(kernel))
    kernel.write_text("0,0,0\n0,5,0\n0,0,-1\n")
    monkeypatch.setattr(export_actions, "ask_name", lambda *_: str(tmp_path / "out.png"))
    trigger(window, "save")
    settle(qtbot, window)
    assert np.array_equal(shown(window), read_image(tmp_path / "out.png").pixels)


def test_a_relative_kernel_file_is_remembered_and_copied_by_its_full_name(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernel.csv").write_text("0,0,0\n0,3,0\n0,0,-1\n")
    monkeypatch.chdir(tmp_path)
    window = opened(qtbot, picture, kernel_file="kernel.csv", stride=2)
    monkeypatch.chdir("/")
    assert f"--kernel-file={tmp_path / 'kernel.csv'}" in str(window.model.command())
    window.close()
    assert opened(qtbot).model.parameters == window.model.parameters


def test_no_mnemonic_is_taken_twice(qtbot: QtBot) -> None:
    window = opened(qtbot)
    texts = [action.text() for action in window.menuBar().actions()]
    texts += [label.text() for label in window.findChildren(QLabel) if label.buddy() is not None]
    letters = [text[text.index("&") + 1].upper() for text in texts if "&" in text]
    assert len(letters) > 15
    assert sorted(letters) == sorted(set(letters))


@pytest.mark.parametrize(
    ("knob", "word", "changed"),
    [
        ("filter", "kirsch", {"filter": "kirsch"}),
        ("channels", "each", {"channels": "each"}),
        ("border", "reflect", {"border": "reflect"}),
        ("output_mode", "normalize", {"output_mode": "normalize"}),
        ("padding", "valid", {"padding": "valid"}),
        ("method", "sliding", {"method": "sliding"}),
    ],
)
def test_every_list_is_a_live_knob(qtbot: QtBot, picture: Path, knob: str, word: str, changed: dict[str, Any]) -> None:
    window = opened(qtbot, picture)
    box = getattr(window.controls, knob)
    box.setCurrentText(word)
    box.textActivated.emit(word)
    settle(qtbot, window)
    expected = convolve(PIXELS, **({"device": "cpu"} | changed))
    assert np.array_equal(shown(window), np.broadcast_to(expected, shown(window).shape))


def test_stride_luma_and_the_rarer_controls(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    controls = window.controls
    assert not controls.luma.isVisible()
    controls.stride.setValue(3)
    controls.channels.textActivated.emit("luma")
    controls.luma.textActivated.emit("bt709")
    of_methods = controls.of_methods
    of_methods["threads"].setValue(1)
    of_methods["cudnn_find"].setChecked(True)
    of_methods["block"].textActivated.emit("8")
    of_methods["workspace_limit"].setText("64M")
    of_methods["workspace_limit"].editingFinished.emit()
    settle(qtbot, window)
    assert controls.luma.isVisible()
    words = " ".join(window.model.parameters.arguments())
    assert words == (
        "--channels=luma --luma=bt709 --stride=3 --device=cpu --workspace-limit=64M --threads=1 --cudnn-find --block=8"
    )
    of_methods["cudnn_find"].setChecked(False)  # what concerns only methods of a GPU is refused by the others
    of_methods["block"].textActivated.emit("16")
    settle(qtbot, window)
    expected = convolve(PIXELS, channels="luma", luma="bt709", stride=3, device="cpu")
    assert np.array_equal(shown(window), np.repeat(expected[:, :, np.newaxis], 3, axis=2))
    trigger(window, "reset")
    assert window.model.parameters.arguments() == []
    assert controls.stride.value() == 1


def test_canny_has_knobs_of_its_own_and_single_filters_have_theirs(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="sobel", channels="each", stride=2)
    controls = window.controls
    of_chains = (controls.thresholds, controls.gradient, controls.blur)
    of_filters = (controls.channels, controls.stride, controls.padding, controls.border, controls.output_mode)
    assert [widget.isVisible() for widget in (*of_chains, *of_filters)] == [False] * 3 + [True] * 5
    controls.filter.setCurrentText("canny")
    controls.filter.textActivated.emit("canny")
    settle(qtbot, window)
    assert [widget.isVisible() for widget in (*of_chains, *of_filters)] == [True] * 3 + [False] * 5
    assert controls.note.text() == "a chain of stages: sobel, thin, hysteresis"
    assert np.array_equal(shown(window), np.repeat(canny(PIXELS)[:, :, np.newaxis], 3, axis=2))
    found = automatic_thresholds("median", PIXELS)
    assert (controls.low.value, controls.high.value) == found, "what the rule chose"
    assert not controls.kernel.isVisible()
    controls.high.slider.setValue(controls.high.slider.value() + 9)
    settle(qtbot, window)
    low, high = map(float, str(window.model.parameters.thresholds).split(","))
    assert (low, high) == (found[0], controls.high.value)
    assert np.array_equal(shown(window), np.repeat(canny(PIXELS, low, high)[:, :, np.newaxis], 3, axis=2))
    controls.low.slider.setValue(controls.high.slider.value() + 1)
    assert controls.low.value == controls.high.value
    controls.thresholds.setCurrentText("50,150")
    controls.thresholds.lineEdit().editingFinished.emit()
    controls.gradient.textActivated.emit("l2")
    controls.blur.textActivated.emit("3")
    settle(qtbot, window)
    words = "--filter=canny --thresholds=50,150 --gradient=l2 --blur=3 --device=cpu"
    assert " ".join(window.model.parameters.arguments()) == words
    expected = canny(PIXELS, 50, 150, gradient="l2", blur=3)
    assert np.array_equal(shown(window), np.repeat(expected[:, :, np.newaxis], 3, axis=2))
    controls.thresholds.setCurrentText("50")
    controls.thresholds.lineEdit().editingFinished.emit()
    assert "--thresholds '50' is not LOW,HIGH" in window.message_text.text()
    controls.filter.setCurrentText("kirsch")
    controls.filter.textActivated.emit("kirsch")
    settle(qtbot, window)
    assert window.model.parameters.arguments() == ["--filter=kirsch", "--device=cpu"]
    assert controls.kernel.isVisible()


def test_a_word_without_meaning_is_refused_in_one_line(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    window.controls.padding.setCurrentText("wide")
    window.controls.padding.lineEdit().editingFinished.emit()
    assert "Padding 'wide'" in window.message_text.text()
    assert window.model.parameters.padding == "same"


def test_a_method_that_cannot_run_is_one_line_and_can_be_undone(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    window.controls.method.textActivated.emit("implicit")
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    assert "implicit" in window.message_text.text()
    trigger(window, "undo")
    settle(qtbot, window)
    assert not window.message.isVisible()
    assert np.array_equal(shown(window), convolve(PIXELS, device="cpu"))


def test_a_kernel_file_is_loaded_and_may_go_away(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "full.json"
    weights = np.arange(81).reshape(3, 3, 3, 3) - 40
    kernel.write_text(str(weights.tolist()))
    window = opened(qtbot, picture)
    window.set_parameters(window.model.parameters.with_kernel_file(str(kernel)))
    settle(qtbot, window)
    assert np.array_equal(shown(window), convolve(PIXELS, weights, device="cpu"))
    assert not window.controls.kernel.isEnabled()
    kernel.unlink()
    window.reload()
    settle(qtbot, window)
    assert str(kernel) in window.message_text.text()


def test_a_stale_request_is_cancelled_and_never_seen(qtbot: QtBot, picture: Path, monkeypatch) -> None:
    window = opened(qtbot, picture, method="opencv")
    go_on, held = threading.Event(), threading.Event()
    served: list[int] = []
    serve = RenderService.serve

    def slow_at_first(self: RenderService, request: Any) -> None:
        if request.parameters.filter == "sobel":
            held.set()
            go_on.wait(PATIENCE_MILLISECONDS / 1000)
            assert not self.wants(request.generation), "a newer request was made meanwhile"
        serve(self, request)
        served.append(request.generation)

    monkeypatch.setattr(RenderService, "serve", slow_at_first)
    labels: list[str] = []
    show = window._show_layer
    monkeypatch.setattr(window, "_show_layer", lambda answer: (labels.append(answer.layer.label), show(answer)))
    window.set_parameters(window.model.parameters.with_filter("sobel"))
    assert held.wait(PATIENCE_MILLISECONDS / 1000)
    window.set_parameters(window.model.parameters.with_filter("kirsch"))
    settle(qtbot, window)
    go_on.set()
    qtbot.waitUntil(lambda: len(served) == 2, timeout=PATIENCE_MILLISECONDS)
    QApplication.processEvents()
    assert labels == ["kirsch by opencv on CPU"]


def test_an_answer_to_an_older_request_is_not_shown(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    layer = window.canvas.right
    assert layer is not None
    window._on_answer(LayerReady(window.model.generation - 1, "left", layer))
    assert window.canvas.left is None


# --- ways to look -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["1", "2", "3", "4", "5"])
def test_keys_choose_the_view(qtbot: QtBot, picture: Path, key: str) -> None:
    window = opened(qtbot, picture)
    window.activateWindow()
    window.canvas.setFocus()
    qtbot.keyClick(window.canvas, key)
    settle(qtbot, window)
    mode = MODES[int(key) - 1]
    assert window.canvas.mode is mode
    assert window.actions_by_name[mode.name].isChecked()
    assert window.left_box.isVisible() == mode.needs_both
    assert not window.message.isVisible()


def test_the_difference_shows_map_and_figures_of_diff(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.model.show(left=REFERENCE_OUTPUT)
    trigger(window, "difference")
    settle(qtbot, window)
    assert window.canvas.heat is not None
    assert window.canvas.heat.legend == (0,)
    found = dict(window.difference.texts())
    assert found["verdict"] == f"same: all {PIXELS.size:,} samples are equal"
    window.model.show(left=INPUT)
    window.refresh()
    settle(qtbot, window)
    assert dict(window.difference.texts())["verdict"].startswith("differs: ")


def test_sizes_that_differ_cannot_be_subtracted_but_stand_beside_each_other(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, stride=2)
    trigger(window, "difference")
    window.model.show(left=INPUT)
    window.refresh()
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    assert "compare pictures of one size" in window.message_text.text()
    trigger(window, "side")
    settle(qtbot, window)
    assert not window.message.isVisible()


def test_the_values_of_both_sides_are_read_under_the_pointer(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    trigger(window, "split")
    settle(qtbot, window)
    window.canvas.hovered.emit((7, 9))
    output = convolve(PIXELS, device="cpu")
    inside = " ".join(map(str, PIXELS[9, 7])), " ".join(map(str, output[9, 7]))
    assert window.values_label.text() == f"x 7  y 9    input {inside[0]}    output {inside[1]}"
    window.canvas.hovered.emit(None)
    assert window.values_label.text() == ""


def test_the_sides_are_exchanged(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    trigger(window, "swap")
    settle(qtbot, window)
    assert (window.model.left, window.model.right) == (OUTPUT, INPUT)
    assert np.array_equal(shown(window), PIXELS)


def test_methods_that_cannot_run_here_cannot_be_chosen_as_a_side(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    settle(qtbot, window)
    reasons = {ViewSource("method", e.name, e.device): e.load().unavailable_reason() for e in METHODS}
    for index in range(window.right_box.count()):
        source = window.right_box.itemData(index)
        tip = window.right_box.itemData(index, Qt.ItemDataRole.ToolTipRole)
        assert tip == reasons.get(source), source
        assert window.right_box.model().item(index).isEnabled() == (tip is None)


# --- what leaves the window -------------------------------------------------------------------------------------


def test_saving_writes_the_commands_picture_and_report(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture, filter="sobel", stride=2, channels="each")
    window.export_actions.save(str(tmp_path / "saved.png"))
    settle(qtbot, window)
    words = window.model.parameters.arguments()
    done = edgeconv("run", picture, *words, "-o", tmp_path / "by_command.png")
    assert done.code == 0, done.err
    assert (tmp_path / "saved.png").read_bytes() == (tmp_path / "by_command.png").read_bytes()
    record = json.loads((tmp_path / "saved.json").read_text())
    Draft202012Validator(schema("run")).validate(record)
    assert record["problem"] == json.loads((tmp_path / "by_command.json").read_text())["problem"]
    assert "saved.png" in window.statusBar().currentMessage()


def test_no_input_is_replaced_by_anything(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    other, kernel = tmp_path / "other.png", tmp_path / "kernel.json"
    write_image(PIXELS, other)
    kernel.write_text("[[0,1,0],[1,-4,1],[0,1,0]]")
    window = opened(qtbot, picture, other, kernel_file=str(kernel))
    away = window.export_actions
    writers = (away.save, away.page_of_sides, away.page_of_methods)
    attempts = [(write, path) for write in writers for path in (picture, other, kernel)]
    attempts.append((away.save, kernel.with_suffix(".png")))  # the report would be the kernel's file
    before = {path: path.read_bytes() for path in (picture, other, kernel)}
    for write, path in attempts:
        write(str(path))
        qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
        assert "is an input" in window.message_text.text()
        window.message.hide()
    assert {path: path.read_bytes() for path in before} == before
    assert not kernel.with_suffix(".png").exists()


@pytest.mark.parametrize("answer", [True, False])
def test_a_report_that_nobody_was_asked_about_is_asked_about(
    qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    window = opened(qtbot, picture)
    target, beside = tmp_path / "out.png", tmp_path / "out.json"
    beside.write_text("precious")
    asked: list[str] = []
    monkeypatch.setattr(export_actions, "ask_name", lambda *_: str(target))
    monkeypatch.setattr(export_actions, "replace_too", lambda parent, question: (asked.append(question), answer)[1])
    trigger(window, "save")
    settle(qtbot, window)
    assert len(asked) == 1
    assert str(beside) in asked[0]
    assert target.exists() == answer
    assert (beside.read_text() == "precious") != answer
    if answer:
        trigger(window, "save")
        settle(qtbot, window)
        assert len(asked) == 1, "the report of the very picture that is replaced goes with it"


def test_the_question_is_answered_no_by_default(qtbot: QtBot) -> None:
    window = opened(qtbot)

    def press_return() -> None:
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        qtbot.keyClick(box, Qt.Key.Key_Return)

    QTimer.singleShot(0, press_return)
    assert not export_actions.replace_too(window, "<b>?")


def test_a_name_without_a_suffix_gets_that_of_the_offered_one(qtbot: QtBot, tmp_path: Path, monkeypatch) -> None:
    window = opened(qtbot)
    monkeypatch.setattr(QFileDialog, "exec", lambda dialog: dialog.selectFile("edges") or 1)
    offered = str(tmp_path / "picture_sobel.tiff")
    assert export_actions.ask_name(window, "Save", offered, export_actions.PICTURE_FILTER) == str(
        tmp_path / "edges.tiff"
    )


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"output_mode": "raw", "method": "opencv"}, "picture_laplacian8_raw_opencv_s1.tiff"),
        ({"filter": "sobel", "method": "sliding", "stride": 2}, "picture_sobel_sliding_s2.png"),
    ],
)
def test_the_offered_name_is_the_commands_and_can_be_saved(
    qtbot: QtBot, picture: Path, monkeypatch, parameters: dict[str, Any], name: str
) -> None:
    window = opened(qtbot, picture, **parameters)
    monkeypatch.setattr(export_actions, "ask_name", lambda parent, title, offered, filters: offered)
    trigger(window, "save")
    settle(qtbot, window)
    assert not window.message.isVisible()
    assert (picture.parent / name).exists()


def test_floats_are_copied_in_the_range_in_which_they_are_shown(qtbot: QtBot, tmp_path: Path) -> None:
    wide, narrow = tmp_path / "wide.npy", tmp_path / "narrow.npy"
    write_image(random_image(20, 30, np.float32) * np.float32(4), wide)
    write_image(random_image(20, 30, np.float32), narrow)
    window = opened(qtbot, wide, narrow)
    window.model.show(left=INPUT, right=ViewSource("file", str(narrow)))
    trigger(window, "split")
    settle(qtbot, window)
    trigger(window, "copy-picture")
    settle(qtbot, window)
    window.canvas.bar = 0.0
    assert np.array_equal(pixels_of(QGuiApplication.clipboard().image())[15:], shown(window)[15:])


def test_the_map_is_copied_where_it_is_what_is_seen(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    trigger(window, "difference")
    settle(qtbot, window)
    trigger(window, "copy-picture")
    settle(qtbot, window)
    heat = window.canvas.heat
    assert heat is not None
    expected = heat.pyramid.part(slice(0, 90), slice(0, 120))
    assert np.array_equal(pixels_of(QGuiApplication.clipboard().image()), expected)


def test_a_name_that_is_no_text_is_not_copied(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    try:
        odd.write_bytes(picture.read_bytes())
    except OSError:
        pytest.skip("this file system holds no such name")
    window = opened(qtbot, odd)
    QGuiApplication.clipboard().setText("before")
    trigger(window, "copy-command")
    assert QGuiApplication.clipboard().text() == "before"
    assert "not valid text" in window.message_text.text()


def test_a_place_that_cannot_be_written_is_one_line(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.export_actions.save(str(tmp_path / "nowhere" / "out.png"))
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    assert "does not exist" in window.message_text.text()


def test_the_dialogs_offer_a_name_and_take_the_answer(qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch) -> None:
    window = opened(qtbot, picture, method="opencv")
    offered: list[str] = []

    def answer(parent: QWidget, title: str, name: str, filters: str) -> str:
        offered.append(name)
        return str(tmp_path / f"answer{len(offered)}{Path(name).suffix}")

    monkeypatch.setattr(export_actions, "ask_name", answer)
    for name in ("save", "export-diff", "export-methods"):
        trigger(window, name)
        settle(qtbot, window)
    names = ["picture_laplacian8_opencv_s1.png", "picture_diff.html", "picture_methods.html"]
    assert offered == [str(tmp_path / name) for name in names]
    for name in ("answer1.png", "answer1.json", "answer2.html", "answer3.html"):
        assert (tmp_path / name).stat().st_size > 0, name

    monkeypatch.setattr("edgeconv.view.qt.window.QFileDialog.getOpenFileNames", lambda *_: ([str(picture)], ""))
    trigger(window, "open")
    kernel = tmp_path / "kernel.csv"
    kernel.write_text("0,0,0\n0,1,0\n0,0,0\n")
    monkeypatch.setattr("edgeconv.view.qt.window.QFileDialog.getOpenFileName", lambda *_: (str(kernel), ""))
    trigger(window, "load-kernel")
    settle(qtbot, window)
    assert np.array_equal(shown(window), convolve(PIXELS, "identity", device="cpu"))


def test_pages_are_those_of_the_commands(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.png"
    write_image(random_image(90, 120, np.uint8, seed=2), other)
    window = opened(qtbot, picture, other)
    window.model.show(left=INPUT, right=ViewSource("file", str(other)))
    window.export_actions.page_of_sides(str(tmp_path / "sides.html"))
    window.export_actions.page_of_methods(str(tmp_path / "methods.html"))
    settle(qtbot, window)
    edgeconv("diff", picture, other, "--html", tmp_path / "diff.html")
    assert (tmp_path / "sides.html").read_bytes() == (tmp_path / "diff.html").read_bytes()
    done = edgeconv("compare", picture, "--html", tmp_path / "compare.html")
    assert done.code == 0, done.err
    times = re.compile(r"[\d,.]+ (s|ms|µs), median of \d+ runs?|edgeconv [0-9a-f]{64}")  # and the mark, a hash of them
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("methods.html", "compare.html")]
    assert [bool(times.search(page)) for page in pages] == [True, True]
    assert times.sub("", pages[0]) == times.sub("", pages[1])


def test_the_command_line_and_the_picture_are_copied(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="scharr")
    trigger(window, "copy-command")
    assert QGuiApplication.clipboard().text() == f"edgeconv run {picture} --filter=scharr --device=cpu"
    trigger(window, "copy-picture")
    settle(qtbot, window)
    assert np.array_equal(pixels_of(QGuiApplication.clipboard().image()), convolve(PIXELS, "scharr", device="cpu"))


# --- runs ------------------------------------------------------------------------------------------------------


def test_history_leads_back_to_parameters(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, method="opencv")
    window.set_parameters(window.model.parameters.with_filter("sobel"))
    settle(qtbot, window)
    table = window.history.model()
    assert table.rowCount() == 2
    texts = [table.index(0, column).data() for column in range(table.columnCount())]
    assert texts[:3] == ["2", "sobel", "opencv CPU"]
    assert all(texts)
    window.history.activated.emit(table.index(1, 0))
    settle(qtbot, window)
    assert window.model.parameters.filter == "laplacian8"
    assert table.rowCount() == 2, "what was measured is not measured again"
    trigger(window, "undo")
    assert window.model.parameters.filter == "sobel"


# --- keyboard, settings, the end --------------------------------------------------------------------------------


def test_every_command_has_an_action_and_no_key_has_two(qtbot: QtBot) -> None:
    window = opened(qtbot)
    assert window.actions_by_name.keys() == {command.name for command in actions.COMMANDS}
    keys = [key for command in actions.COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))
    in_menus = {name for _, names in actions.MENUS for name in names.split()}
    assert {command.name for command in actions.COMMANDS} <= in_menus


def test_everything_is_reached_by_tab(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    trigger(window, "split")
    settle(qtbot, window)
    window.activateWindow()
    window.canvas.setFocus()
    reached: list[QWidget] = []
    while (widget := QApplication.focusWidget()) not in reached:
        assert widget is not None
        reached.append(widget)
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    controls = window.controls
    knobs = [controls.filter, *controls.kernel.cells, controls.channels, controls.stride, controls.padding]
    knobs += [controls.border, controls.output_mode, controls.method, controls.device, controls.advanced]
    places = [reached.index(knob) for knob in knobs]
    assert places == sorted(places), "the order of Tab is that of the eye"
    assert {window.canvas, window.left_box, window.right_box, window.tabs.tabBar()} <= set(reached)


def test_window_and_settings_are_remembered(qtbot: QtBot, picture: Path) -> None:
    first = opened(qtbot, picture, filter="sobel", stride=2, size=(1100, 700))
    trigger(first, "split")
    first.close()
    second = opened(qtbot)
    assert second.model.parameters == first.model.parameters
    assert (second.model.mode.name, second.model.recent) == ("split", [str(picture)])
    second.recent_menu.actions()[0].trigger()
    settle(qtbot, second)
    assert second.model.picture == str(picture)


def test_nonsense_in_the_settings_is_passed_over(qtbot: QtBot, monkeypatch, tmp_path: Path) -> None:
    settings = tmp_path / "nonsense.ini"
    settings.write_text('[General]\nparameters="{\\"stride\\": -4}"\nrecent="{}"\nmode={\ngeometry="[1]"\n')
    monkeypatch.setenv("EDGECONV_VIEW_SETTINGS", str(settings))
    window = opened(qtbot)
    assert window.model.parameters.arguments() == ["--device=cpu"]
    assert (window.model.mode, window.model.recent) == (MODES[0], [])


def test_closing_while_something_is_computed_ends_quietly(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.export_actions.save(str(tmp_path / "last.png"))
    window.set_parameters(window.model.parameters.with_filter("kirsch"))
    window.close()
    assert read_image(tmp_path / "last.png").pixels.shape == PIXELS.shape, "what is being written is written"
