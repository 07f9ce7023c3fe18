"""Random problems on every CPU method: any number of filters and channels, any form, type, shape, stride and border."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import assert_right, image_of, random_bank, run_on_host
from selection import few_then_slow

from edgeconv.core.choices import BORDERS, CHANNELS
from edgeconv.core.filters import (
    CHANNEL_COUNTS,
    COMPASS_RING,
    Filter,
    WeightSet,
    custom_filter,
    named_filter,
    weight_set,
)
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import INPUT_DTYPES, make_problem
from edgeconv.methods import method_names, require
from edgeconv.methods.cpu import native
from edgeconv.methods.options import Options


def turned(ring: list[float]) -> Filter:
    """A largest of eight directions, of which each has the ring turned by one place more."""
    kernels = np.zeros((len(ring), KERNEL_SIZE, KERNEL_SIZE))
    for direction in range(len(ring)):
        for index, place in enumerate(COMPASS_RING):
            kernels[(direction, *place)] = ring[(index + direction) % len(ring)]
    return Filter("turned", kernels, "maximum", "", "")


WEIGHTS = st.integers(-9, 9).map(float) | st.floats(-4, 4, width=32).filter(lambda weight: abs(weight) > 2.0**-10)
OF_FORMS = st.one_of(
    st.tuples(WEIGHTS, WEIGHTS).map(lambda pair: turned([max(pair)] * 3 + [min(pair)] * 5)),
    st.lists(WEIGHTS, min_size=4, max_size=4).map(lambda half: turned([*half, *(-weight for weight in half)])),
    st.sampled_from(["kirsch", "robinson", "sobel", "scharr", "laplacian4", "emboss"]).map(named_filter),
    st.lists(WEIGHTS, min_size=3, max_size=3).map(lambda row: custom_filter([row, row[::-1], row])),
)
"""Filters for which there are cheaper ways (core/lowering.py), or nearly."""
FILTERS = st.one_of(st.integers(1, 9), st.integers(10, 40), st.sampled_from([64, 255, 256]))


@st.composite
def banks(draw: st.DrawFn, in_channels: int) -> WeightSet:
    groups = draw(st.sampled_from([1, in_channels]))
    directions = draw(st.sampled_from([1, 1, 2, 8]))
    filters = draw(FILTERS if directions < 8 else st.integers(1, 12))
    weights = random_bank(filters, in_channels, groups, directions, whole=draw(st.booleans()))
    if draw(st.booleans()):  # equal filters
        weights.weights[:] = weights.weights[:, np.arange(groups * filters) // 2 * 2]
    if draw(st.booleans()):  # equal kernels for all channels
        weights.weights[:] = weights.weights[:, :, :1]
    return weights


@pytest.mark.parametrize("streaming", [False, True], ids=["cached", "streaming"])
@pytest.mark.parametrize("name", method_names("cpu"))
@pytest.mark.parametrize("examples", few_then_slow([16, 32]))
def test_any_problem_is_right(name: str, streaming: bool, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def is_right(data: st.DataObject) -> None:
        any_problem_is_right(name, streaming, data)

    is_right()


def any_problem_is_right(name: str, streaming: bool, data: st.DataObject) -> None:
    """To the bit where sums are exact integers, else within the bound, whatever the threads."""
    draw = data.draw
    in_channels = draw(st.sampled_from(CHANNEL_COUNTS), "in_channels")
    if draw(st.booleans(), "a bank"):
        weights = draw(banks(in_channels))
    else:
        weights = weight_set(draw(OF_FORMS), draw(st.sampled_from(CHANNELS), "channels"), in_channels=in_channels)
    height, width = draw(st.integers(1, 12), "height"), draw(st.integers(1, 70) | st.sampled_from([127, 257]), "width")
    padding = draw(st.integers(0 if min(height, width) >= KERNEL_SIZE else 1, 4), "padding")
    dtype = draw(st.sampled_from(INPUT_DTYPES), "dtype")
    integers = np.dtype(dtype).kind == "u"
    problem = make_problem(
        (height, width, in_channels),
        dtype,
        weights,
        stride=draw(st.integers(1, 7), "stride"),
        padding=padding,
        border=draw(st.sampled_from(BORDERS), "border"),
        output_mode=draw(st.sampled_from(("abs", "clip", "raw") if integers else ("abs", "raw")), "output_mode"),
    )
    image = image_of(problem, draw(st.integers(0, 99), "seed"))
    if draw(st.booleans(), "extreme"):  # black and white alone drive every sum to its limits
        image = np.where(image > image.mean(), image.max(), image.min()).astype(problem.dtype)
    if not integers and draw(st.booleans(), "not finite"):
        image[height // 2, width // 2, -1] = draw(st.sampled_from([np.nan, np.inf, -np.inf]), "which")
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "STREAMING_BYTES", 0 if streaming else 2**40)
        for threads in (1, 3):
            ran = run_on_host(require(name, "cpu").prepare(problem, Options(threads=threads)), image, problem)
            assert_right(ran)
            outputs.append(ran.out.tobytes())
    assert outputs[0] == outputs[1]
