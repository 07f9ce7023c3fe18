"""Regions in their order and with their bounds, by hand, whatever bands they are found in."""

from __future__ import annotations

import numpy as np
import pytest

from edgeconv.diff.regions import Region, RegionFinder


def found(rows: list[str], listed: int = 10, band_rows: int | None = None) -> tuple[int, tuple[Region, ...]]:
    differs = np.array([[letter == "#" for letter in row] for row in rows])
    finder = RegionFinder(differs.shape[1], listed, band_rows)
    finder.add(differs)
    return finder.finish()


@pytest.mark.parametrize("band_rows", [None, 1, 2, 3])
def test_the_largest_first_and_those_of_one_size_from_the_top_and_then_from_the_left(band_rows: int | None) -> None:
    rows = [
        ".......##.#",
        "....##.....",
        "...........",
        "##.......##",
        "...#..#..#.",
        "..#....#...",
        "###.....#..",
    ]
    expected = (
        Region(0, 4, 3, 6, 5),  # around a corner
        Region(9, 3, 10, 4, 3),
        Region(6, 4, 8, 6, 3),  # by their corners alone
        Region(7, 0, 8, 0, 2),
        Region(4, 1, 5, 1, 2),
        Region(0, 3, 1, 3, 2),
        Region(10, 0, 10, 0, 1),
    )
    count, order = found(rows, band_rows=band_rows)
    assert (count, order) == (7, expected)
    assert found(rows, listed=3, band_rows=band_rows) == (7, expected[:3])


def test_nothing_differs() -> None:
    assert found(["....", "...."]) == (0, ())
