"""A problem's shapes, types and bytes by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeconv.core.filters import WeightSet, named_filter, weight_set
from edgeconv.core.problem import Problem, make_problem
from edgeconv.errors import UsageError


def problem(shape: tuple[int, ...] = (9, 14, 3), dtype: Any = "uint8", channels: Any = "mix", **rules: Any) -> Problem:
    return make_problem(shape, dtype, weight_set(named_filter("kirsch"), channels), **rules)


@pytest.mark.parametrize(("channels", "out", "groups"), [("mix", 3, 1), ("each", 3, 3), ("luma", 1, 1)])
@pytest.mark.parametrize(
    ("dtype", "mode", "in_bytes", "out_type"),
    [
        ("uint8", "abs", 1, np.uint8),
        ("uint16", "clip", 2, np.uint16),
        ("uint8", "raw", 1, np.float32),
        ("uint16", "raw", 2, np.float32),
        ("float16", "raw", 2, np.float16),
        ("float32", "abs", 4, np.float32),
        ("float64", "raw", 8, np.float64),
    ],
)
def test_shapes_types_and_bytes(
    channels: str, out: int, groups: int, dtype: str, mode: Any, in_bytes: int, out_type: Any
) -> None:
    """9 × 14 at stride 2 with a padding of 2: 6 × 8."""
    found = problem(dtype=dtype, channels=channels, output_mode=mode, stride=2, padding=2)
    assert found.input_shape == (9, 14, 3)
    assert (found.output_height, found.output_width) == (6, 8)
    assert found.output_shape == (6, 8, out)
    assert (found.output_channels, found.directions, found.groups, found.combine) == (out, 8, groups, "maximum")
    assert found.output_dtype == out_type
    assert found.input_bytes == 9 * 14 * 3 * in_bytes
    assert found.output_bytes == 6 * 8 * out * np.dtype(out_type).itemsize


def test_the_weights_are_its_own_and_cannot_be_changed() -> None:
    given = np.ones((1, 3, 3, 3, 3), np.float64)[..., ::-1]
    found = make_problem((9, 14, 3), "uint8", WeightSet(given, 1))
    assert (found.weights.dtype, found.weights.flags.c_contiguous, found.weights.flags.writeable) == (
        np.float32,
        True,
        False,
    )
    kept = np.ones((1, 3, 3, 3, 3), np.float32)
    with pytest.raises(ValueError, match="read-only"):
        make_problem((9, 14, 3), "uint8", WeightSet(kept, 1)).weights[0] = 2


@pytest.mark.parametrize(("stride", "stored"), [(1, 1), (17, 17), (18, 18), (19, 18), (2**40, 18)])
def test_a_stride_longer_than_the_padded_picture_is_that_long(stride: int, stored: int) -> None:
    """14 pixels and 2 on either side."""
    assert problem((1, 2, 3), stride=100, padding=2).stride == 6
    for shape in ((9, 14, 3), (14, 9, 3)):
        assert problem(shape, stride=stride, padding=2).stride == stored


def test_dense_weights_are_zero_between_channels_that_do_not_meet() -> None:
    groups_of_two = np.arange(1, 2 * 6 * 9 + 1, dtype=np.float32).reshape(2, 6, 1, 3, 3)
    found = make_problem((9, 14, 3), "uint8", WeightSet(groups_of_two, 3)).dense_weights()
    assert (found.shape, found.dtype) == ((2, 6, 3, 3, 3), np.float32)
    for direction, out, inner in np.ndindex(2, 6, 3):
        expected = groups_of_two[direction, out, 0] if out // 2 == inner else np.zeros((3, 3))
        assert np.array_equal(found[direction, out, inner], expected)
    mixed = problem()
    assert mixed.dense_weights() is mixed.weights


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"dtype": "complex64"}, "type complex64 are not supported"),
        ({"dtype": "int8"}, "type int8 are not supported"),
        ({"shape": (9, 14)}, "not 9×14"),
        ({"shape": ()}, "not a number"),
        ({"shape": (9, 14, 4)}, "not 9×14×4"),
        ({"shape": (9, 14, 2)}, "not 9×14×2"),
        ({"shape": (9, 14, 1)}, "weights are for 3 channels, not 1"),
        ({"shape": (0, 14, 3)}, "not 0×14×3"),
        ({"shape": (9, 0, 3)}, "not 9×0×3"),
        ({"shape": (1, 9, 14, 3)}, "not 1×9×14×3"),
        ({"dtype": "float32", "output_mode": "clip"}, "needs an integer picture"),
        ({"shape": (2, 14, 3), "padding": 0}, "shorter than the 3×3 filter"),
        ({"shape": (14, 2, 3), "padding": 0}, "shorter than the 3×3 filter"),
        ({"stride": 0}, "Stride 0"),
    ],
)
def test_what_has_no_meaning_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        problem(**words)
