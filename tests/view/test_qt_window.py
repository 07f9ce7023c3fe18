"""The whole window off the screen: what the user does, what is then seen, written and remembered."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import edgeconv
from jsonschema import Draft202012Validator
from problems import random_image
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication, QImage, QPalette
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget
from pytestqt.qtbot import QtBot
from windows import PATIENCE_MILLISECONDS, drawn, opened, pixels_of, settle

from edgeconv import report
from edgeconv.api import convolve
from edgeconv.bench.record import read_record
from edgeconv.image import read_image, write_image
from edgeconv.methods import METHODS
from edgeconv.view.qt import actions
from edgeconv.view.qt.seen import nearest
from edgeconv.view.qt.window import ViewWindow
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, Source
from edgeconv.view.state import MODES
from edgeconv.view.work import LayerReady, Workshop

PIXELS = random_image(90, 120, np.uint8)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    write_image(PIXELS, path)
    return path


def shown(window: ViewWindow) -> np.ndarray:
    """The right side's pixels as the screen has them at 1:1."""
    window.canvas.actual_size()
    x, y = (nearest(place) for place in window.canvas.viewport.to_screen(0, 0))
    frame = window.canvas.frame
    assert frame is not None
    return drawn(window.canvas)[y : y + frame.height, x : x + frame.width]


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
    assert {"kernel", "cold", "memory", "roofline", "phases"} <= dict(window.speed.texts()).keys()
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


def test_files_paths_and_pictures_may_be_pasted_and_dropped(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot)
    clipboard = QGuiApplication.clipboard()
    clipboard.setText(f" {picture} ")
    trigger(window, "paste")
    settle(qtbot, window)
    assert window.model.picture == str(picture)

    pasted = random_image(20, 30, np.uint8, seed=3)
    clipboard.setImage(QImage(pasted.data, 30, 20, 90, QImage.Format.Format_RGB888).copy())
    trigger(window, "paste")
    qtbot.waitUntil(lambda: window.model.picture != str(picture), timeout=PATIENCE_MILLISECONDS)
    settle(qtbot, window)
    assert np.array_equal(shown(window), convolve(pasted, device="cpu"))
    kept = Path(str(window.model.picture))
    assert kept.exists()

    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(str(picture))])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, dropped, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dropEvent(event)
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
    other = tmp_path / "other.png"
    write_image(random_image(90, 120, np.uint8, seed=2), other)
    window = opened(qtbot, picture, other)
    index = window.right_box.findText("other.png")
    window.right_box.setCurrentIndex(index)
    window.right_box.activated.emit(index)
    settle(qtbot, window)
    assert np.array_equal(shown(window), random_image(90, 120, np.uint8, seed=2))
    trigger(window, "next")
    settle(qtbot, window)
    assert window.windowTitle() == "other.png – edgeconv"


# --- knobs ------------------------------------------------------------------------------------------------------


