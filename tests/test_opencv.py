"""The `opencv` method against the oracle."""

from __future__ import annotations

import cpu_problems
import numpy as np
import pytest
from problems import random_image
from selection import pairs_then_slow

from edgeconv.errors import UsageError
from edgeconv.methods import require
from edgeconv.methods.options import Options

OPENCV = require("opencv", "cpu")


@pytest.mark.parametrize("case", cpu_problems.EVERY_FILTER + cpu_problems.EVERY_TYPE, ids=str)
def test_every_filter_type_and_mode(case):
    cpu_problems.check_case(OPENCV, case)


@pytest.mark.parametrize("case", cpu_problems.GREY + cpu_problems.BANKS, ids=str)
def test_grey_pictures_and_banks(case):
    cpu_problems.check_case(OPENCV, case)


@pytest.mark.parametrize(("work", "stride", "border"), pairs_then_slow(cpu_problems.GEOMETRY))
def test_geometry(work, stride, border):
    for case in cpu_problems.geometry_cases(work, stride, border):
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


def test_refuses_what_is_not_contiguous():
    problem = cpu_problems.Case("laplacian8", "each", "uint8", "abs", shape=(8, 8)).problem()
    plan = OPENCV.prepare(problem, Options())
    wide = random_image(8, 16, "uint8")
    with pytest.raises(UsageError, match="C-contiguous"):
        plan.run(wide[:, ::2], np.empty(problem.output_shape, np.uint8))
