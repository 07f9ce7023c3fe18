"""Forked children work too: they inherit the pool's count of threads, but not the threads."""

from __future__ import annotations

import multiprocessing
import sys

import numpy as np
import pytest

import edgeconv
from problems import random_image

SIDE = 1500
"""Large enough that a second thread is woken."""


def _edges(method: str) -> int:
    return int(edgeconv.convolve(random_image(SIDE, SIDE, "uint8"), "sobel", method, device="cpu").sum())


@pytest.mark.skipif(sys.platform != "linux", reason="forking is Linux's way")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["opencv", "sliding", "im2col"])
def test_a_forked_child_computes_the_same(method: str) -> None:
    expected = _edges(method)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_edges, [method] * 4).get(timeout=60)
    assert np.array_equal(found, [expected] * 4)
