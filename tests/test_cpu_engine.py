"""The CPU's `sliding` and `im2col` against the oracle, and what they promise beyond being right."""

from __future__ import annotations

import cpu_problems
import numpy as np
import pytest
from cpu_problems import Case
from problems import random_image

from edgeconv.errors import MemoryLimitError, UsageError
from edgeconv.methods import require
from edgeconv.methods.base import Options

NAMES = ("sliding", "im2col")


def method(name):
    return require(name, "cpu")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", cpu_problems.EVERY_FILTER + cpu_problems.EVERY_TYPE, ids=str)
def test_every_filter_type_and_mode(name, case):
    cpu_problems.check_case(method(name), case)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("work", "stride", "border"), cpu_problems.GEOMETRY)
def test_geometry(name, work, stride, border):
    for case in cpu_problems.geometry_cases(work, stride, border):
        cpu_problems.check_case(method(name), case)
