"""Tiles put together again are the picture, at every level, and keep little."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_image

from edgeconv.diff import maps
from edgeconv.diff.scale import scale_for
from edgeconv.view.pyramid import KEPT_FROM, TILE, HeatPyramid, PicturePyramid, Pyramid

SHAPES = ((1, 1), (3, 700), (TILE, TILE), (TILE + 1, 2 * TILE - 1), (1030, 517))


def whole(pyramid: Pyramid, level: int) -> np.ndarray:
    """All tiles of a level, side by side."""
    side = TILE << level
    rows = [
        np.concatenate([pyramid.tile((level, row, column)) for column in range(-(-pyramid.width // side))], axis=1)
        for row in range(-(-pyramid.height // side))
    ]
    return np.concatenate(rows)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_level_0_is_the_picture_as_diff_shows_it(shape: tuple[int, int], dtype: str) -> None:
    picture = random_image(*shape, dtype)
    low, high = maps.display_range(picture)
    assert np.array_equal(whole(PicturePyramid(picture, low, high), 0), maps.view(picture, low, high))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_level_is_the_average_of_whole_blocks(shape: tuple[int, int]) -> None:
    picture = random_image(*shape, np.uint8)
    pyramid = PicturePyramid(picture, 0, 255)
    for level in range(1, pyramid.levels):
        seen, expected = whole(pyramid, level), maps.shrunk_view(picture, 1 << level)
        assert seen.shape == expected.shape
        inside = slice(0, shape[0] >> level), slice(0, shape[1] >> level)
        off = np.abs(seen[inside].astype(int) - expected[inside])
        assert off.max(initial=0) <= level, "an average of rounded averages may be a step off for each rounding"


def test_one_differing_pixel_is_seen_from_any_distance() -> None:
    classes = np.zeros((2050, 1999), np.uint8)
    classes[1234, 987] = 5
    scale = scale_for("uint8")
    pyramid = HeatPyramid(classes, scale)
    assert pyramid.levels > KEPT_FROM
    for level in range(pyramid.levels):
        seen = whole(pyramid, level)
        assert tuple(seen[1234 >> level, 987 >> level]) == scale.colours[5]
        assert np.count_nonzero((seen != scale.colours[0]).any(axis=2)) == 1


def test_what_is_kept_is_a_small_part_of_the_picture() -> None:
    picture = np.zeros((2048, 2048, 3), np.uint8)
    pyramid = PicturePyramid(picture, 0, 255)
    assert sum(level.nbytes for level in pyramid._kept) <= picture.nbytes / 11


@pytest.mark.parametrize(("zoom", "level"), [(8, 0), (1, 0), (0.51, 0), (0.5, 1), (0.26, 1), (0.25, 2), (0.001, 6)])
def test_the_level_has_a_pixel_for_every_screen_pixel(zoom: float, level: int) -> None:
    pyramid = PicturePyramid(np.zeros((2048, 2048, 3), np.uint8), 0, 255)
    assert pyramid.levels == 7
    assert pyramid.level_for(zoom) == level


def test_grey_is_shown_in_three_channels() -> None:
    grey = random_image(5, 5, np.uint8)[:, :, :1].copy()
    assert np.array_equal(whole(PicturePyramid(grey, 0, 255), 0), np.repeat(grey, 3, axis=2))
