"""The PNGs of a comparison: the right colour at the right pixel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import edgeconv

from edgeconv.difference import maps
from edgeconv.difference.scale import scale_for
from edgeconv.io.encoding import write_image
from edgeconv.io.reading import read_image

SIDE = 400
SPOT = (301, 57)
"""y, x of the one pixel that differs, by −5 in green."""


def test_the_map_has_the_right_colours_and_nothing_is_replaced(tmp_path: Path) -> None:
    pixels = np.full((SIDE, SIDE, 3), 100, np.uint8)
    write_image(pixels, tmp_path / "a.png")
    pixels[(*SPOT, 1)] -= 5
    write_image(pixels, tmp_path / "b.png")
    done = edgeconv("diff", "a.png", "b.png", "--pictures", "out", cwd=tmp_path)
    assert done.code == 1, done.err
    drawn = {path.stem: read_image(path).pixels for path in (tmp_path / "out").iterdir()}
    assert set(drawn) == {"b_map"}
    scale, (y, x) = scale_for("uint8"), SPOT
    assert tuple(drawn["b_map"][y, x]) == scale.colours[scale.labels.index("4–7")]
    assert tuple(drawn["b_map"][y, x + 1]) == (50, 50, 50)
    legend = drawn["b_map"][SIDE:].reshape(-1, 3)
    assert {colour for _, colour in scale.legend} <= set(map(tuple, legend.tolist()))
    before = (tmp_path / "out" / "b_map.png").read_bytes()
    again = edgeconv("diff", "a.png", "b.png", "--pictures", "out", "--html", "page.html", cwd=tmp_path)
    assert (again.code, len(again.error_lines)) == (2, 1)
    assert (tmp_path / "out" / "b_map.png").read_bytes() == before
    assert not (tmp_path / "page.html").exists()


def test_classes_of_one_colour_have_one_label() -> None:
    assert [label for label, _ in scale_for("uint8").legend][-2:] == ["32–63", "64–255"]
    for dtype in ("uint8", "uint16", "float32"):
        assert len({colour for _, colour in scale_for(dtype).legend}) == len(scale_for(dtype).legend)


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
    picture[:, -1] = 90 if width % factor == 1 else 200
    view = maps.shrunk_view(picture, factor)
    assert (view.shape, set(view[:, -1].ravel().tolist())) == ((*shrunk.shape, 3), {int(picture[0, -1, 0])})


def test_deep_and_float_pictures_are_shown_by_a_fixed_range() -> None:
    deep = np.array([[[0, 255, 65535]]], np.uint16)
    assert maps.view(deep, *maps.display_range(deep)).tolist() == [[[0, 0, 255]]]
    floats = np.array([[[-1.0, 0.0, 1.0], [np.nan, np.inf, 0.5]]], np.float32)
    assert maps.display_range(floats) == (-1, 1)
    assert maps.view(floats, -1, 1).tolist() == [[[0, 128, 255], [0, 255, 191]]]