def test_typing_a_kernel_shows_it_and_undo_takes_it_back(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    cell = window.controls.kernel.cells[4]
    cell.setFocus()
    cell.selectAll()
    qtbot.keyClicks(cell, "-7.5")
    settle(qtbot, window)
    kernel = [[1, 1, 1], [1, -7.5, 1], [1, 1, 1]]
    assert np.array_equal(shown(window), convolve(PIXELS, kernel, device="cpu"))
    assert window.controls.filter.currentText() == "custom"
    assert window.model.command() == f"edgeconv run {picture} '--kernel=1,1,1;1,-7.5,1;1,1,1' --device=cpu"
    qtbot.keyClick(cell, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    settle(qtbot, window)
    assert cell.text() == "-8"
    assert window.controls.filter.currentText() == "laplacian8"
    assert np.array_equal(shown(window), convolve(PIXELS, device="cpu"))
    trigger(window, "redo")
    assert cell.text() == "-7.5"


def test_a_cell_without_a_number_is_marked_and_changes_nothing(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    cell = window.controls.kernel.cells[0]
    cell.selectAll()
    before = window.model.parameters
    qtbot.keyClicks(cell, "-")
    assert cell.property("wrong")
    assert window.model.parameters == before
    assert "no number" in window.message_text.text()
    qtbot.keyClicks(cell, "3")
    assert not cell.property("wrong")
    assert window.model.parameters.kernel == "-3,1,1;1,-8,1;1,1,1"


def test_up_and_down_walk_the_cells(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    cells = window.controls.kernel.cells
    window.activateWindow()
    cells[1].setFocus()
    qtbot.keyClick(cells[1], Qt.Key.Key_Down)
    assert QApplication.focusWidget() is cells[4]
    qtbot.keyClick(cells[1], Qt.Key.Key_Up)
    assert QApplication.focusWidget() is cells[7]


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


def test_stride_luma_and_the_rarer_knobs(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    controls = window.controls
    assert not controls.luma.isVisible()
    controls.stride.setValue(3)
    controls.channels.textActivated.emit("luma")
    controls.luma.textActivated.emit("bt709")
    controls.threads.setValue(1)
    controls.cudnn_find.setChecked(True)
    controls.block.textActivated.emit("8")
    controls.workspace_limit.setText("64M")
    controls.workspace_limit.editingFinished.emit()
    settle(qtbot, window)
    assert controls.luma.isVisible()
    words = " ".join(window.model.parameters.words())
    assert words == (
        "--channels=luma --luma=bt709 --stride=3 --device=cpu --threads=1 --workspace-limit=64M --cudnn-find --block=8"
    )
    expected = convolve(PIXELS, channels="luma", luma="bt709", stride=3, device="cpu")
    assert np.array_equal(shown(window), np.repeat(expected, 3, axis=2))
    trigger(window, "reset")
    assert window.model.parameters.words() == []
    assert controls.stride.value() == 1


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
    window = opened(qtbot, picture)
    go_on, held = threading.Event(), threading.Event()
    served: list[int] = []
    serve = Workshop.serve

    def slow_at_first(self: Workshop, request: Any, token: Any, deliver: Any) -> None:
        if request.parameters.filter == "sobel":
            held.set()
            go_on.wait(PATIENCE_MILLISECONDS / 1000)
            assert token.cancelled, "a newer request was made meanwhile"
        serve(self, request, token, deliver)
        served.append(request.generation)

    monkeypatch.setattr(Workshop, "serve", slow_at_first)
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
    reasons = {Source("method", e.name, e.device): e.load().unavailable_reason() for e in METHODS}
    for index in range(window.right_box.count()):
        source = window.right_box.itemData(index)
        tip = window.right_box.itemData(index, Qt.ItemDataRole.ToolTipRole)
        assert tip == reasons.get(source), source
        assert window.right_box.model().item(index).isEnabled() == (tip is None)


# --- what leaves the window -------------------------------------------------------------------------------------


def test_saving_writes_the_commands_picture_and_report(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture, filter="sobel", stride=2, channels="each")
    window.outgoing.save(str(tmp_path / "saved.png"))
    settle(qtbot, window)
    words = window.model.parameters.words()
    done = edgeconv("run", picture, *words, "-o", tmp_path / "by_command.png")
    assert done.code == 0, done.err
    assert (tmp_path / "saved.png").read_bytes() == (tmp_path / "by_command.png").read_bytes()
    record = json.loads((tmp_path / "saved.json").read_text())
    Draft202012Validator(report.schema()).validate(record)
    assert record["problem"] == json.loads((tmp_path / "by_command.json").read_text())["problem"]
    assert "saved.png" in window.statusBar().currentMessage()


def test_nothing_is_written_over_the_input(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    before = picture.read_bytes()
    for write in (window.outgoing.save, window.outgoing.page_of_sides, window.outgoing.page_of_methods):
        write(str(picture))
        qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
        assert "input" in window.message_text.text()
        window.message.hide()
    assert picture.read_bytes() == before


def test_a_place_that_cannot_be_written_is_one_line(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.outgoing.save(str(tmp_path / "nowhere" / "out.png"))
    qtbot.waitUntil(window.message.isVisible, timeout=PATIENCE_MILLISECONDS)
    assert "does not exist" in window.message_text.text()


def test_the_dialogs_offer_a_name_and_take_the_answer(qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch) -> None:
    window = opened(qtbot, picture)
    offered: list[str] = []

    def answer(parent: QWidget, title: str, name: str, filters: str) -> tuple[str, str]:
        offered.append(name)
        return str(tmp_path / f"answer{len(offered)}{Path(name).suffix}"), ""

    monkeypatch.setattr("edgeconv.view.qt.outgoing.QFileDialog.getSaveFileName", answer)
    for name in ("save", "export-diff", "export-methods"):
        trigger(window, name)
        settle(qtbot, window)
    names = ["picture_laplacian8_s1.png", "picture_diff.html", "picture_methods.html"]
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
    window.model.show(left=INPUT, right=Source("file", str(other)))
    window.outgoing.page_of_sides(str(tmp_path / "sides.html"))
    window.outgoing.page_of_methods(str(tmp_path / "methods.html"))
    settle(qtbot, window)
    edgeconv("diff", picture, other, "--html", tmp_path / "diff.html")
    assert (tmp_path / "sides.html").read_bytes() == (tmp_path / "diff.html").read_bytes()
    done = edgeconv("compare", picture, "--html", tmp_path / "compare.html")
    assert done.code == 0, done.err
    assert (tmp_path / "methods.html").read_bytes() == (tmp_path / "compare.html").read_bytes()


def test_the_page_of_computed_sides_names_them(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.model.show(left=REFERENCE_OUTPUT)
    window.outgoing.page_of_sides(str(tmp_path / "page.html"))
    settle(qtbot, window)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "laplacian8 by reference on CPU" in page
    assert "laplacian8 by opencv on CPU" in page
    assert "all samples are equal" in page or "samples are equal" in page


def test_the_command_line_and_the_picture_are_copied(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="scharr")
    trigger(window, "copy-command")
    assert QGuiApplication.clipboard().text() == f"edgeconv run {picture} --filter=scharr --device=cpu"
    trigger(window, "copy-picture")
    settle(qtbot, window)
    assert np.array_equal(pixels_of(QGuiApplication.clipboard().image()), convolve(PIXELS, "scharr", device="cpu"))


# --- runs and benches -------------------------------------------------------------------------------------------


def test_history_leads_back_to_parameters(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    window.set_parameters(window.model.parameters.with_filter("sobel"))
    settle(qtbot, window)
    table = window.history.table.model()
    assert table.rowCount() == 2
    texts = [table.index(0, column).data() for column in range(table.columnCount())]
    assert texts[:3] == ["2", "sobel", "opencv CPU"]
    assert all(texts)
    window.history.table.activated.emit(table.index(1, 0))
    settle(qtbot, window)
    assert window.model.parameters.filter == "laplacian8"
    assert table.rowCount() == 2, "what was measured is not measured again"
    trigger(window, "undo")
    assert window.model.parameters.filter == "sobel"


def test_bench_this_draws_and_keeps_a_record(qtbot: QtBot, picture: Path, tmp_path: Path, monkeypatch) -> None:
    window = opened(qtbot, picture)
    trigger(window, "bench")
    assert window.bench.running
    assert window.tabs.currentWidget() is window.bench
    settle(qtbot, window)
    assert {line.label for line in window.bench.plot.lines} == {"opencv on CPU", "sliding on CPU", "im2col on CPU"}
    assert len(np.unique(pixels_of(window.bench.plot.grab().toImage()).reshape(-1, 3), axis=0)) > 10
    path = tmp_path / "record.json"
    monkeypatch.setattr("edgeconv.view.qt.outgoing.QFileDialog.getSaveFileName", lambda *_: (str(path), ""))
    window.bench.save.click()
    settle(qtbot, window)
    assert read_record(path)["complete"]


def test_a_bench_is_stopped_by_its_button(qtbot: QtBot, picture: Path, monkeypatch) -> None:
    window = opened(qtbot, picture)
    began = threading.Event()

    def endless(plan: Any, progress: Any) -> None:
        while True:
            progress(1, 2, "work at hand")
            began.set()

    monkeypatch.setattr("edgeconv.view.benching.run", endless)
    window.bench.button.click()
    assert began.wait(PATIENCE_MILLISECONDS / 1000)
    window.bench.button.click()
    settle(qtbot, window)
    assert window.bench.note.text() == "The bench was stopped."
    assert not window.bench.running


# --- keyboard, looks, settings, the end -------------------------------------------------------------------------


def test_every_command_has_an_action_and_no_key_has_two(qtbot: QtBot) -> None:
    window = opened(qtbot)
    assert window.actions_by_name.keys() == {command.name for command in actions.COMMANDS}
    keys = [key for command in actions.COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))
    in_menus = {name for _, names in actions.MENUS for name in names.split()} | set(actions.LOOKS)
    assert {command.name for command in actions.COMMANDS} <= in_menus


def test_the_keys_are_listed(qtbot: QtBot) -> None:
    window = opened(qtbot)
    trigger(window, "keys")
    (box,) = window.findChildren(QMessageBox)
    for command in actions.COMMANDS:
        assert all(keys in box.text() for keys in command.keys)
    box.close()


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


def test_light_and_dark(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture)
    brightness = {}
    for look in ("light", "dark"):
        trigger(window, f"look-{look}")
        brightness[look] = window.palette().color(QPalette.ColorRole.Window).lightness()
        assert drawn(window.canvas)[5, 5].max() == (max(drawn(window.canvas)[5, 5]))
    assert brightness["light"] > 200 > 60 > brightness["dark"]


def test_window_and_settings_are_remembered(qtbot: QtBot, picture: Path) -> None:
    first = opened(qtbot, picture, filter="sobel", stride=2, size=(1100, 700))
    trigger(first, "split")
    trigger(first, "look-dark")
    first.close()
    second = opened(qtbot)
    assert second.model.parameters == first.model.parameters
    assert (second.model.mode.name, second.look, second.model.recent) == ("split", "dark", [str(picture)])
    second.recent_menu.actions()[0].trigger()
    settle(qtbot, second)
    assert second.model.picture == str(picture)


def test_nonsense_in_the_settings_is_passed_over(qtbot: QtBot, monkeypatch, tmp_path: Path) -> None:
    settings = tmp_path / "nonsense.ini"
    settings.write_text('[General]\nparameters="{\\"stride\\": -4}"\nlook=7\nrecent="{}"\nmode={\ngeometry="[1]"\n')
    monkeypatch.setenv("EDGECONV_VIEW_SETTINGS", str(settings))
    window = opened(qtbot)
    assert window.model.parameters.words() == ["--device=cpu"]
    assert (window.look, window.model.mode, window.model.recent) == ("system", MODES[0], [])


def test_closing_while_something_is_computed_ends_quietly(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture)
    window.outgoing.save(str(tmp_path / "last.png"))
    window.set_parameters(window.model.parameters.with_filter("kirsch"))
    window.close()
    assert read_image(tmp_path / "last.png").pixels.shape == PIXELS.shape, "what is being written is written"
    assert not window.lane.busy
