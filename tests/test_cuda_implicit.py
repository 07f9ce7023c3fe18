"""CUDA `implicit`: the weights' table of the tensor cores on any machine, everything else against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_problems import EVERY_FILTER, GEOMETRY, RANDOM, Case, geometry_cases
from gemm_cases import (
    ENOUGH_SAMPLES,
    FLOAT32_TYPES,
    LARGE,
    REDUCED_FILTERS,
    REDUCED_TYPES,
    check_on_gpu,
    check_tall_picture,
)

from edgeconv.errors import UnavailableError
from edgeconv.methods.cuda.implicit import Implicit, fragment_table, group_pixels, step_of
from edgeconv.methods.options import Options

REDUCED = ("tf32", "half")


def as_right_matrix(table: np.ndarray, math: str) -> np.ndarray:
    """A fragment table as the matrix that the instructions see: (chunks, 4 samples, columns)."""
    tiles, steps = table.shape[:2]
    values = table.view(np.float16 if math == "half" else np.float32)
    by_lane = values.reshape(tiles, steps, 8, 4, -1)  # n tile, k step, g, t, chunk
    return by_lane.transpose(1, 4, 3, 0, 2).reshape(-1, 4, tiles * 8).astype(np.float64)


@pytest.mark.parametrize("math", REDUCED)
@pytest.mark.parametrize("lead", [0, 1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize(("filter_name", "channels"), [("sobel", "mix"), ("kirsch", "each"), (RANDOM, "luma")])
def test_the_fragment_table_is_the_filter_over_a_group_of_pixels(filter_name, channels, stride, lead, math):
    problem = Case(filter_name, channels, "float32", "raw", stride=stride).problem()
    step, responses = step_of(stride), problem.directions * problem.output_channels
    pixels = group_pixels(step)
    patch = np.random.default_rng(5).integers(-8, 9, (3, (pixels - 1) * step + 3, 3)).astype(np.float64)
    table = as_right_matrix(fragment_table(problem, math, lead), math)
    chunks = -(-(lead + patch[0].size) // 4)
    rows = np.full((3, chunks * 4), 99.0)  # what lies before and after a patch row must not count
    rows[:, lead : lead + patch[0].size] = patch.reshape(3, -1)
    left = np.zeros(table.shape[:2])
    left[: 3 * chunks] = rows.reshape(-1, 4)

    dense = problem.dense_weights().reshape(responses, 3, 3, 3).astype(np.float64)
    under = [patch[:, q * step : q * step + 3] for q in range(pixels)]
    expected = [np.einsum("ruv,uvr->", dense[m], window) for window in under for m in range(responses)]
    tolerance = 0.0 if filter_name != RANDOM else 2.0**-11 * np.abs(dense).max() * np.abs(patch).sum()
    columns = pixels * responses
    np.testing.assert_allclose(np.einsum("ct,ctn->n", left, table)[:columns], expected, rtol=0, atol=tolerance)
    assert not table[:, :, columns:].any()


@pytest.mark.gpu
@pytest.mark.parametrize("case", EVERY_FILTER, ids=str)
def test_every_filter(case):
    check_on_gpu(Implicit(), case)


@pytest.mark.gpu
@pytest.mark.parametrize("case", FLOAT32_TYPES, ids=str)
def test_every_type_mode_and_stride(case):
    check_on_gpu(Implicit(), case)


@pytest.mark.gpu
@pytest.mark.parametrize(("work", "stride", "border"), GEOMETRY)
def test_geometry(work, stride, border):
    for case in geometry_cases(work, stride, border):
        check_on_gpu(Implicit(), case)


@pytest.mark.gpu
@pytest.mark.parametrize("math", REDUCED)
@pytest.mark.parametrize("case", [*REDUCED_FILTERS, *REDUCED_TYPES], ids=str)
def test_every_filter_and_type_on_tensor_cores(case, math):
    check_on_gpu(Implicit(), case, Options(math=math))


@pytest.mark.gpu
@pytest.mark.parametrize("math", REDUCED)
@pytest.mark.parametrize(("work", "stride", "border"), [one for one in GEOMETRY if one[0][2] != "uint16"])
def test_geometry_on_tensor_cores(work, stride, border, math):
    exact = work[2] == "uint8"  # whole weights and 8-bit pixels are exact on the tensor cores
    for case in geometry_cases(work, stride, border):
        if exact or np.prod(case.problem().output_shape) >= ENOUGH_SAMPLES:
            check_on_gpu(Implicit(), case, Options(math=math))


@pytest.mark.gpu
@pytest.mark.parametrize("offset_samples", [0, 1, 5])
@pytest.mark.parametrize("math", ["fma", *REDUCED])
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_many_tiles_and_any_start(case, math, offset_samples):
    check_on_gpu(Implicit(), case, Options(math=math), offset_samples)


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
