"""The copies that bytes are held against: they copy all of them, and nothing beside."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from edgeconv.hardware.cpu.copying import STORES, UNIT_BYTES, MemoryCopy
from edgeconv.runtime.devices import get_device


@pytest.mark.parametrize("stores", STORES)
@pytest.mark.parametrize("size", [1, 64, 255, 256, 257, UNIT_BYTES, UNIT_BYTES + 1, 3 * UNIT_BYTES - 100, 2_000_001])
def test_every_byte_is_copied(stores: str, size: int) -> None:
    copy = MemoryCopy(size, stores)
    assert size <= copy.size_bytes < size + 256
    copy.source[:] = np.random.default_rng(size).integers(0, 256, copy.size_bytes, np.uint8)
    before = copy.source.copy()
    whole = copy.target.base  # the target is a part of it, which starts on a cache line
    start = copy.target.ctypes.data - whole.ctypes.data
    whole[:start] = whole[start + copy.size_bytes :] = 0x5A
    copy.run()
    assert np.array_equal(copy.target, before)
    assert np.array_equal(copy.source, before)
    assert (whole[:start] == 0x5A).all()
    assert (whole[start + copy.size_bytes :] == 0x5A).all()


def test_the_processor_has_a_copier_for_every_size() -> None:
    for moved in (0, 1, 1000, 3_000_000):
        copy = get_device("cpu").copier(moved)
        gc.collect()  # what it copies from and to stays
        copy()
