"""The table of forms: every condition at its edge, and every form against the plain sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import run_on_host

from edgeconv.api.convolve import plan as plan_of
from edgeconv.bench.surface import ROOT_OPERATIONS, operation_bytes_per_pixel
from edgeconv.core import exactness, lowering
from edgeconv.core.choices import CHANNELS
from edgeconv.core.filters import COMPASS_RING, LUMA_WEIGHTS, custom_filter, named_filter, weight_set
from edgeconv.core.lowering import lower
from edgeconv.core.problem import make_problem
from edgeconv.methods import require
from edgeconv.methods.cuda.sliding_choice import choose_strips
from edgeconv.methods.options import Options

SLIDING = require("sliding", "cpu")
KIRSCH, ROBINSON = named_filter("kirsch").kernels, named_filter("robinson").kernels


def taken(name: str, channels: str, dtype: str = "uint8", stride: int = 1) -> tuple[str, ...]:
    problem = make_problem((8, 8, 3), dtype, weight_set(named_filter(name), channels), stride=stride)
    return lower(problem).forms


@pytest.mark.parametrize(
    ("name", "channels", "dtype", "expected"),
    [
        ("laplacian8", "each", "uint8", ()),
        ("laplacian8", "mix", "uint8", ("channel sum", "equal outputs")),
        ("laplacian8", "mix", "float32", ("channel sum", "equal outputs")),
        ("laplacian8", "luma", "uint16", ("weighted channel", "equal taps")),
        ("laplacian8", "luma", "float32", ("weighted channel",)),
        ("sobel", "each", "uint8", ("equal taps",)),
        ("sobel", "each", "float32", ()),
        ("kirsch", "each", "uint8", ("ring of three",)),
        ("kirsch", "each", "uint16", ("ring of three",)),
        ("kirsch", "mix", "uint8", ("channel sum", "equal outputs", "ring of three")),
        ("kirsch", "luma", "uint8", ("weighted channel", "ring of three")),
        ("kirsch", "each", "float32", ()),
        ("robinson", "each", "uint8", ("opposite directions", "equal taps")),
        ("robinson", "each", "float64", ("opposite directions",)),
        ("identity", "luma", "uint8", ()),
    ],
)
def test_which_forms_are_taken(name: str, channels: str, dtype: str, expected: tuple[str, ...]) -> None:
    assert taken(name, channels, dtype) == expected


@pytest.mark.parametrize(
    ("name", "channels", "dtype", "recomputes", "expected"),
    [
        ("laplacian8", "mix", "uint8", False, 2 * (2 + 9)),  # two sums of channels, nine taps, in 16 bits
        ("kirsch", "each", "uint8", False, 2 * 3 * lowering.RING_OPERATIONS),
        ("sobel", "each", "float32", False, 4 * 3 * (12 + ROOT_OPERATIONS)),
        ("sobel", "each", "uint8", False, 3 * (2 * (4 + 2 * 3) + 4 * ROOT_OPERATIONS)),  # four differences first
        ("robinson", "each", "float32", False, 4 * 3 * (4 * 6 + 4 + 3)),  # four directions, their sizes, the largest
        ("robinson", "each", "float32", True, 4 * 3 * lowering.DIFFERENCES_OPERATIONS),
    ],
)
def test_operations_that_no_form_saves(name: str, channels: str, dtype: str, recomputes: bool, expected: int) -> None:
    problem = make_problem((8, 8, 3), dtype, weight_set(named_filter(name), channels))
    assert operation_bytes_per_pixel(problem, recomputes=recomputes) == expected


def test_every_form_stands_in_the_table_once_and_a_plan_explains_those_that_it_took() -> None:
    names = [form.name for form in lowering.FORMS]
    assert len(set(names)) == len(names)
    rows = [(row, dtype) for row in ("sobel", "kirsch", "robinson") for dtype in ("uint8", "float32")]
    everything = {name for row, dtype in rows for c in CHANNELS for name in taken(row, c, dtype)}
    for row in ("sobel", "robinson"):
        on_a_gpu = choose_strips(make_problem((8, 8, 3), "uint16", weight_set(named_filter(row), "each")))
        assert on_a_gpu is not None
        assert on_a_gpu.form is not None
        everything |= set(on_a_gpu.form.names)
    assert everything == set(names)
    text = plan_of((40, 50, 3), "uint8", filter="kirsch", channels="mix", device="cpu", method="sliding").explain()
    for name in taken("kirsch", "mix"):
        (form,) = (entry for entry in lowering.FORMS if entry.name == name)
        assert name in text
        assert form.computes in text


@given(
    weights=st.tuples(st.integers(-9, 9), st.integers(-9, 9)),
    scale=st.sampled_from([1.0, 0.1, 1 / 3]),
    changed=st.none() | st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)),
)
def test_a_gradient_is_two_kernels_of_one_pair_of_weights(
    weights: tuple[int, int], scale: float, changed: tuple[int, int, int] | None
) -> None:
    beside, middle = (np.float32(weight * scale) for weight in weights)
    across = np.outer((beside, middle, beside), (-1, 0, 1)).astype(np.float32)
    kernels = np.stack([across, across.T])
    if changed is not None:
        kernels[changed] += 1
    expected = (float(beside), float(middle)) if beside and middle and changed is None else None
    assert lowering.gradient(kernels, None) == expected
    assert lowering.gradient(kernels, lowering.GRADIENT_ROUNDINGS) == expected
    assert lowering.gradient(kernels, lowering.GRADIENT_ROUNDINGS, inexact_samples=True) is None
    assert lowering.gradient(kernels[:1], None) is None


@pytest.mark.parametrize(("method", "sums"), [("sliding", "float32"), ("im2col", "float64")])
def test_a_weighted_channel_rounds_so_seldom_that_float32_will_do(method: str, sums: str) -> None:
    kernel, rules = [[9, -9, -7], [-9, -5, 7], [9, -3, 4]], {"channels": "luma", "device": "cpu"}
    plan = plan_of((40, 50, 3), "uint8", filter=kernel, method=method, **rules)
    assert (plan.method_plan.choice["arithmetic"], plan.bound.max() <= exactness.MOST_LEVELS_OFF) == (sums, True)
    assert plan.measure(samples=0, check="full").check.passed


# --- conditions ---------------------------------------------------------------------------------------------------


def test_kirsch_is_eight_times_the_largest_three_less_three_times_the_ring() -> None:
    """By hand: the ring 10 20 30 40 50 60 70 80 has its largest three, 60 + 70 + 80, at the end."""
    assert lowering.ring_of_three(KIRSCH[:, np.newaxis]) == lowering.Ring(plane=0, near=8.0, far=-3.0)
    image = np.zeros((3, 3, 1), np.uint16)
    for number, place in enumerate(COMPASS_RING):
        image[place] = 10 * (number + 1)
    problem = make_problem(
        (3, 3, 1), "uint16", weight_set(named_filter("kirsch"), "mix", in_channels=1), padding=0, output_mode="abs"
    )
    ran = run_on_host(SLIDING.prepare(problem, Options()), image, problem)
    assert ran.out.item() == 8 * (60 + 70 + 80) - 3 * 360


def changed(kernels: np.ndarray, place: tuple[int, ...], weight: float) -> np.ndarray:
    other = kernels.copy()
    other[place] = weight
    return other


THREE, DIFFERENCES = lowering.Ring(0, 8.0, -3.0), lowering.Ring(0, 1.0, 0.0, of_differences=True)
TINY = np.where(KIRSCH > 0, 0.0625, np.where(KIRSCH < 0, -4.0, 0.0)).astype(np.float32)
SEVENTHS = KIRSCH / np.float32(7)
"""8/7 is rounded once more than 5/7."""


@pytest.mark.parametrize(
    ("kernels", "left", "three", "differences"),
    [
        pytest.param(KIRSCH, None, THREE, None, id="kirsch"),
        pytest.param(ROBINSON, None, None, DIFFERENCES, id="robinson"),
        pytest.param(-7 * ROBINSON, None, None, lowering.Ring(0, 7.0, 0.0, of_differences=True), id="robinson turned"),
        pytest.param(changed(KIRSCH, (0, 1, 1), 1.0), None, None, None, id="a weight in the centre"),
        pytest.param(changed(ROBINSON, (0, 1, 1), 1.0), None, None, None, id="a weight in the centre of differences"),
        pytest.param(changed(KIRSCH, (3, 0, 0), -3.0000002), None, None, None, id="one weight apart"),
        pytest.param(changed(ROBINSON, (0, 0, 1), 3.0), None, None, None, id="one difference apart"),
        pytest.param(
            changed(changed(KIRSCH, (0, 0, 0), -3.0), (0, 2, 2), 5.0),
            None,
            None,
            None,
            id="three apart",
        ),
        pytest.param(np.concatenate([KIRSCH[:7], KIRSCH[:1]]), None, None, None, id="a direction twice"),
        pytest.param(np.concatenate([ROBINSON[:7], ROBINSON[:1]]), None, None, None, id="a difference twice"),
        pytest.param(KIRSCH[:7], None, None, None, id="seven directions"),
        pytest.param(ROBINSON[:4], None, None, None, id="four directions"),
        pytest.param(-KIRSCH, None, None, None, id="the smallest at the three"),
        pytest.param(KIRSCH / 8, 9, lowering.Ring(0, 1.0, -0.375), None, id="fractions within the bound"),
        pytest.param(TINY, None, lowering.Ring(0, 4.0625, -4.0), None, id="cancelling weights that are exact"),
        pytest.param(TINY, 9, None, None, id="cancelling weights summed by far larger terms"),
        pytest.param(SEVENTHS, 9, None, None, id="a roundings too many"),
    ],
)
def test_conditions_of_rings(
    kernels: np.ndarray, left: int | None, three: lowering.Ring | None, differences: lowering.Ring | None
) -> None:
    assert lowering.ring_of_three(kernels[:, np.newaxis], left) == three
    assert lowering.ring_of_differences(kernels[:, np.newaxis]) == differences


@pytest.mark.parametrize(
    ("kernels", "left", "whole", "recomputes", "is_ring"),
    [
        (KIRSCH, 9, False, True, True),
        (KIRSCH, 8, False, True, False),
        (KIRSCH, 9, False, False, False),
        (SEVENTHS, 10, False, True, True),
        (ROBINSON, lowering.DIFFERENCES_ROUNDINGS, False, True, True),
        (ROBINSON, lowering.DIFFERENCES_ROUNDINGS - 1, False, True, False),
        (ROBINSON, 25, True, False, False),
    ],
)
def test_rings_of_inexact_sums_are_for_methods_that_recompute(
    kernels: np.ndarray, left: int, whole: bool, recomputes: bool, is_ring: bool
) -> None:
    one = [kernels[:, np.newaxis]]
    rings, _, _ = lowering.fewer_directions(
        one, "maximum", whole_samples=whole, roundings_left=left, recomputes=recomputes
    )
    assert bool(rings) == is_ring


@pytest.mark.parametrize(
    ("kernels", "left"),
    [
        (ROBINSON, (0, 1, 2, 3)),
        (KIRSCH, None),
        (changed(ROBINSON, (0, 0, 1), np.nextafter(np.float32(2), 3)), None),
        (np.concatenate([ROBINSON[:4], ROBINSON[:4]]), None),
    ],
)
def test_directions_are_opposite_bit_for_bit(kernels: np.ndarray, left: tuple[int, ...] | None) -> None:
    assert lowering.opposite_directions(kernels) == left


@pytest.mark.parametrize("luma", LUMA_WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_luma_is_one_weighted_channel(luma: str, dtype: type) -> None:
    weights = weight_set(named_filter("sobel"), "luma", luma).weights.astype(dtype)
    found = lowering.weighted_channel(weights, whole_samples=True)
    assert found is not None
    assert found.shares[1] == 1  # green weighs most, and its kernels are taken as they are
    assert np.array_equal(found.kernels, weights[:, :, 1:2])
    unit = exactness.FLOAT64_UNIT if dtype is np.float64 else exactness.FLOAT32_UNIT
    for place in np.argwhere(weights):
        direction, output, channel, u, v = place
        product = Fraction(float(found.kernels[direction, output, 0, u, v])) * Fraction(found.shares[channel])
        exact = Fraction(float(weights[tuple(place)]))
        assert abs(product - exact) <= (found.roundings - 3) * Fraction(unit) * abs(exact)


def test_what_is_no_weighted_channel() -> None:
    weights = weight_set(named_filter("sobel"), "luma").weights.astype(np.float32)
    assert lowering.weighted_channel(changed(weights, (0, 0, 0, 0, 0), 0.5), whole_samples=True) is None
    assert lowering.weighted_channel(changed(weights, (0, 0, 2, 0, 0), 0.0), whole_samples=True) is None
    assert lowering.weighted_channel(np.ones((1, 3, 3, 3, 3), np.float32), whole_samples=True) is None  # a channel sum
    assert lowering.weighted_channel(np.zeros((1, 1, 3, 3, 3), np.float32), whole_samples=True) is None
    alone = changed(np.zeros((1, 1, 3, 3, 3), np.float32), (0, 0, 0, 1, 1), 2.0)
    assert lowering.weighted_channel(alone, whole_samples=True) is None  # two channels have no share
    large = weight_set(custom_filter(np.full((3, 3), 100.0)), "luma").weights.astype(np.float32)
    assert lowering.weighted_channel(large, whole_samples=True) is not None
    assert lowering.weighted_channel(large, whole_samples=False) is None  # tiny samples would lose too much
