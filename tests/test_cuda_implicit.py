"""CUDA `implicit`: the weights' table of the tensor cores on any machine, everything else against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_problems import EVERY_FILTER, EVERY_TYPE, GEOMETRY, RANDOM, Case, geometry_cases
from gemm_cases import ENOUGH_SAMPLES, LARGE, REDUCED_FILTERS, REDUCED_TYPES, check_on_card, check_tall_picture

from edgeconv.errors import UnavailableError
from edgeconv.methods.base import Options
from edgeconv.methods.cuda.implicit import Implicit, fragment_table, step_of

REDUCED = ("tf32", "half")


def words_as_pairs(table: np.ndarray, math: str) -> np.ndarray:
    """A fragment table as the right matrix that the instructions see: (n tiles, k steps, 8 columns, depth)."""
    tiles, steps = table.shape[:2]
    by_lane = table.reshape(tiles, steps, 8, 4, 2)
    if math == "half":
        halves = np.ascontiguousarray(by_lane).view(np.float16).reshape(tiles, steps, 8, 4, 2, 2)
        return halves.transpose(0, 1, 2, 4, 3, 5).reshape(tiles, steps, 8, 16).astype(np.float64)
    return by_lane.view(np.float32).reshape(tiles, steps, 8, 8).astype(np.float64)


@pytest.mark.parametrize("math", REDUCED)
@pytest.mark.parametrize("lead", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize(("filter_name", "channels"), [("sobel", "mix"), ("kirsch", "each"), (RANDOM, "luma")])
def test_the_fragment_table_holds_every_weight_where_a_pair_of_pixels_meets_it(
    filter_name, channels, stride, lead, math
):
    problem = Case(filter_name, channels, "float32", "raw", stride=stride).problem()
    step, responses = step_of(stride), problem.directions * problem.output_channels
    patch = np.random.default_rng(5).integers(-8, 9, (3, step + 3, 3)).astype(np.float64)
    rows = np.concatenate([np.full((3, lead % 2), 99.0), patch.reshape(3, -1)], axis=1)
    under = np.concatenate([rows, np.zeros((3, rows.shape[1] % 2))], axis=1).reshape(-1)

    right = words_as_pairs(fragment_table(problem, math, lead), math).transpose(1, 3, 0, 2)
    right = right.reshape(-1, right.shape[2] * 8)
    left = np.concatenate([under, np.zeros(len(right) - len(under))])
    dense = problem.dense_weights().reshape(responses, 3, 3, 3).astype(np.float64)
    expected = [
        np.einsum("ruv,uvr->", dense[m], patch[:, q * step : q * step + 3]) for q in (0, 1) for m in range(responses)
    ]
    tolerance = 0.0 if filter_name != RANDOM else 2.0**-11 * np.abs(dense).max() * np.abs(patch).sum()
    np.testing.assert_allclose((left @ right)[: 2 * responses], expected, rtol=0, atol=tolerance)
    assert not right[:, 2 * responses :].any()


@pytest.mark.gpu
@pytest.mark.parametrize("case", EVERY_FILTER, ids=str)
def test_every_filter(case):
    check_on_card(Implicit(), case)


@pytest.mark.gpu
@pytest.mark.parametrize("case", EVERY_TYPE, ids=str)
def test_every_type_mode_and_stride(case):
    check_on_card(Implicit(), case)


@pytest.mark.gpu
@pytest.mark.parametrize(("work", "stride", "border"), GEOMETRY)
def test_geometry(work, stride, border):
    for case in geometry_cases(work, stride, border):
        check_on_card(Implicit(), case)


@pytest.mark.gpu
@pytest.mark.parametrize("math", REDUCED)
@pytest.mark.parametrize("case", [*REDUCED_FILTERS, *REDUCED_TYPES], ids=str)
def test_every_filter_and_type_on_tensor_cores(case, math):
    check_on_card(Implicit(), case, Options(math=math))


@pytest.mark.gpu
@pytest.mark.parametrize("math", REDUCED)
@pytest.mark.parametrize(("work", "stride", "border"), [one for one in GEOMETRY if one[0][2] != "uint16"])
def test_geometry_on_tensor_cores(work, stride, border, math):
    exact = work[2] == "uint8"  # whole weights and 8-bit pixels are exact on the tensor cores
    for case in geometry_cases(work, stride, border):
        if exact or np.prod(case.problem().output_shape) >= ENOUGH_SAMPLES:
            check_on_card(Implicit(), case, Options(math=math))


@pytest.mark.gpu
@pytest.mark.parametrize("offset_samples", [0, 1, 5])
@pytest.mark.parametrize("math", ["fma", *REDUCED])
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_many_tiles_and_any_start(case, math, offset_samples):
    check_on_card(Implicit(), case, Options(math=math), offset_samples)


@pytest.mark.gpu
@pytest.mark.parametrize("math", REDUCED)
def test_a_16_bit_picture_is_refused_where_11_bits_are_kept(math):
    problem = Case("laplacian8", "mix", "uint16", "abs").problem()
    with pytest.raises(UnavailableError, match="--math fma"):
        Implicit().prepare(problem, Options(math=math))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("math", ["fma", *REDUCED])
def test_a_picture_above_2_to_the_31_bytes(math):
    check_tall_picture(Implicit(), Options(math=math))
