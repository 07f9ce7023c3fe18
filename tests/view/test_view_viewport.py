"""Zoom and pan as numbers: all of the picture is in the middle at first, and it is never lost."""

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


@given(viewports())
def test_the_middle_is_always_on_the_picture_and_the_zoom_within_its_limits(view: Viewport) -> None:
    assert 0 <= view.centre_x <= view.width
    assert 0 <= view.centre_y <= view.height
    assert view.fit_zoom / 2 * 0.999 <= view.zoom <= MOST_ZOOM


@pytest.mark.parametrize(("width", "height"), [(1000, 500), (10, 10), (20, 4000)])
def test_zooming_goes_from_half_of_what_fits_to_256(width: int, height: int) -> None:
    view = Viewport(width, height, 400, 400).fit()
    fits = min(1.0, 400 / width, 400 / height)
    assert view.zoom == pytest.approx(fits)
    assert view.zoomed(1e-9).zoom == pytest.approx(fits / 2)
    assert view.zoomed(0.6).zoom == pytest.approx(0.6 * fits)
    assert view.zoomed(1e9).zoom == 256
