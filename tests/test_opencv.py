"""The `opencv` method against the oracle, and sums of luma by slices."""

from __future__ import annotations

import dataclasses

import cpu_problems
import numpy as np
import pytest
from problems import random_image
from selection import pairs_then_slow

import edgeconv
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.methods import require
from edgeconv.methods.options import Options

OPENCV = require("opencv", "cpu")


@pytest.mark.parametrize(
    "case",
    pairs_then_slow(
        cpu_problems.EVERY_FILTER + cpu_problems.EVERY_TYPE + cpu_problems.GREY + cpu_problems.BANKS,
        dataclasses.astuple,
    ),
    ids=str,
)
def test_every_case_is_right(case):
    """Geometry beside it: test_cpu_engine.py."""
    cpu_problems.check_case(OPENCV, case)


def test_many_bands_on_two_threads_change_nothing():
    """Large enough for several bands; the byte-for-byte promise for any thread count."""
    problem = cpu_problems.Case("sobel", "each", "uint8", "abs", shape=(301, 700)).problem()
    image = random_image(301, 700, "uint8")
    outputs = []
    for threads in (1, 2, 5):
        plan = OPENCV.prepare(problem, Options(threads=threads))
        outputs.append(np.empty(problem.output_shape, problem.output_dtype))
        plan.run(image, outputs[-1])
    assert np.array_equal(outputs[0], outputs[1])
    assert np.array_equal(outputs[0], outputs[2])


SHARES = {"bt601": (0.299, 0.587, 0.114), "bt709": (0.2126, 0.7152, 0.0722)}
SMOOTHINGS = {"sobel": (1, 2, 1), "prewitt": (1, 1, 1)}


def exact_luma(image, filter, luma):
    """The magnitudes of all pixels with a whole window, float64, by slices and without the package."""
    plane = image.astype(np.float64) @ np.array(SHARES[luma])
    along_x = np.outer(SMOOTHINGS[filter], (-1, 0, 1))
    windows = np.lib.stride_tricks.sliding_window_view(plane, (3, 3))
    return np.hypot(*((windows * kernel).sum(axis=(2, 3)) for kernel in (along_x, along_x.T)))


@pytest.mark.parametrize("luma", SHARES)
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@pytest.mark.parametrize("filter", SMOOTHINGS)
def test_luma_is_one_plane_and_keeps_the_stated_bound(filter, dtype, luma):
    image = random_image(37, 41, dtype)
    rules = {"filter": filter, "channels": "luma", "luma": luma, "output_mode": "raw"}
    plan = edgeconv.plan(image.shape, dtype, method="opencv", **rules)
    found = plan(image).reshape(37, 41)[1:-1, 1:-1]
    stored = np.spacing(np.abs(found).max())  # of rounding to the output's type
    errors = np.abs(found.astype(np.float64) - exact_luma(image, filter, luma))
    assert errors.max() <= plan.bound[0] + stored
    assert plan.method_plan.choice["collapsed"]


@pytest.mark.parametrize("method", ["opencv", "sliding", "im2col", "reference"])
def test_wide_sums_of_luma_keep_the_bound_of_float64(method):
    """Shares of float32 weights would lose as much as float32 sums do."""
    image = random_image(40, 50, "uint16")
    kernel = np.array([[1999, -1, 7], [-3, 1501, 900], [17, -2000, 1]], float)
    rules = {"channels": "luma", "output_mode": "raw", "padding": 0, "device": "cpu"}
    plan = edgeconv.plan(image.shape, "uint16", filter=kernel, method=method, **rules)
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), axis=(0, 1))
    expected = (windows * plan.problem.weights[0, 0]).sum(axis=(2, 3, 4))
    stored = np.spacing(np.float32(np.abs(expected).max())) / 2  # half a step of the float32 output
    assert np.abs(plan(image).reshape(expected.shape) - expected).max() <= plan.bound[0] + stored
