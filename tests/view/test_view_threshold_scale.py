"""The positions of the threshold slider and what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from edgeconv.core.output import mask
from edgeconv.view.threshold_scale import FLOAT_POSITIONS, LEVELS_OF_8_BIT, ThresholdScale, scale_of


@pytest.mark.parametrize(("dtype", "levels"), [("uint8", 255), ("uint16", 65535)])
def test_every_level_of_a_whole_number_output_has_a_position(dtype: str, levels: int) -> None:
    scale = scale_of(np.dtype(dtype), np.zeros((2, 3, 3), dtype))
    assert scale.positions == levels
    assert [scale.threshold_at(place) for place in (0, 1, 40, levels)] == [None, 1.0, 40.0, float(levels)]
    assert all(scale.position_of(scale.threshold_at(place)) == place for place in range(levels + 1))


@pytest.mark.parametrize("most", [1e-30, 0.013, 7.7, 1020.0, 3e38])
def test_floats_have_steps_up_to_their_largest_size(most: float) -> None:
    output = np.array([[[-most], [most / 3], [np.nan], [-np.inf]]], np.float32)
    scale = scale_of(output.dtype, output)
    assert scale.positions == FLOAT_POSITIONS
    assert scale.threshold_at(FLOAT_POSITIONS) == pytest.approx(most, rel=1e-3)
    assert all(scale.position_of(scale.threshold_at(place)) == place for place in range(FLOAT_POSITIONS + 1))
    half = scale.threshold_at(FLOAT_POSITIONS // 2)
    assert half is not None
    assert mask(output, half).ravel().tolist() == [1, 0, 0, 1]
    assert len(f"{half:e}".split("e")[0].rstrip("0")) <= 5, "four digits and the point"


@pytest.mark.parametrize("output", [np.zeros((2, 2, 1), np.float32), np.full((2, 2, 1), np.nan, np.float32)])
def test_an_output_with_nothing_in_it_has_a_scale(output: np.ndarray) -> None:
    assert scale_of(output.dtype, output) == ThresholdScale(FLOAT_POSITIONS, 1.0)


def test_a_threshold_beyond_the_scale_is_at_its_end_and_never_off() -> None:
    assert [LEVELS_OF_8_BIT.position_of(value) for value in (1e-9, 300.0, 1e300, None)] == [1, 255, 255, 0]
