"""The PNGs of a comparison: the right colour at the right pixel, and a single differing pixel seen from afar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import edgeconv

from edgeconv.diff import maps
from edgeconv.diff.pictures import CELL_PIXELS, LINE_PIXELS, MARGIN
from edgeconv.diff.scale import SAME_COLOUR, scale_for
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


def test_a_single_pixel_stays_visible_on_the_contact_sheet(pair: Path) -> None:
    done = edgeconv("diff", "a.png", "b.png", "a.png", "--contact-sheet", "sheet.png", cwd=pair)
    assert done.code == 1, done.err
    sheet = read_image(pair / "sheet.png").pixels
    heat = scale_for("uint8").colours[scale_for("uint8").labels.index("4–7")]
    legend_top = sheet.shape[0] - 2 * (LINE_PIXELS + MARGIN)
    assert np.count_nonzero((sheet[:legend_top] == heat).all(axis=2)) == 1
    assert sheet.shape[1] >= 3 * CELL_PIXELS // 2


def test_outputs_that_exist_are_not_replaced_and_nothing_else_is_written(pair: Path) -> None:
    (pair / "out").mkdir()
    (pair / "out" / "b_side.png").write_text("precious")
    done = edgeconv("diff", "a.png", "b.png", "--pictures", "out", "--contact-sheet", "sheet.png", cwd=pair)
    assert done.code == 2
    assert [path.name for path in (pair / "out").iterdir()] == ["b_side.png"]
    assert not (pair / "sheet.png").exists()


@pytest.mark.parametrize(("height", "width", "factor"), [(1, 1, 2), (5, 7, 2), (8, 8, 4), (9, 3, 8)])
def test_shrinking_a_map_keeps_the_largest_class(height: int, width: int, factor: int) -> None:
    classes = np.random.default_rng(2).integers(0, 9, (height, width), dtype=np.uint8)
    shrunk = maps.shrunk_map(classes, factor)
    for y, x in np.ndindex(shrunk.shape):
        block = classes[y * factor : (y + 1) * factor, x * factor : (x + 1) * factor]
        assert shrunk[y, x] == block.max()


def test_deep_and_float_pictures_are_shown_by_a_fixed_range() -> None:
    deep = np.array([[[0, 255, 65535]]], np.uint16)
    assert maps.view(deep, *maps.display_range(deep)).tolist() == [[[0, 0, 255]]]
    floats = np.array([[[-1.0, 0.0, 1.0], [np.nan, np.inf, 0.5]]], np.float32)
    assert maps.display_range(floats) == (-1, 1)
    assert maps.view(floats, -1, 1).tolist() == [[[0, 128, 255], [0, 255, 191]]]


@pytest.mark.parametrize(("height", "width", "factor"), [(1, 1, 2), (3, 5, 2), (4, 4, 4), (5, 9, 4), (7, 3, 8)])
def test_a_smaller_block_at_an_edge_is_of_its_own_pixels_alone(height: int, width: int, factor: int) -> None:
    """Nothing is mixed in from outside: one colour stays that colour, and the last column's is the last one's."""
    picture = np.full((height, width, 3), 200, np.uint8)
    shrunk = maps.shrunk_view(picture, factor)
    assert shrunk.shape == (-(-height // factor), -(-width // factor), 3)
    assert (shrunk == 200).all()
    picture[:, -1] = 90
    if width % factor == 1:
        assert (maps.shrunk_view(picture, factor)[:, -1] == 90).all()
    classes = np.zeros((height, width), np.uint8)
    classes[-1, -1] = 7
    largest = maps.shrunk_map(classes, factor)
    assert largest.shape == shrunk.shape[:2]
    assert (largest[-1, -1], largest.sum()) == (7, 7)
