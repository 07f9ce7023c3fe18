"""Levels of a picture seen from afar: averages of the whole, and no differing pixel is lost."""

from __future__ import annotations

import numpy as np
import pytest
from problems import random_image

from edgeconv.difference import maps
from edgeconv.difference.scale import scale_for
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
