"""The picture area: what lies where on the screen, pixel by pixel, and how the mouse moves it."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_image
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from windows import PATIENCE_MILLISECONDS, drawn

from edgeconv.difference import maps
from edgeconv.difference.scale import scale_for
from edgeconv.view.pyramid import HeatPyramid, PicturePyramid
from edgeconv.view.qt import layer as layers
from edgeconv.view.qt.canvas import Canvas, Heat
from edgeconv.view.qt.layer import nearest
from edgeconv.view.qt.overlays import MARGIN
from edgeconv.view.render import Layer
from edgeconv.view.sources import INPUT, OUTPUT
from edgeconv.view.state import find_mode

WIDTH, HEIGHT = 640, 480
CLEAR = 60
"""Below the names of the sides."""


def layer(pixels: np.ndarray, label: str = "") -> Layer:
    return Layer(INPUT if label == "left" else OUTPUT, "", pixels, PicturePyramid(pixels, *maps.display_range(pixels)))


@pytest.fixture
def canvas(qtbot: QtBot) -> Canvas:
    widget = Canvas()
    qtbot.addWidget(widget)
    widget.resize(WIDTH, HEIGHT)
    with qtbot.waitExposed(widget, timeout=PATIENCE_MILLISECONDS):
        widget.show()
    return widget


def corner(canvas: Canvas) -> tuple[int, int]:
    """(row, column) on the screen of the picture's first pixel."""
    x, y = canvas.to_screen(0, 0).toTuple()
    return nearest(y), nearest(x)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_at_1_to_1_every_sample_is_where_it_belongs(canvas: Canvas, dtype: str) -> None:
    picture = random_image(300, 417, dtype)
    canvas.set_layers(None, layer(picture))
    canvas.actual_size()
    top, left = corner(canvas)
    expected = maps.view(picture, *maps.display_range(picture))
    assert np.array_equal(drawn(canvas)[top : top + 300, left : left + 417], expected)


def test_a_small_picture_opens_at_1_to_1_and_a_large_one_fits(canvas: Canvas) -> None:
    canvas.set_layers(None, layer(random_image(10, 10, np.uint8)))
    assert canvas.zoom == 1
    canvas.start_afresh()
    canvas.set_layers(None, layer(random_image(960, 100, np.uint8)))
    assert canvas.zoom == 0.5


def test_enlarged_pixels_are_sharp_squares(canvas: Canvas) -> None:
    picture = random_image(20, 20, np.uint8)
    canvas.set_layers(None, layer(picture))
    canvas.zoom_to(8)
    top, left = corner(canvas)
    expected = np.repeat(np.repeat(picture, 8, axis=0), 8, axis=1)
    assert np.array_equal(drawn(canvas)[top : top + 160, left : left + 160], expected)


def test_from_afar_it_is_the_average(canvas: Canvas) -> None:
    picture = random_image(1920, 1920, np.uint8)
    canvas.set_layers(None, layer(picture))
    top, left = corner(canvas)
    seen = drawn(canvas)[top + CLEAR : top + HEIGHT, left : left + 480]
    expected = maps.shrunk_view(picture, 4)[CLEAR:]
    assert np.abs(seen.astype(int) - expected).mean() < 1


def test_values_stand_on_pixels_that_are_large_enough(canvas: Canvas) -> None:
    picture = np.full((8, 8, 3), 130, np.uint8)
    canvas.set_layers(None, layer(picture))
    canvas.zoom_to(30)
    x, y = canvas.to_screen(4, 4).toTuple()
    inside = np.s_[round(y) + 2 : round(y) + 28, round(x) + 2 : round(x) + 28]
    assert len(np.unique(drawn(canvas)[inside])) == 1
    canvas.zoom_to(80)
    x, y = canvas.to_screen(4, 4).toTuple()
    inside = np.s_[round(y) + 2 : round(y) + 78, round(x) + 2 : round(x) + 78]
    assert len(np.unique(drawn(canvas)[inside])) > 1


