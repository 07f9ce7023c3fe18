"""Zoom and pan as numbers: what lies under the pointer stays there, and the picture is never lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeconv.view.viewport import MOST_ZOOM, Viewport

sides = st.integers(1, 20_000)
areas = st.floats(10, 4000)


@st.composite
def viewports(draw) -> Viewport:
    view = Viewport(draw(sides), draw(sides), draw(areas), draw(areas)).fit()
    for _ in range(draw(st.integers(0, 3))):
        view = view.zoomed(draw(st.floats(0.1, 10)), draw(areas), draw(areas))
        view = view.panned(draw(st.floats(-500, 500)), draw(st.floats(-500, 500)))
    return view


@given(sides, sides, areas, areas)
def test_fit_shows_all_of_it_in_the_middle(width: int, height: int, area_width: float, area_height: float) -> None:
    view = Viewport(width, height, area_width, area_height).fit()
    x0, y0 = view.to_screen(0, 0)
    x1, y1 = view.to_screen(width, height)
    assert x0 == pytest.approx(area_width - x1, abs=1e-6)
    assert min(x0, y0, area_width - x1, area_height - y1) >= -1e-6
    assert view.zoom <= 1


@given(viewports(), st.floats(-50, 50), st.floats(-50, 50), st.integers(0, 3))
def test_what_is_dragged_goes_along(view: Viewport, dx: float, dy: float, corner: int) -> None:
    """Each corner moves on the screen by what the pointer moved, in both directions, where nothing holds it back."""
    x, y = view.width * (corner % 2), view.height * (corner // 2)
    before, after = view.to_screen(x, y), view.panned(dx, dy).to_screen(x, y)
    moved = view.panned(dx, dy)
    for change, wanted, middle, side in (
        (after[0] - before[0], dx, moved.centre_x, view.width),
        (after[1] - before[1], dy, moved.centre_y, view.height),
    ):
        if 0 < middle < side:
            assert change == pytest.approx(wanted, abs=1e-5)
        else:
            assert abs(change) <= abs(wanted) + 1e-5


@given(viewports(), st.floats(0, 4000), st.floats(0, 4000))
def test_screen_and_picture_are_each_others_inverse(view: Viewport, x: float, y: float) -> None:
    assert view.to_screen(*view.to_picture(x, y)) == pytest.approx((x, y), abs=1e-4)


@given(viewports(), st.floats(0.2, 5))
def test_zooming_holds_the_point_under_the_pointer(view: Viewport, factor: float) -> None:
    pointer = view.to_screen(view.width / 2, view.height / 2)
    zoomed = view.zoomed(factor, *pointer)
    held = zoomed.to_picture(*pointer)
    inside = 0 < zoomed.centre_x < view.width and 0 < zoomed.centre_y < view.height
    if inside:
        assert held == pytest.approx((view.width / 2, view.height / 2), rel=1e-6, abs=1e-6)


@given(viewports())
def test_the_middle_is_always_on_the_picture_and_the_zoom_within_its_limits(view: Viewport) -> None:
    assert 0 <= view.centre_x <= view.width
    assert 0 <= view.centre_y <= view.height
    assert view.fit_zoom / 2 * 0.999 <= view.zoom <= MOST_ZOOM


@given(viewports(), st.integers(1, 4), st.floats(0, 1), st.floats(0, 1))
def test_an_output_of_a_stride_stays_where_the_picture_was(
    view: Viewport, stride: int, across: float, down: float
) -> None:
    """The same share of the picture is at the same place of the screen, but for the pixels that a stride rounds."""
    smaller = view.of_picture(-(-view.width // stride), -(-view.height // stride))
    if view.fitted:
        assert smaller == Viewport(smaller.width, smaller.height, view.area_width, view.area_height).fit()
        return
    x, y = view.to_screen(across * view.width, down * view.height)
    there_x, there_y = smaller.to_screen(across * smaller.width, down * smaller.height)
    assert there_x == pytest.approx(x, abs=1e-4)
    # One zoom for both axes: where the sides are no multiples of the stride they shrink by two factors.
    shrunk = (smaller.height / view.height) / (smaller.width / view.width)
    middle = view.area_height / 2
    assert there_y - middle == pytest.approx((y - middle) * shrunk, rel=1e-6, abs=1e-4)


def test_resizing_keeps_a_fitted_picture_fitted_and_another_in_place() -> None:
    fitted = Viewport(1000, 500, 400, 400).fit().resized(800, 800)
    assert (fitted.zoom, fitted.fitted) == (0.8, True)
    placed = Viewport(1000, 500, 400, 400).at_zoom(4).panned(30, 40)
    wider = placed.resized(800, 400)
    assert (wider.zoom, wider.centre_x, wider.centre_y) == (placed.zoom, placed.centre_x, placed.centre_y)


def test_the_pixel_under_the_pointer() -> None:
    view = Viewport(10, 10, 100, 100).fit().at_zoom(10)
    assert view.pixel_at(0, 0) == (0, 0)
    assert view.pixel_at(99.9, 10) == (9, 1)
    assert view.panned(50, 0).pixel_at(0, 50) is None


@pytest.mark.parametrize(("width", "height"), [(1000, 500), (10, 10), (20, 4000)])
def test_zooming_goes_from_half_of_what_fits_to_256(width: int, height: int) -> None:
    view = Viewport(width, height, 400, 400).fit()
    fits = min(1.0, 400 / width, 400 / height)
    assert view.zoom == pytest.approx(fits)
    assert view.zoomed(1e-9).zoom == pytest.approx(fits / 2)
    assert view.zoomed(0.6).zoom == pytest.approx(0.6 * fits)
    assert view.zoomed(1e9).zoom == 256
