"""The copies that bytes are held against: they copy all of them, and nothing beside."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from edgeconv.hardware.cpu.copying import STORES, UNIT_BYTES, MemoryCopy
from edgeconv.hardware.cpu.moving import UNIT_BYTES as MOVE_UNITS
from edgeconv.hardware.cpu.moving import MemoryMove
from edgeconv.hardware.cuda.floor import FLOOR_KERNEL, THREADS, grids
from edgeconv.runtime.devices import cpu, get_device


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


AMOUNTS = [(1, 1), (4000, 1000), (1000, 4000), (300_000, 34_000), (70_000, 0), (0, 9)]


@pytest.mark.parametrize("stores", STORES)
@pytest.mark.parametrize(("read", "written"), AMOUNTS)
@pytest.mark.parametrize("unit_bytes", MOVE_UNITS)
def test_every_byte_is_read_and_written(stores: str, read: int, written: int, unit_bytes: int) -> None:
    """A bit of the source comes out in the target or a sink; all of the target is written."""
    move = MemoryMove(read, written, stores, threads=2, unit_bytes=unit_bytes)
    assert read <= move.source.size
    assert written <= move.target.size
    rng = np.random.default_rng(read)
    for place in (0, read - 1, *rng.integers(0, max(read, 1), 5)) if read else ():
        move.source[:] = 0
        move.source[place] = 0x40
        move.target[:] = 0xEE
        move.run()
        assert 0x40 in np.bitwise_and(move.target, 0x40) or 0x40 in np.bitwise_and(move.sinks, 0x40)
        assert not (move.target[:written] == 0xEE).any()


def test_a_floor_reads_and_writes_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(cpu, "_best_seconds", lambda call: tried.append(call) or float(len(tried)))
    get_device("cpu").floor(40_000, 10_000)
    apart = len(tried)
    get_device("cpu").floor(40_000, 40_000)
    assert len(tried) - apart == apart + 1 + len(STORES), "and the plain copies where both are the same"
    assert all(call.__self__.source.size >= 40_000 > 4 * 10_000 - 1 for call in tried[:apart])


def test_the_processor_has_a_copier_for_every_size() -> None:
    for moved in (0, 1, 1000, 3_000_000):
        copy = get_device("cpu").copier(moved)
        gc.collect()  # what it copies from and to stays
        copy()


@pytest.mark.gpu
@pytest.mark.parametrize(("reads", "writes"), [(1, 1), (9000, 1000), (1000, 1000), (300, 4000)])
def test_the_kernel_reads_and_writes_every_word(reads: int, writes: int) -> None:
    """In grids of fewer and of more threads than words."""
    cupy = pytest.importorskip("cupy")
    from edgeconv.hardware.cuda.kernels import load

    source = np.random.default_rng(1).integers(0, 2**32, (reads, 4), np.uint32)
    expected = np.zeros((writes, 4), np.uint32)
    for first in range(0, reads, writes):
        part = source[first : first + writes]
        expected[: len(part)] |= part
    for blocks in (1, 7, 64):
        target = cupy.full((writes, 4), 0xEEEEEEEE, cupy.uint32)
        arguments = (cupy.asarray(source), target, np.int64(reads), np.int64(writes))
        load(FLOOR_KERNEL)((blocks,), (THREADS,), arguments)
        assert np.array_equal(target.get(), expected)


def test_grids_of_the_floor() -> None:
    assert grids(1, 132) == [1]
    assert grids(256 * 600, 132) == [528, 600]