def test_the_bar_parts_the_two_sides_and_follows_the_mouse(canvas: Canvas, qtbot: QtBot) -> None:
    left, right = np.full((480, 640, 3), 40, np.uint8), np.full((480, 640, 3), 200, np.uint8)
    canvas.set_mode(find_mode("split"))
    canvas.set_layers(layer(left), layer(right))
    row = HEIGHT - 20
    assert (drawn(canvas)[row, [5, 310, 330, 630]] == [[40], [40], [200], [200]]).all()
    start, end = QPoint(320, row), QPoint(160, row)
    qtbot.mousePress(canvas.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(canvas.viewport(), end)
    qtbot.mouseRelease(canvas.viewport(), Qt.MouseButton.LeftButton, pos=end)
    assert canvas.bar == 0.25
    assert (drawn(canvas)[row, [5, 150, 170, 310]] == [[40], [40], [200], [200]]).all()
    canvas.move_bar(-1)
    assert (drawn(canvas)[row, 5:] == 200).all()
    qtbot.mouseDClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(1, row))
    assert canvas.bar == 0.5


def test_side_by_side_shows_the_same_place_twice(canvas: Canvas) -> None:
    left, right = random_image(200, 200, np.uint8), random_image(200, 200, np.uint8, seed=1)
    canvas.set_mode(find_mode("side"))
    canvas.set_layers(layer(left), layer(right))
    canvas.pan(30, -20)
    top, start = corner(canvas)
    seen, half = drawn(canvas), WIDTH // 2 - 1
    for pixels, offset in ((left, 0), (right, WIDTH - half)):
        visible = min(200, half - start)
        part = seen[top : top + 200, offset + start : offset + start + visible]
        assert np.array_equal(part, pixels[:, :visible])


