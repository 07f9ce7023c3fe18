"""The PNGs of a comparison: the right colour at the right pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import edgeconv

from edgeconv.difference import maps
from edgeconv.difference.pictures import LINE_PIXELS, MARGIN
from edgeconv.difference.scale import SAME_COLOUR, scale_for
from edgeconv.io.image import read_image, write_image

SIDE = 400
SPOT = (301, 57)
"""y, x of the one pixel that differs, by −5 in green."""


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    a = np.full((SIDE, SIDE, 3), 100, np.uint8)
    b = a.copy()
    b[(*SPOT, 1)] -= 5
    write_image(a, tmp_path / "a.png")
    write_image(b, tmp_path / "b.png")
    return tmp_path


def test_every_picture_has_the_right_colour_at_the_right_place(pair: Path) -> None:
    done = edgeconv("diff", "a.png", "b.png", "--pictures", "out", cwd=pair)
    assert done.code == 1, done.err
    drawn = {path.stem: read_image(path).pixels for path in (pair / "out").iterdir()}
    assert set(drawn) == {"b_heat", "b_signed", "b_overlay", "b_side"}
    scale = scale_for("uint8")
    fifth = scale.labels.index("4–7")
    top = LINE_PIXELS + MARGIN  # one line of caption
    y, x = top + SPOT[0], SPOT[1]
    assert tuple(drawn["b_heat"][y, x]) == scale.colours[fifth]
    assert tuple(drawn["b_heat"][y, x + 1]) == SAME_COLOUR
    assert tuple(drawn["b_signed"][y, x]) == tuple(maps.signed_colours(scale)[-1, fifth])
    assert tuple(drawn["b_overlay"][y, x]) == scale.colours[fifth]
    assert tuple(drawn["b_overlay"][y, x + 1]) == (50, 50, 50)
    panels = [drawn["b_side"][y, x + panel * (SIDE + MARGIN)] for panel in range(3)]
    assert [tuple(panel) for panel in panels] == [(100, 100, 100), (100, 95, 100), scale.colours[fifth]]


def test_outputs_that_exist_are_not_replaced_and_nothing_else_is_written(pair: Path) -> None:
    (pair / "out").mkdir()
    (pair / "out" / "b_side.png").write_text("precious")
    done = edgeconv("diff", "a.png", "b.png", "--pictures", "out", "--html", "page.html", cwd=pair)
    assert done.code == 2
    assert [path.name for path in (pair / "out").iterdir()] == ["b_side.png"]
    assert not (pair / "page.html").exists()


@pytest.mark.parametrize(("height", "width", "factor"), [(1, 1, 2), (5, 7, 2), (8, 8, 4), (9, 3, 8)])
def test_what_is_shrunk_keeps_the_largest_class_of_a_block_and_mixes_nothing_in_from_outside(
    height: int, width: int, factor: int
) -> None:
    classes = np.random.default_rng(2).integers(0, 9, (height, width), dtype=np.uint8)
    shrunk = maps.shrunk_map(classes, factor)
    for y, x in np.ndindex(shrunk.shape):
        block = classes[y * factor : (y + 1) * factor, x * factor : (x + 1) * factor]
        assert shrunk[y, x] == block.max()
    picture = np.full((height, width, 3), 200, np.uint8)
    view = maps.shrunk_view(picture, factor)
    assert view.shape == (*shrunk.shape, 3)
    assert (view == 200).all()
    picture[:, -1] = 90
    if width % factor == 1:
        assert (maps.shrunk_view(picture, factor)[:, -1] == 90).all()


def test_deep_and_float_pictures_are_shown_by_a_fixed_range() -> None:
    deep = np.array([[[0, 255, 65535]]], np.uint16)
    assert maps.view(deep, *maps.display_range(deep)).tolist() == [[[0, 0, 255]]]
    floats = np.array([[[-1.0, 0.0, 1.0], [np.nan, np.inf, 0.5]]], np.float32)
    assert maps.display_range(floats) == (-1, 1)
    assert maps.view(floats, -1, 1).tolist() == [[[0, 128, 255], [0, 255, 191]]]
