"""Which memory a plan's arrays may not share, and how much the plans of `convolve` may hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import edgeconv
from edgeconv.api.cache import PlanCache
from edgeconv.errors import UsageError

SHAPE = (3, 6, 4, 3)
PICTURE_BYTES = 6 * 4 * 3


@pytest.mark.parametrize(("stride", "out_shape"), [(1, SHAPE), (2, (3, 3, 2, 3))])
def test_an_output_may_touch_a_batch_and_not_lie_over_any_picture_of_it(
    stride: int, out_shape: tuple[int, ...]
) -> None:
    plan = edgeconv.plan(SHAPE, "uint8", method="sliding", device="cpu", channels="each", stride=stride)
    taken, written = 3 * PICTURE_BYTES, int(np.prod(out_shape))
    memory = np.zeros(taken + 2 * written, np.uint8)
    batch = memory[written : written + taken].reshape(SHAPE)
    for start in (0, written + taken):
        plan(batch, out=memory[start : start + written].reshape(out_shape))
    for start in (1, written, written + PICTURE_BYTES, written + taken - 1):
        with pytest.raises(UsageError, match="shares memory"):
            plan(batch, out=memory[start : start + written].reshape(out_shape))


def plan_of(held: int) -> Any:
    return SimpleNamespace(memory_bytes=held)


def test_convolve_keeps_plans_up_to_a_gibibyte_and_64_of_them() -> None:
    cache = PlanCache()
    for key in "abc":
        cache.get(key, lambda: plan_of(2**29))
    assert [plan.memory_bytes for plan in cache.plans()] == [2**29] * 3
    cache.get("d", lambda: plan_of(1))
    assert [plan.memory_bytes for plan in cache.plans()] == [2**29, 2**29, 1], "the oldest gave way"
    for number in range(70):
        cache.get(number, lambda number=number: plan_of(number))
    assert [plan.memory_bytes for plan in cache.plans()] == list(range(6, 70))
    cache.clear()
    assert cache.plans() == []