def test_blink_takes_turns(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.set_mode(find_mode("blink"))
    canvas.set_layers(layer(np.full((480, 640, 3), 40, np.uint8)), layer(np.full((480, 640, 3), 200, np.uint8)))
    seen: set[int] = set()

    def both() -> bool:
        seen.add(int(drawn(canvas)[240, 320, 0]))
        return seen == {40, 200}

    qtbot.waitUntil(both, timeout=PATIENCE_MILLISECONDS)


def test_a_difference_is_seen_in_the_colours_of_its_class(canvas: Canvas) -> None:
    classes = np.zeros((480, 640), np.uint8)
    classes[200:300, 300:400] = 3
    scale = scale_for("uint8")
    canvas.set_mode(find_mode("difference"))
    picture = layer(random_image(480, 640, np.uint8))
    canvas.set_layers(picture, picture)
    canvas.set_heat(Heat(HeatPyramid(classes, scale), scale, (0, 3)))
    seen = drawn(canvas)
    assert tuple(seen[250, 350]) == scale.colours[3]
    assert tuple(seen[250, 200]) == scale.colours[0]
    assert len(np.unique(seen[HEIGHT - MARGIN - 24 : HEIGHT - MARGIN, :200].reshape(-1, 3), axis=0)) > 4, "no legend"


def test_an_output_of_a_stride_lies_over_its_input(canvas: Canvas) -> None:
    left = np.zeros((400, 400, 3), np.uint8)
    left[100:200, 100:200] = 255
    canvas.set_mode(find_mode("split"))
    canvas.set_layers(layer(left), layer(left[::2, ::2].copy()))
    canvas.bar = 0.0
    top, start = corner(canvas)
    assert np.array_equal(drawn(canvas)[top + CLEAR : top + 400, start + 20 : start + 400], left[CLEAR:, 20:])


def test_dragging_moves_the_picture(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.set_layers(None, layer(random_image(2000, 2000, np.uint8)))
    canvas.actual_size()
    before = canvas.to_picture(100, 100).toTuple()
    qtbot.mousePress(canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(100, 100))
    qtbot.mouseMove(canvas.viewport(), QPoint(150, 90))
    qtbot.mouseRelease(canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(150, 90))
    assert canvas.to_picture(150, 90).toTuple() == pytest.approx(before)


def test_the_wheel_zooms_at_the_pointer(canvas: Canvas) -> None:
    canvas.set_layers(None, layer(random_image(2000, 2000, np.uint8)))
    place = QPointF(200, 300)
    held = canvas.to_picture(200, 300).toTuple()
    zoom = canvas.zoom
    for _ in range(3):
        event = QWheelEvent(
            place,
            canvas.mapToGlobal(place),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(canvas.viewport(), event)
    assert canvas.zoom == pytest.approx(2 * zoom)
    assert canvas.to_picture(200, 300).toTuple() == pytest.approx(held)


def test_a_double_click_goes_between_all_of_it_and_1_to_1(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.set_layers(None, layer(random_image(2000, 2000, np.uint8)))
    held = canvas.pixel_at(300, 200)
    qtbot.mouseDClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    assert (canvas.zoom, canvas.pixel_at(300, 200)) == (1, held)
    qtbot.mouseDClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(300, 200))
    assert canvas.fitted


def test_hovering_names_the_pixel(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.set_layers(None, layer(random_image(100, 100, np.uint8)))
    top, left = corner(canvas)
    with qtbot.waitSignal(canvas.hovered, timeout=PATIENCE_MILLISECONDS) as heard:
        qtbot.mouseMove(canvas.viewport(), QPoint(left + 7, top + 9))
    assert heard.args == [(7, 9)]


def test_without_time_a_coarse_picture_comes_first_and_is_refined(canvas: Canvas, qtbot: QtBot, monkeypatch) -> None:
    monkeypatch.setattr(layers, "PAINT_SECONDS", 0.0)
    picture = random_image(480, 640, np.uint8)
    canvas.set_layers(None, layer(picture))
    canvas.grab()
    assert not canvas.complete
    monkeypatch.setattr(layers, "PAINT_SECONDS", 1.0)
    qtbot.waitUntil(lambda: canvas.complete, timeout=PATIENCE_MILLISECONDS)
    assert np.array_equal(drawn(canvas)[CLEAR:], picture[CLEAR:])


@pytest.mark.parametrize("shape", [(1, 4500), (4500, 1)])
def test_a_line_of_pixels_is_seen_from_afar(canvas: Canvas, shape: tuple[int, int]) -> None:
    empty = drawn(canvas)[-1, -1]
    canvas.set_layers(None, layer(np.full((*shape, 3), 255, np.uint8)))
    assert canvas.zoom < 0.2
    seen = (drawn(canvas)[CLEAR:] != empty).any(axis=2)
    assert seen.sum() >= HEIGHT - CLEAR


def test_a_pointer_at_rest_names_what_moves_under_it(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.set_layers(None, layer(random_image(100, 100, np.uint8)))
    top, left = corner(canvas)
    qtbot.mouseMove(canvas.viewport(), QPoint(left + 50, top + 50))
    with qtbot.waitSignal(canvas.hovered, timeout=PATIENCE_MILLISECONDS) as heard:
        canvas.pan(10, 20)
    assert heard.args == [(40, 30)]


def test_a_screen_of_another_density_keeps_1_to_1(canvas: Canvas, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a window is moved to another screen: the area has other physical pixels, and the zoom stays."""
    canvas.set_layers(None, layer(random_image(100, 100, np.uint8)))
    canvas.actual_size()
    before = canvas.to_screen(50, 50)
    monkeypatch.setattr(Canvas, "devicePixelRatioF", lambda canvas: 2.0)
    QApplication.sendEvent(canvas, QEvent(QEvent.Type.DevicePixelRatioChange))
    assert canvas.to_screen(50, 50) == 2 * before, "in the middle, of twice as many pixels"
    assert canvas.zoom == 1
