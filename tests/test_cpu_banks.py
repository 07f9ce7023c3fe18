"""Random problems on every CPU method: any number of filters and channels, any type, shape, stride and border."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import assert_right, random_bank, random_image, run_on_host
from selection import few_then_slow

from edgeconv.core.choices import BORDERS
from edgeconv.core.filters import CHANNEL_COUNTS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import INPUT_DTYPES, make_problem
from edgeconv.methods import method_names, require
from edgeconv.methods.cpu import native
from edgeconv.methods.options import Options

FILTERS = st.one_of(st.integers(1, 9), st.integers(10, 40), st.sampled_from([64, 255, 256]))


@pytest.mark.parametrize("streaming", [False, True], ids=["cached", "streaming"])
@pytest.mark.parametrize("name", method_names("cpu"))
@pytest.mark.parametrize("examples", few_then_slow([8, 12]))
def test_any_problem_is_right(name: str, streaming: bool, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def is_right(data: st.DataObject) -> None:
        any_problem_is_right(name, streaming, data)

    is_right()


def any_problem_is_right(name: str, streaming: bool, data: st.DataObject) -> None:
    draw = data.draw
    in_channels = draw(st.sampled_from(CHANNEL_COUNTS), "in_channels")
    groups = draw(st.sampled_from([1, in_channels]), "groups")
    directions = draw(st.sampled_from([1, 1, 2, 8]), "directions")
    filters = draw(FILTERS if directions < 8 else st.integers(1, 12), "filters")
    weights = random_bank(filters, in_channels, groups, directions, whole=draw(st.booleans(), "whole"))
    if draw(st.booleans(), "equal filters"):
        weights.weights[:] = weights.weights[:, np.arange(groups * filters) // 2 * 2]
    if draw(st.booleans(), "equal kernels for all channels"):
        weights.weights[:] = weights.weights[:, :, :1]
    height, width = draw(st.integers(1, 12), "height"), draw(st.integers(1, 70), "width")
    padding = draw(st.integers(0 if min(height, width) >= KERNEL_SIZE else 1, 4), "padding")
    dtype = draw(st.sampled_from(INPUT_DTYPES), "dtype")
    whole_numbers = np.dtype(dtype).kind == "u"
    problem = make_problem(
        (height, width, in_channels),
        dtype,
        weights,
        stride=draw(st.integers(1, 5), "stride"),
        padding=padding,
        border=draw(st.sampled_from(BORDERS), "border"),
        output_mode=draw(st.sampled_from(("abs", "clip", "raw") if whole_numbers else ("abs", "raw")), "output_mode"),
    )
    image = random_image(height, width, dtype, draw(st.integers(0, 99), "seed"), in_channels)
    if not whole_numbers and draw(st.booleans(), "not finite"):
        image[height // 2, width // 2, -1] = draw(st.sampled_from([np.nan, np.inf, -np.inf]), "which")
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "STREAMING_BYTES", 0 if streaming else 2**40)
        for threads in (1, 3):
            ran = run_on_host(require(name, "cpu").prepare(problem, Options(threads=threads)), image, problem)
            assert_right(ran)
            outputs.append(ran.out.tobytes())
    assert outputs[0] == outputs[1]
