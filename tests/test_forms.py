"""The table of forms: every condition at its edge, and every form against the plain sum."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import assert_right, image_of, random_image, run_on_host
from selection import few_then_slow

from edgeconv.api.convolve import plan as plan_of
from edgeconv.core import exactness, forms
from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import COMPASS_RING, LUMA_WEIGHTS, Filter, WeightSet, custom_filter, named_filter, weight_set
from edgeconv.core.lowering import lower
from edgeconv.core.problem import INPUT_DTYPES, Problem, make_problem
from edgeconv.methods import require
from edgeconv.methods.cpu import native
from edgeconv.methods.cuda.sliding_arithmetic import form_for
from edgeconv.methods.options import Options

SLIDING, IM2COL = require("sliding", "cpu"), require("im2col", "cpu")
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
        ("robinson", "each", "uint8", ("ring of differences",)),
        ("robinson", "each", "float64", ("opposite directions",)),
        ("identity", "luma", "uint8", ()),
    ],
)
def test_which_forms_are_taken(name: str, channels: str, dtype: str, expected: tuple[str, ...]) -> None:
    assert taken(name, channels, dtype) == expected


def test_every_form_stands_in_the_table_once_and_a_plan_explains_those_that_it_took() -> None:
    names = [form.name for form in forms.FORMS]
    assert len(set(names)) == len(names)
    rows = [(row, dtype) for row in ("sobel", "kirsch", "robinson") for dtype in ("uint8", "float32")]
    everything = {name for row, dtype in rows for c in CHANNELS for name in taken(row, c, dtype)}
    on_a_gpu = form_for(make_problem((8, 8, 3), "uint16", weight_set(named_filter("sobel"), "each")))
    assert on_a_gpu is not None
    assert everything | set(on_a_gpu.names) == set(names)
    text = plan_of((40, 50, 3), "uint8", filter="kirsch", channels="mix", device="cpu", method="sliding").explain()
    for name in taken("kirsch", "mix"):
        (form,) = (entry for entry in forms.FORMS if entry.name == name)
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
    assert forms.gradient(kernels, None) == expected
    assert forms.gradient(kernels, forms.GRADIENT_ROUNDINGS) == expected
    assert forms.gradient(kernels, forms.GRADIENT_ROUNDINGS, inexact_samples=True) is None
    assert forms.gradient(kernels[:1], None) is None


def test_im2col_takes_no_form() -> None:
    problem = make_problem((8, 8, 3), "uint8", weight_set(named_filter("kirsch"), "mix"))
    assert lower(problem, share=False).forms == ()
    assert IM2COL.prepare(problem, Options()).choice["forms"] == "plain sums"


# --- conditions ---------------------------------------------------------------------------------------------------


def test_kirsch_is_eight_times_the_largest_three_less_three_times_the_ring() -> None:
    """By hand: the ring 10 20 30 40 50 60 70 80 has its largest three, 60 + 70 + 80, at the end."""
    assert forms.ring_of_three(KIRSCH[:, np.newaxis]) == forms.Ring(plane=0, near=8.0, far=-3.0)
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


@pytest.mark.parametrize(
    ("what", "kernels"),
    [
        ("a weight in the centre", changed(KIRSCH, (0, 1, 1), 1.0)),
        ("one weight apart", changed(KIRSCH, (3, 0, 0), -3.0000002)),
        ("three that are no neighbours", changed(changed(KIRSCH, (0, 0, 0), -3.0), (0, 2, 2), 5.0)),
        ("a direction twice", np.concatenate([KIRSCH[:7], KIRSCH[:1]])),
        ("seven directions", KIRSCH[:7]),
        ("the smallest at the three", -KIRSCH),
        ("other weights", ROBINSON),
    ],
)
def test_what_is_no_ring_of_three(what: str, kernels: np.ndarray) -> None:
    assert forms.ring_of_three(kernels[:, np.newaxis]) is None, what


def test_robinson_is_a_ring_of_differences_of_the_named_weights_alone() -> None:
    assert forms.ring_of_differences(ROBINSON[:, np.newaxis]) == forms.Ring(0, 1.0, 0.0, of_differences=True)
    assert forms.ring_of_differences(-7 * ROBINSON[:, np.newaxis]) == forms.Ring(0, 7.0, 0.0, of_differences=True)
    for other in (
        KIRSCH,
        changed(ROBINSON, (0, 1, 1), 1.0),
        changed(ROBINSON, (0, 0, 1), 3.0),
        np.concatenate([ROBINSON[:7], ROBINSON[:1]]),
        ROBINSON[:4],
    ):
        assert forms.ring_of_differences(other[:, np.newaxis]) is None
    fractions = Filter("f", ROBINSON / 3, "maximum", "", "")
    problem = make_problem((8, 8, 3), "uint8", weight_set(fractions, "each"))
    assert lower(problem).forms == ("opposite directions", "equal taps")


def test_a_ring_of_fractions_has_to_keep_within_the_bound() -> None:
    """Cancelling weights that are nearly zero are summed by terms far larger than themselves."""
    assert forms.ring_of_three(KIRSCH[:, np.newaxis] / 8, 9) == forms.Ring(0, 1.0, -0.375)
    tiny = np.where(KIRSCH > 0, 0.0625, np.where(KIRSCH < 0, -4.0, 0.0)).astype(np.float32)
    assert forms.ring_of_three(tiny[:, np.newaxis], 9) is None
    assert forms.ring_of_three(tiny[:, np.newaxis]) is not None
    for dtype in (np.float32, np.float64):  # where 8/7 is rounded once more than 5/7
        sevenths = (KIRSCH.astype(dtype) / dtype(7))[:, np.newaxis]
        assert [forms.ring_of_three(sevenths, left) is not None for left in (9, 10)] == [False, True]


def test_rings_of_inexact_sums_are_for_methods_that_mend() -> None:
    def rings(kernels: np.ndarray, left: int, whole: bool, mends: bool) -> tuple[forms.Ring, ...]:
        one = [kernels[:, np.newaxis]]
        return forms.fewer_directions(one, "maximum", whole_samples=whole, roundings_left=left, mends=mends).rings

    for kernels, least in ((KIRSCH, 9), (ROBINSON, forms.DIFFERENCES_ROUNDINGS)):
        assert rings(kernels, least, whole=False, mends=True)
        assert not rings(kernels, least - 1, whole=False, mends=True)
        assert not rings(kernels, least, whole=False, mends=False)
    assert not rings(ROBINSON, 25, whole=True, mends=False)


def test_the_sum_of_float_channels_is_rounded() -> None:
    """Twice for three channels; that of whole samples is exact."""
    weights = weight_set(named_filter("kirsch"), "mix")
    left = {
        dtype: forms.reduced(make_problem((8, 8, 3), dtype, weights), mends=True).roundings_left
        for dtype in ("uint8", "float32")
    }
    assert left == {"uint8": None, "float32": 3 * 8 + 1 - 2}


def test_directions_are_opposite_bit_for_bit() -> None:
    assert forms.opposite_directions(ROBINSON) == (0, 1, 2, 3)
    assert forms.opposite_directions(KIRSCH) is None
    assert forms.opposite_directions(changed(ROBINSON, (0, 0, 1), np.nextafter(np.float32(2), 3))) is None
    assert forms.opposite_directions(np.concatenate([ROBINSON[:4], ROBINSON[:4]])) is None


@pytest.mark.parametrize("luma", LUMA_WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_luma_is_one_weighted_channel(luma: str, dtype: type) -> None:
    weights = weight_set(named_filter("sobel"), "luma", luma).weights.astype(dtype)
    found = forms.weighted_channel(weights, whole_samples=True)
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
    assert forms.weighted_channel(changed(weights, (0, 0, 0, 0, 0), 0.5), whole_samples=True) is None
    assert forms.weighted_channel(changed(weights, (0, 0, 2, 0, 0), 0.0), whole_samples=True) is None
    assert forms.weighted_channel(np.ones((1, 3, 3, 3, 3), np.float32), whole_samples=True) is None  # a channel sum
    assert forms.weighted_channel(np.zeros((1, 1, 3, 3, 3), np.float32), whole_samples=True) is None
    alone = changed(np.zeros((1, 1, 3, 3, 3), np.float32), (0, 0, 0, 1, 1), 2.0)
    assert forms.weighted_channel(alone, whole_samples=True) is None  # two channels have no share
    large = weight_set(custom_filter(np.full((3, 3), 100.0)), "luma").weights.astype(np.float32)
    assert forms.weighted_channel(large, whole_samples=True) is not None
    assert forms.weighted_channel(large, whole_samples=False) is None  # tiny samples would lose too much


def test_equal_taps_are_added_where_it_saves_operations() -> None:
    def groups(*responses: tuple[float, ...]) -> list[list[tuple[int, int]]]:
        return forms.equal_taps(list(zip(*responses, strict=True)))

    assert groups((1.0, 1.0, 0.0, -1.0)) == []  # an addition each, whichever way
    assert groups((2.0, 2.0, 0.0, -2.0)) == [[(0, 1), (1, 1), (3, -1)]]
    assert groups((1.0, -1.0), (1.0, -1.0)) == [[(0, 1), (1, -1)]]
    assert groups((1.0, -1.0), (1.0, 1.0)) == []


# --- against the plain sum ----------------------------------------------------------------------------------------


def compass(near: float, far: float) -> Filter:
    """Eight directions, `near` on three neighbours of the ring and `far` on the others."""
    return dataclasses.replace(
        named_filter("kirsch"), kernels=np.where(KIRSCH > 0, near, np.where(KIRSCH < 0, far, 0.0))
    )


def antisymmetric(ring: list[float]) -> Filter:
    """Eight directions, each of which has its opposite."""
    kernels = np.zeros((8, 3, 3))
    for direction in range(8):
        for index, place in enumerate(COMPASS_RING):
            kernels[(direction, *place)] = ring[(index + direction) % 4] * (1 if (index + direction) % 8 < 4 else -1)
    return dataclasses.replace(named_filter("robinson"), kernels=kernels)


WEIGHTS = st.one_of(
    st.integers(-9, 9).map(float), st.floats(-4, 4, width=32).filter(lambda weight: abs(weight) > 2.0**-10)
)
COMPASSES = st.one_of(
    st.tuples(WEIGHTS, WEIGHTS).map(lambda pair: compass(max(pair), min(pair))),
    st.lists(WEIGHTS, min_size=4, max_size=4).map(antisymmetric),
)
SINGLE = st.one_of(
    st.sampled_from(["sobel", "scharr", "laplacian4", "emboss"]).map(named_filter),
    st.lists(WEIGHTS, min_size=3, max_size=3).map(lambda row: custom_filter([row, row[::-1], row])),
)


@st.composite
def form_problems(draw: st.DrawFn) -> Problem:
    chosen = draw(st.one_of(COMPASSES, st.sampled_from(["kirsch", "robinson"]).map(named_filter), SINGLE))
    in_channels = draw(st.sampled_from([1, 3]))
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40) | st.sampled_from([63, 65, 127, 131, 257]))
    dtype = draw(st.sampled_from(INPUT_DTYPES))
    return make_problem(
        (height, width, in_channels),
        dtype,
        weight_set(chosen, draw(st.sampled_from(CHANNELS)), in_channels=in_channels),
        stride=draw(st.integers(1, 7)),
        padding=draw(st.integers(1, 3)),
        border=draw(st.sampled_from(BORDERS)),
        output_mode=draw(st.sampled_from(("abs", "clip", "raw") if np.dtype(dtype).kind == "u" else ("abs", "raw"))),
    )


@pytest.mark.parametrize("streaming", [False, True], ids=["cached", "streaming"])
@pytest.mark.parametrize("examples", few_then_slow([12, 20]))
def test_every_form_is_the_plain_sum(streaming: bool, examples: int) -> None:
    """To the bit where sums are exact integers, else within the bound; like im2col, which takes no form."""

    @settings(max_examples=examples, deadline=None)
    @given(problem=form_problems(), seed=st.integers(0, 99), extreme=st.booleans())
    def is_the_plain_sum(problem: Problem, seed: int, extreme: bool) -> None:
        form_is_the_plain_sum(streaming, problem, seed, extreme)

    is_the_plain_sum()


def form_is_the_plain_sum(streaming: bool, problem: Problem, seed: int, extreme: bool) -> None:
    image = image_of(problem, seed)
    if extreme:  # black and white alone drive every sum to its limits
        image = np.where(image > image.mean(), image.max(), image.min()).astype(problem.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "STREAMING_BYTES", 0 if streaming else 2**40)
        found = run_on_host(SLIDING.prepare(problem, Options(threads=2)), image, problem)
        plain = run_on_host(IM2COL.prepare(problem, Options(threads=1)), image, problem)
    assert_right(found)
    if exactness.is_whole(problem) and problem.combine != "magnitude":
        assert np.array_equal(found.out, plain.out)


@settings(max_examples=15, deadline=None)
@given(
    chosen=st.sampled_from(["kirsch", "robinson", "sobel"]),
    channels=st.sampled_from(CHANNELS),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
    both=st.booleans(),
)
def test_what_is_not_finite_reaches_its_windows_and_no_other(
    chosen: str, channels: str, dtype: str, value: float, both: bool
) -> None:
    problem = make_problem((9, 37, 3), dtype, weight_set(named_filter(chosen), channels), output_mode="raw")
    image = random_image(9, 37, dtype)
    image[4, 11, 1] = value
    if both:
        image[4, 12, 2] = -value
    assert_right(run_on_host(SLIDING.prepare(problem, Options()), image, problem))


def test_a_bank_of_luma_is_one_plane() -> None:
    names = ("laplacian8", "sobel-x", "sobel-y", "emboss", "prewitt-x", "prewitt-y", "scharr-x", "scharr-y", "sharpen")
    bank = WeightSet(
        np.concatenate([weight_set(named_filter(name), "luma").weights for name in names], axis=1), groups=1
    )
    for dtype in ("uint8", "float32"):
        problem = make_problem((21, 47, 3), dtype, bank, output_mode="abs")
        plan = SLIDING.prepare(problem, Options())
        weighted = dtype == "uint8"  # tiny samples would lose too much under scharr
        assert plan.choice["outputs_side_by_side"]
        assert ("weighted channel" in plan.choice["forms"]) == weighted
        assert plan.choice["multiply_adds_per_pixel"] == len(names) * (9 if weighted else 27)
        assert_right(run_on_host(plan, random_image(21, 47, dtype), problem))


@pytest.mark.parametrize("registers", [16, 32, 64])
@pytest.mark.parametrize("name", ["kirsch", "robinson", "sobel"])
def test_a_block_of_several_sums_is_whole_whatever_the_registers(name: str, registers: int, monkeypatch) -> None:
    """uint8 is stored in more lanes than its float32 sums have: parts are joined before they are stored."""
    from edgeconv.hardware.cpu import jit

    here = jit.processor()
    if registers > here.vector_bytes:
        pytest.skip(f"this processor's registers have {here.vector_bytes} bytes")
    monkeypatch.setattr(jit, "processor", lambda: dataclasses.replace(here, vector_bytes=registers))
    for channels, dtype, stride in (("luma", "uint8", 1), ("each", "uint8", 5), ("mix", "uint16", 1)):
        problem = make_problem(
            (7, 301, 3), dtype, weight_set(named_filter(name), channels), stride=stride, output_mode="abs"
        )
        for streaming_bytes in (0, 2**40):
            monkeypatch.setattr(native, "STREAMING_BYTES", streaming_bytes)
            assert_right(run_on_host(SLIDING.prepare(problem, Options()), random_image(7, 301, dtype), problem))


@pytest.mark.parametrize("offset", [0, 1, 31, 63])
@pytest.mark.parametrize(
    ("name", "channels", "dtype", "stride"),
    [
        ("kirsch", "each", "uint8", 1),
        ("robinson", "each", "uint8", 1),
        ("kirsch", "luma", "uint8", 1),
        ("robinson", "mix", "float32", 1),
        ("sobel", "mix", "uint16", 4),
        ("laplacian8", "each", "uint8", 5),
        ("kirsch", "each", "uint8", 6),
    ],
)
def test_nothing_is_written_outside_the_output_and_no_sample_outside_the_picture_matters(
    name: str, channels: str, dtype: str, stride: int, offset: int, monkeypatch
) -> None:
    """Views that begin at any sample, with other values all around them."""
    monkeypatch.setattr(native, "STREAMING_BYTES", 0)
    problem = make_problem(
        (5, 333, 3), dtype, weight_set(named_filter(name), channels), stride=stride, output_mode="abs"
    )
    plan = SLIDING.prepare(problem, Options(threads=2))
    expected = run_on_host(plan, random_image(5, 333, dtype), problem).out
    for around in (0, 1):
        whole = np.full(5 * 333 * 3 + 256, around, dtype)
        image = whole[offset : offset + 5 * 333 * 3].reshape(5, 333, 3)
        image[...] = random_image(5, 333, dtype)
        memory = np.full(expected.size + 256, 7, expected.dtype)
        out = memory[offset : offset + expected.size].reshape(expected.shape)
        plan.run(image, out)
        assert np.array_equal(out, expected)
        assert (memory[:offset] == 7).all()
        assert (memory[offset + expected.size :] == 7).all()
