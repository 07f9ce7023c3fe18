"""The threshold in the window: a slider under the mouse and the keys, a number, the mask that is seen and saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import edgeconv
from problems import random_image
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QStyle, QStyleOptionSlider
from pytestqt.qtbot import QtBot
from windows import PIXELS, opened, settle, shown

from edgeconv import convolve
from edgeconv.api.session import Session
from edgeconv.io.image import read_image, write_image


def mask_of(limit: float, filter: str = "sobel") -> np.ndarray:
    return np.where(convolve(PIXELS, filter, "reference", device="cpu") >= limit, 255, 0)


def test_keys_on_the_slider_show_the_mask_and_left_of_all_there_is_none(qtbot: QtBot, picture: Path) -> None:
    window = opened(qtbot, picture, filter="sobel", method="sliding")
    slider = window.controls.threshold.slider
    slider.setFocus()
    qtbot.keyClick(slider, Qt.Key.Key_End)
    settle(qtbot, window)
    assert window.model.parameters.threshold == 255
    assert np.array_equal(shown(window), mask_of(255))
    for _ in range(3):
        qtbot.keyClick(slider, Qt.Key.Key_PageDown)
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    settle(qtbot, window)
    assert window.model.parameters.threshold == 255 - 3 * 15 - 1
    assert np.array_equal(shown(window), mask_of(209))
    assert window.controls.threshold.number.text() == "209"
    assert window.picture_label.text().startswith("sobel by sliding on CPU, threshold 209 · ")
    assert "--threshold=209" in str(window.model.command()).split()
    assert window.model.runs[-1].parameters.summary() == "sobel, threshold 209"
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    settle(qtbot, window)
    assert window.model.parameters.threshold is None
    assert np.array_equal(shown(window), convolve(PIXELS, "sobel", device="cpu"))
    assert "--threshold" not in str(window.model.command())


def test_the_slider_is_dragged_and_the_filter_runs_once(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(qtbot, picture, filter="sobel", method="sliding")
    slider = window.controls.threshold.slider
    option = QStyleOptionSlider()
    slider.initStyleOption(option)
    parts = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
    handle = slider.style().subControlRect(parts[0], option, parts[1], slider).center()
    runs: list[int] = []
    convolve_of = Session.convolve
    monkeypatch.setattr(Session, "convolve", lambda *words, **more: (runs.append(1), convolve_of(*words, **more))[1])
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
    window.actions_by_name["undo"].trigger()
    settle(qtbot, window)
    assert window.model.parameters.threshold is None, "one drag is one step"


@pytest.mark.parametrize(("typed", "limit"), [("99.5", 99.5), ("40", 40.0), (" ", None)])
def test_a_number_may_be_typed(qtbot: QtBot, picture: Path, typed: str, limit: float | None) -> None:
    window = opened(qtbot, picture, filter="sobel", method="sliding", threshold=70.0)
    number = window.controls.threshold.number
    assert (number.text(), window.controls.threshold.slider.value()) == ("70", 70)
    number.setFocus()
    number.selectAll()
    qtbot.keyClicks(number, typed)
    qtbot.keyClick(number, Qt.Key.Key_Return)
    settle(qtbot, window)
    assert window.model.parameters.threshold == limit
    expected = convolve(PIXELS, "sobel", device="cpu") if limit is None else mask_of(limit)
    assert np.array_equal(shown(window), expected)


@pytest.mark.parametrize(
    ("typed", "words"),
    [("loud", "'loud' is not a number"), ("0", "is not a number above 0"), ("300", "300 is above 255"), ("nan", "nan")],
)
def test_what_is_no_threshold_is_one_line(qtbot: QtBot, picture: Path, typed: str, words: str) -> None:
    window = opened(qtbot, picture, filter="sobel", method="sliding")
    number = window.controls.threshold.number
    number.setFocus()
    number.selectAll()
    qtbot.keyClicks(number, typed)
    qtbot.keyClick(number, Qt.Key.Key_Return)
    settle(qtbot, window)
    assert window.message.isVisible()
    assert words in window.message_text.text()
    assert "\n" not in window.message_text.text()
    assert np.array_equal(shown(window), convolve(PIXELS, "sobel", device="cpu")), "what was there stays"


@pytest.mark.parametrize(
    ("dtype", "mode", "most"), [("uint16", None, 65535.0), ("float32", None, None), ("float32", "normalize", 1.0)]
)
def test_the_slider_spans_the_output_at_hand(
    qtbot: QtBot, tmp_path: Path, dtype: str, mode: str | None, most: float | None
) -> None:
    pixels = random_image(40, 50, dtype)
    write_image(pixels, tmp_path / "picture.tiff")
    window = opened(qtbot, tmp_path / "picture.tiff", filter="sobel-x", method="sliding", output_mode=mode)
    slider = window.controls.threshold.slider
    slider.setFocus()
    qtbot.keyClick(slider, Qt.Key.Key_End)
    settle(qtbot, window)
    output = convolve(pixels, "sobel-x", device="cpu", output_mode=mode)
    limit = window.model.parameters.threshold
    assert limit == pytest.approx(most or float(np.abs(output).max()), rel=1e-3)
    slider.setValue(slider.maximum() // 2)
    settle(qtbot, window)
    limit = window.model.parameters.threshold
    assert limit is not None
    assert window.canvas.right is not None
    white = 65535 if dtype == "uint16" else 1
    assert np.array_equal(window.canvas.right.pixels, np.where(np.abs(output) >= limit, white, 0))
    assert 0 < np.count_nonzero(window.canvas.right.pixels) < output.size


def test_what_is_saved_is_the_commands_mask(qtbot: QtBot, picture: Path, tmp_path: Path) -> None:
    window = opened(qtbot, picture, filter="sobel", method="sliding", threshold=90.0)
    window.export_actions.save(str(tmp_path / "saved.png"))
    settle(qtbot, window)
    words = str(window.model.command()).split()[1:]
    assert edgeconv(*words, "-o", "run.png", cwd=tmp_path).code == 0
    assert (tmp_path / "saved.png").read_bytes() == (tmp_path / "run.png").read_bytes()
    assert np.array_equal(read_image(tmp_path / "saved.png").pixels, mask_of(90))
    assert window.service.output_name(str(picture), window.model.parameters) == "picture_sobel_t90_sliding_s1.png"
