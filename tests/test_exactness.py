"""How exact every method is, and how exact the check asks it to be: by hand, with no figure taken from the package."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from command import PROJECT
from command import edgeconv as command
from problems import random_image, random_weights
from selection import pairs_then_slow

import edgeconv
from edgeconv.api import check as verify
from edgeconv.core import exactness
from edgeconv.core.exactness import FLOAT32
from edgeconv.core.filters import WeightSet, named_filter, weight_set
from edgeconv.core.problem import make_problem
from edgeconv.core.records import as_type, to_json
from edgeconv.errors import MemoryLimitError
from edgeconv.io.encoding import write_image
from edgeconv.methods import METHODS, require
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference

CPU_METHODS = [entry.name for entry in METHODS if entry.device == "cpu"]
EVERY_METHOD = pytest.mark.parametrize("method", CPU_METHODS)

ZERO_SUM = [[30, 60, 30], [60, -360, 60], [30, 60, 30]]


def one_weight(value: float, groups: int = 3) -> WeightSet:
    """The middle of the window times `value`, every channel by itself."""
    weights = np.zeros((1, 3, 1, 3, 3), np.float32)
    weights[..., 1, 1] = value
    return WeightSet(weights, groups=groups)


def result_of(method: str, image: np.ndarray, weights: WeightSet, mode: str, padding: int = 1) -> np.ndarray:
    problem = make_problem(image.shape, image.dtype, weights, output_mode=mode, padding=padding)
    out = np.empty(problem.output_shape, problem.output_dtype)
    require(method, "cpu").prepare(problem, Options()).run(image, out)
    return out


# --- rounding: pinned by hand, in every method -----------------------------------------------------------------------


@EVERY_METHOD
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_halves_round_to_the_even_neighbour(method: str, dtype: str) -> None:
    image = np.repeat(np.arange(1, 9, dtype=dtype)[None, :, None], 3, axis=2)
    rounded = result_of(method, image, one_weight(0.5), "clip")[0, :, 0]
    assert rounded.tolist() == [0, 1, 2, 2, 2, 3, 4, 4]  # of 0.5 1 1.5 2 2.5 3 3.5 4


@EVERY_METHOD
def test_magnitudes_of_16_bits_are_rounded_by_their_whole_square(method: str) -> None:
    """sqrt(x² + y²) a hair above or below a half: float32 holds neither the squares nor the difference."""
    lengths = (20_000, 40_000, 46_339)
    weights = np.zeros((2, 3, 1, 3, 3), np.float32)
    weights[0, :, :, 1, 1], weights[1, :, :, 1, 2] = 1, 1
    pairs = [(k, round((k + Fraction(1, 4)) ** Fraction(1, 2))) for k in lengths] + [(k, k) for k in lengths]
    pairs += [(x, y) for x in range(45_000, 45_040) for y in (30_001, 29_998)]
    for x, y in pairs:
        image = np.zeros((1, 2, 3), np.uint16)
        image[0, 0], image[0, 1] = x, y
        found = int(result_of(method, image, WeightSet(weights, groups=3, combine="magnitude"), "abs")[0, 0, 0])
        square = x * x + y * y
        assert (2 * found - 1) ** 2 < 4 * square < (2 * found + 1) ** 2, (x, y, found)


# --- whole sums beyond 2²⁴ -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "dtype", "largest"),
    pairs_then_slow([*product(CPU_METHODS, ["uint8", "uint16"], [360, 2_000, 100_000, 1_000_000])]),
)
def test_whole_sums_are_equal_to_integers(method: str, dtype: str, largest: int) -> None:
    rng = np.random.default_rng(largest)
    image = random_image(12, 17, dtype)
    kernels = rng.integers(-largest, largest, (1, 3, 3, 3, 3), endpoint=True)
    kernels[:, 0] = ZERO_SUM
    padded = np.pad(image.astype(np.int64), ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    sums = np.einsum("yxiuv,oiuv->yxo", windows, kernels[0])
    for mode, right in (("abs", np.abs(sums)), ("clip", sums)):
        out = result_of(method, image, WeightSet(kernels.astype(np.float32), groups=1), mode)
        assert np.array_equal(out, np.clip(right, 0, np.iinfo(dtype).max)), mode


# --- the page, row by row --------------------------------------------------------------------------------------------


PAGE = (PROJECT / "docs" / "exactness.md").read_text(encoding="utf-8")
PROMISES = [line.split(" | ")[:3] for line in re.findall(r"^\| (.*(?:bits|float32) \| .*) \|$", PAGE, re.MULTILINE)[:3]]
TYPES = {"8 or 16 bits": ("uint8", "uint16"), "float16, float32": ("float16", "float32")}


@EVERY_METHOD
@pytest.mark.parametrize("row", PROMISES, ids=lambda row: " ".join(row[:2]))
def test_each_row_of_the_page_holds_for_sums_and_magnitudes(method: str, row: list[str]) -> None:
    """Of a picture as bright as can be, so that sums are as large; the right values are sums and roots in float64."""
    picture, weights, promise = row
    kernels = np.random.default_rng(3).uniform(-1, 1, (2, 3, 1, 3, 3)) * (1 if weights == "with fractions" else 28)
    kernels = (np.rint(kernels) if weights == "whole" else kernels).astype(np.float32)
    for dtype, directions, mode in product(TYPES[picture], (1, 2), ("abs", "raw")):
        image = random_image(20, 30, dtype, 2)
        if image.dtype.kind == "u":
            image |= np.iinfo(dtype).max // 2 + 1
        used = WeightSet(kernels[:directions], groups=3, combine="magnitude" if directions == 2 else "single")
        problem = make_problem(image.shape, dtype, used, output_mode=mode, padding=0)
        windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), axis=(0, 1))
        responses = np.einsum("yxouv,douv->dyxo", windows, used.weights[:, :, 0].astype(np.float64))
        right = np.hypot.reduce(responses, axis=0) if directions == 2 else responses[0]
        out = result_of(method, image, used, mode, padding=0)
        integer = problem.output_dtype.kind == "u"
        right = np.clip(np.abs(right), 0, np.iinfo(dtype).max) if integer else np.abs(right) if mode == "abs" else right
        off = np.abs(out.astype(np.float64) - right)
        bound = exactness.bound(problem, require(method, "cpu").prepare(problem, Options()).arithmetic)
        if promise.startswith("**exact**") and not (directions == 2 and mode == "raw"):
            assert np.array_equal(out, np.rint(right)), (dtype, directions, mode)
        elif integer:
            assert bound.max() <= 1 / 64
            assert off.max() <= 0.5 + bound.max(), (dtype, directions, mode)
        else:
            assert (off <= exactness.stored_bound(right, bound, problem.output_dtype)).all(), (dtype, directions, mode)


@EVERY_METHOD
def test_a_sum_of_fractions_just_above_a_half_is_rounded_up(method: str) -> None:
    """11411.5 and a little: float32 sums gave 11411."""
    image = np.array([[57955, 65449, 60106], [59991, 64360, 57754], [56179, 56267, 64959]], np.uint16)
    kernel = [[36.7, 22.4, 13.5], [-23.9, -66.4, 1.2], [-31.5, 11.9, 36.1]]
    assert edgeconv.convolve(image, kernel, method, padding=0, output_mode="clip", device="cpu") == 11412


# --- floats at the ends of their range -------------------------------------------------------------------------------


@EVERY_METHOD
@pytest.mark.parametrize("size", [1e-42, 1e-38, 1e-30, 1e-23, 1.0, 1e19, 1e30, 2e37])
def test_magnitudes_neither_vanish_nor_overflow(method: str, size: float) -> None:
    image = (random_image(9, 11, "float32") * np.float32(size)).astype(np.float32)
    out = edgeconv.convolve(image, "sobel", method, border="zero", device="cpu").astype(np.float64)
    padded = np.pad(image.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    across = sum((1, 2, 1)[u] * (padded[u : u + 9, 2:] - padded[u : u + 9, :-2]) for u in range(3))
    down = sum((1, 2, 1)[v] * (padded[2:, v : v + 11] - padded[:-2, v : v + 11]) for v in range(3))
    right = np.hypot(across, down)
    np.testing.assert_allclose(out, right, rtol=0, atol=16 * 2.0**-24 * 8 * size + 16 * 2.0**-149)
    assert (right > 0).all()


@EVERY_METHOD
def test_denormal_numbers_are_kept(method: str) -> None:
    image = (np.arange(1, 28, dtype=np.uint32).reshape(3, 3, 3)).view(np.float32)
    assert np.array_equal(edgeconv.convolve(image, "identity", method, channels="each", device="cpu"), image)


# --- the check itself ------------------------------------------------------------------------------------------------


def test_a_wrong_channel_of_small_weights_does_not_hide_behind_a_large_one() -> None:
    image = random_image(16, 16, "float32")
    weights = random_weights()
    small = weights.weights.copy()
    small[:, 2] *= 1e-7
    problem = make_problem(image.shape, "float32", WeightSet(small, groups=1))
    out = np.empty(problem.output_shape, np.float32)
    Reference().prepare(problem, Options()).run(image, out)
    assert verify.check(image, out, problem, FLOAT32).passed
    out[..., 2] *= 1.02
    found = verify.check(image, out, problem, FLOAT32)
    assert not found.passed
    assert found.worst is not None
    assert found.worst.channel == 2


def test_an_infinity_is_right_where_the_bound_lets_the_value_leave_the_range() -> None:
    """Large terms that cancel: what is left of them by rounding may be beyond float16, though the oracle says 0."""
    weights = np.zeros((1, 3, 1, 3, 3), np.float32)
    weights[..., 1, 0], weights[..., 1, 1] = 1e20, -1e20
    problem = make_problem((1, 2, 3), "float16", WeightSet(weights, groups=3))
    image = np.ones((1, 2, 3), np.float16)
    right = np.array([[[-np.inf] * 3, [0] * 3]], np.float16)
    for left in (0.0, np.inf, -np.inf):
        right[0, 1] = left
        assert verify.check(image, right, problem, FLOAT32).passed
    right[0, 0] = np.inf
    assert not verify.check(image, right, problem, FLOAT32).passed


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, np.finfo(np.float64).max])
def test_a_report_can_be_written_however_wrong_the_output_is(bad: float) -> None:
    """JSON holds no infinity: an error that is one, or becomes one as a share of the largest value, is null."""
    image = random_image(8, 8, "float64") * 1e-10
    problem = make_problem(image.shape, "float64", random_weights())
    out = np.empty(problem.output_shape, np.float64)
    Reference().prepare(problem, Options()).run(image, out)
    out[2, 3, 1] = bad
    found = verify.check(image, out, problem, FLOAT32)
    assert not found.passed
    assert (found.relative_error, found.worst.channel) == (None, 1)
    assert as_type(json.loads(to_json(found)), verify.Check) == found


# --- workspace -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 7, 3), (60, 70, 3), (40, 9000, 3)])
@EVERY_METHOD
def test_what_a_refusal_of_the_workspace_advises_keeps_to_the_limit(method: str, shape: tuple[int, int, int]) -> None:
    problem = make_problem(shape, "uint8", weight_set(named_filter("sobel"), "mix"), output_mode="abs")
    advised = 0
    for limit in (0, 2**10, 2**16, 2**17, 2**18, 3 * 2**18, 2**20):
        refusal = ""
        try:
            plan = require(method, "cpu").prepare(problem, Options(workspace_limit_bytes=limit, threads=4))
            assert plan.workspace_bytes <= limit
        except MemoryLimitError as error:
            refusal = str(error)
            assert f"the limit is {limit:,}:" in refusal
        said = re.search(r"or use --threads (\d+)\.", refusal)
        if said:
            advised += 1
            instead = Options(workspace_limit_bytes=limit, threads=int(said[1]))
            assert require(method, "cpu").prepare(problem, instead).workspace_bytes <= limit
        else:
            assert not refusal or refusal.endswith("raise --workspace-limit.")
    assert advised or method in ("reference", "opencv") or shape != (40, 9000, 3)


# --- normalize -------------------------------------------------------------------------------------------------------


def test_normalize_counts_the_bytes_that_it_saves(tmp_path: Path) -> None:
    write_image(random_image(64, 64, "uint8"), tmp_path / "in.png")
    words = ("run", "in.png", "--method", "opencv", "--json")
    fewest = {}
    for mode in ("raw", "normalize"):
        record = json.loads(command(*words, "--output-mode", mode, "-o", f"{mode}.tiff", cwd=tmp_path).text)
        fewest[mode] = record["counts"]["fewest_bytes"]
        rate = record["counts"]["nominal_flops"] / record["timing"]["kernel"]["median_seconds"] / 1e9
        assert record["speed"]["end_to_end_gflops"] == pytest.approx(rate, rel=1e-9)
    assert fewest == {"raw": 64 * 64 * 3 * (1 + 4), "normalize": 64 * 64 * 3 * 2}
