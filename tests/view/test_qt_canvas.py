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
from edgeconv.view.layers import Layer, of_classes, of_picture
from edgeconv.view.qt.canvas import PAN_STEP, Canvas
from edgeconv.view.qt.layer import nearest
from edgeconv.view.qt.overlays import MARGIN

WIDTH, HEIGHT = 640, 480
CLEAR = 60
"""Below the names of the sides."""


def layer(pixels: np.ndarray) -> Layer:
    return of_picture("", pixels, *maps.display_range(pixels))


def plain(value: int) -> Layer:
    return layer(np.full((HEIGHT, WIDTH, 3), value, np.uint8))


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


def drag(qtbot: QtBot, canvas: Canvas, start: QPoint, end: QPoint) -> None:
    qtbot.mousePress(canvas.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(canvas.viewport(), end)
    qtbot.mouseRelease(canvas.viewport(), Qt.MouseButton.LeftButton, pos=end)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("zoom", [1, 8])
def test_every_sample_is_where_it_belongs_in_sharp_squares(canvas: Canvas, dtype: str, zoom: int) -> None:
    height, width = 304 // zoom, 417 // zoom
    picture = random_image(height, width, dtype)
    canvas.show_parts(right=layer(picture))
    canvas.zoom_to(zoom)
    top, left = corner(canvas)
    expected = maps.view(picture, *maps.display_range(picture)).repeat(zoom, axis=0).repeat(zoom, axis=1)
    assert np.array_equal(drawn(canvas)[top : top + height * zoom, left : left + width * zoom], expected)


def test_a_small_picture_opens_at_1_to_1_and_a_large_one_fits(canvas: Canvas) -> None:
    canvas.show_parts(right=layer(random_image(10, 10, np.uint8)))
    assert canvas.zoom == 1
    canvas.fit()
    assert canvas.zoom == 16
    canvas.start_afresh()
    canvas.show_parts(right=layer(random_image(960, 100, np.uint8)))
    assert canvas.zoom == 0.5
    canvas.resize(WIDTH, HEIGHT // 2)
    assert (canvas.zoom, canvas.fitted) == (0.25, True)


@pytest.mark.parametrize(("side", "off"), [(1920, 0.5), (1200, 8)])
def test_from_afar_it_is_the_average(canvas: Canvas, side: int, off: float) -> None:
    """Of a level as it is, and of one that has to be shrunk: a smooth picture stays what it is."""
    picture = random_image(side, side, np.uint8)
    if off > 1:
        ramp = np.linspace(0, 255, side).astype(np.uint8)
        picture = np.ascontiguousarray(np.broadcast_to(ramp[None, :, None], (side, side, 3)))
    canvas.show_parts(right=layer(picture))
    top, left = corner(canvas)
    seen = drawn(canvas)[top + CLEAR : top + HEIGHT, left : left + 480].astype(int)
    expected = maps.shrunk_view(picture, 4)[CLEAR:] if off < 1 else np.linspace(0, 255, 480)[None, :, None]
    assert np.abs(seen - expected).mean() < off
    assert canvas.zoom == 480 / side


def test_values_stand_on_pixels_that_are_large_enough(canvas: Canvas) -> None:
    canvas.show_parts(right=layer(np.full((8, 8, 3), 130, np.uint8)))
    for zoom, written in ((30, False), (80, True)):
        canvas.zoom_to(zoom)
        x, y = canvas.to_screen(4, 4).toTuple()
        inside = np.s_[round(y) + 2 : round(y) + zoom - 2, round(x) + 2 : round(x) + zoom - 2]
        assert (len(np.unique(drawn(canvas)[inside])) > 1) == written


def test_the_bar_parts_the_two_sides_and_follows_the_mouse(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.show_parts(mode="split")
    canvas.show_parts(left=plain(40), right=plain(200))
    row = HEIGHT - 20
    assert (drawn(canvas)[row, [5, 310, 330, 630]] == [[40], [40], [200], [200]]).all()
    drag(qtbot, canvas, QPoint(320, row), QPoint(160, row))
    assert canvas.bar == 0.25
    assert (drawn(canvas)[row, [5, 150, 170, 310]] == [[40], [40], [200], [200]]).all()
    canvas.move_bar(-1)
    assert (drawn(canvas)[row, 5:] == 200).all()


def test_side_by_side_shows_the_same_place_twice(canvas: Canvas) -> None:
    left, right = random_image(200, 200, np.uint8), random_image(200, 200, np.uint8, seed=1)
    canvas.show_parts(mode="side")
    canvas.show_parts(left=layer(left), right=layer(right))
    canvas.pan(QPointF(30, -20))
    top, start = corner(canvas)
    seen, half = drawn(canvas), WIDTH // 2 - 1
    for pixels, offset in ((left, 0), (right, WIDTH - half)):
        visible = min(200, half - start)
        part = seen[top : top + 200, offset + start : offset + start + visible]
        assert np.array_equal(part, pixels[:, :visible])


def test_a_difference_is_seen_in_the_colours_of_its_class(canvas: Canvas) -> None:
    classes = np.zeros((HEIGHT, WIDTH), np.uint8)
    classes[200:300, 300:400] = 3
    scale = scale_for("uint8")
    canvas.show_parts(mode="difference")
    canvas.show_parts(left=plain(1), right=plain(2))
    canvas.show_parts(heat=of_classes("", classes, scale, (("#000000", "0"), ("#ff0000", "3"))))
    seen = drawn(canvas)
    assert tuple(seen[250, 350]) == scale.colours[3]
    assert tuple(seen[250, 200]) == scale.colours[0]
    assert len(np.unique(seen[HEIGHT - MARGIN - 24 : HEIGHT - MARGIN, :200].reshape(-1, 3), axis=0)) > 4, "no legend"


def test_an_output_of_a_stride_lies_over_its_input(canvas: Canvas) -> None:
    left = np.zeros((400, 400, 3), np.uint8)
    left[100:200, 100:200] = 255
    canvas.show_parts(mode="split")
    canvas.show_parts(left=layer(left), right=layer(left[::2, ::2].copy()))
    canvas.move_bar(0.0)
    top, start = corner(canvas)
    assert np.array_equal(drawn(canvas)[top + CLEAR : top + 400, start + 20 : start + 400], left[CLEAR:, 20:])


def test_dragging_moves_the_wheel_zooms_at_the_pointer_and_a_double_click_toggles(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.show_parts(right=layer(random_image(2000, 2000, np.uint8)))
    place = QPoint(300, 200)
    held = canvas.pixel_at(QPointF(place))
    qtbot.mouseDClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (canvas.zoom, canvas.pixel_at(QPointF(place))) == (1, held)
    before = canvas.to_picture(100, 100).toTuple()
    drag(qtbot, canvas, QPoint(100, 100), QPoint(150, 90))
    assert canvas.to_picture(150, 90).toTuple() == pytest.approx(before)
    under = canvas.to_picture(300, 200).toTuple()
    buttons, keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    for _ in range(3):
        at = QPointF(place), canvas.mapToGlobal(QPointF(place))
        event = QWheelEvent(*at, QPoint(), QPoint(0, 120), buttons, keys, Qt.ScrollPhase.NoScrollPhase, False)
        QApplication.sendEvent(canvas.viewport(), event)
    assert canvas.zoom == pytest.approx(2)
    assert canvas.to_picture(300, 200).toTuple() == pytest.approx(under)
    qtbot.mouseDClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert canvas.fitted


def test_the_arrow_keys_move_to_their_sides_by_one_step(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.show_parts(right=layer(random_image(2000, 2000, np.uint8)))
    canvas.zoom_to(1)
    sides = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
    for key, side in sides.items():
        before = canvas.to_picture(100, 100)
        qtbot.keyClick(canvas, key)
        assert (canvas.to_picture(100, 100) - before).toTuple() == tuple(PAN_STEP * each for each in side)


@pytest.mark.parametrize("shape", [(1, 4500), (4500, 1)])
def test_a_line_of_pixels_is_seen_from_afar(canvas: Canvas, shape: tuple[int, int]) -> None:
    empty = drawn(canvas)[-1, -1]
    canvas.show_parts(right=layer(np.full((*shape, 3), 255, np.uint8)))
    assert canvas.zoom < 0.2
    seen = (drawn(canvas)[CLEAR:] != empty).any(axis=2)
    assert seen.sum() >= HEIGHT - CLEAR


def test_the_pixel_under_the_pointer_is_named_also_when_it_moves_under_it(canvas: Canvas, qtbot: QtBot) -> None:
    canvas.show_parts(right=layer(random_image(100, 100, np.uint8)))
    top, left = corner(canvas)
    with qtbot.waitSignal(canvas.hovered, timeout=PATIENCE_MILLISECONDS) as heard:
        qtbot.mouseMove(canvas.viewport(), QPoint(left + 50, top + 40))
    assert heard.args == [(50, 40)]
    with qtbot.waitSignal(canvas.hovered, timeout=PATIENCE_MILLISECONDS) as heard:
        canvas.pan(QPointF(10, 20))
    assert heard.args == [(40, 20)]


def test_a_screen_of_another_density_keeps_1_to_1(canvas: Canvas, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a window is moved to another screen: the area has other physical pixels, and the zoom stays."""
    canvas.show_parts(right=layer(random_image(100, 100, np.uint8)))
    canvas.zoom_to(1.0)
    before = canvas.to_screen(50, 50)
    monkeypatch.setattr(Canvas, "devicePixelRatioF", lambda canvas: 2.0)
    QApplication.sendEvent(canvas, QEvent(QEvent.Type.DevicePixelRatioChange))
    assert canvas.to_screen(50, 50) == 2 * before, "in the middle, of twice as many pixels"
    assert canvas.zoom == 1
