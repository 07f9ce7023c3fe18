"""Sizes and borders, against NumPy's own padding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeconv.core.choices import BORDERS
from edgeconv.core.geometry import (
    MAX_PADDING,
    OUTSIDE,
    bands,
    border_indices,
    output_size,
    parse_padding,
    touched_places,
)
from edgeconv.errors import UsageError

NUMPY_MODES = {"replicate": "edge", "reflect": "symmetric", "reflect101": "reflect"}


@given(st.integers(1, 5000), st.integers(1, 9))
def test_same_padding_gives_the_ceiling(size: int, stride: int) -> None:
    assert output_size(size, stride, parse_padding("same")) == -(-size // stride)


@given(st.integers(1, 12), st.integers(0, 30), st.sampled_from(sorted(NUMPY_MODES)))
def test_borders_are_those_of_numpy(size: int, padding: int, border) -> None:
    line = np.arange(size)
    assert np.array_equal(border_indices(size, padding, border), np.pad(line, padding, mode=NUMPY_MODES[border]))


def test_zero_border_is_outside() -> None:
    assert border_indices(2, 2, "zero").tolist() == [OUTSIDE, OUTSIDE, 0, 1, OUTSIDE, OUTSIDE]


@pytest.mark.parametrize(
    ("padding", "pixels"),
    [(0, 0), (MAX_PADDING, 4096), (np.int64(3), 3), ("valid", 0), (" Same ", 1), ("0", 0), ("17", 17), ("4096", 4096)],
)
def test_every_padding_up_to_the_largest_is_taken(padding, pixels: int) -> None:
    found = parse_padding(padding)
    assert (found, type(found)) == (pixels, int)


@pytest.mark.parametrize("padding", ["sme", "-1", "4097", "1.5", "", -1, MAX_PADDING + 1, True, 1.5, None])
def test_bad_padding_is_refused(padding) -> None:
    with pytest.raises(UsageError):
        parse_padding(padding)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="shorter than the 3×3 filter"):
        output_size(2, 1, 0)
    with pytest.raises(UsageError, match="Stride 0"):
        output_size(8, 0, 1)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 12), st.sampled_from(BORDERS))
def test_touched_counts_the_pixels_under_some_window(size: int, stride: int, padding: int, border) -> None:
    if size + 2 * padding < 3:
        return
    indices = border_indices(size, padding, border)
    under = {indices[y * stride + u] for y in range(output_size(size, stride, padding)) for u in range(3)}
    assert touched_places(size, stride, padding, border).tolist() == sorted(under - {OUTSIDE})


@given(st.integers(0, 200), st.integers(1, 50))
def test_bands_cover_every_row_once(rows: int, height: int) -> None:
    covered = [row for start, stop in bands(rows, height) for row in range(start, stop)]
    assert covered == list(range(rows))
