"""What speeds are held against: copies that move all bytes and nothing beside, and a loop of multiply-adds."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from kernel_work import FLOORS, FloorWords, all_right, sanitizer_library

from edgeconv.hardware.cpu import device as cpu
from edgeconv.hardware.cpu.limits import CHAINS, STORES, UNIT_BYTES, moves, multiply_adds
from edgeconv.hardware.cuda.limits import FLOOR_KERNELS, ONE_WORD_EACH, READ_AND_WRITE, THREADS, grids
from edgeconv.hardware.devices import get_device

AMOUNTS = [
    *((size, size) for size in (1, 64, 255, 256, 257, UNIT_BYTES[0], UNIT_BYTES[0] + 1, 3 * UNIT_BYTES[1] - 100)),
    *((4000, 1000), (1000, 4000), (300_000, 34_000), (70_000, 0), (0, 9)),
]


@pytest.mark.parametrize("shape", range(len(STORES) * len(UNIT_BYTES)))
@pytest.mark.parametrize(("read", "written"), AMOUNTS)
def test_every_byte_is_read_and_written(shape: int, read: int, written: int) -> None:
    """A bit of the source comes out in the target or a sink; all of the target is written, and nothing beside it."""
    move = list(moves(read, written, [2]))[shape]
    assert read <= move.source.size
    assert written <= move.target.size
    rng = np.random.default_rng(read)
    whole = move.target.base  # the target is a part of it, from a cache line on
    whole[:] = 0xEE
    beside = whole.nbytes - move.target.nbytes
    for place in (0, read - 1, *rng.integers(0, max(read, 1), 5)) if read else ():
        move.source[:] = 0
        move.source[place] = 0x40
        move.target[:] = 0xEE
        move.run()
        assert 0x40 in np.bitwise_and(move.target, 0x40) or 0x40 in np.bitwise_and(move.sinks, 0x40)
        assert not (move.target[:written] == 0xEE).any()
        assert np.count_nonzero(whole == 0xEE) >= beside
    if read == written:
        move.source[:] = rng.integers(0, 256, move.source.size, np.uint8)
        before = move.source.copy()
        move.run()
        assert np.array_equal(move.target[:written], before[:read])
        assert np.array_equal(move.source, before)


def test_a_floor_reads_and_writes_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(cpu, "_seconds_of_some", lambda call: tried.append(call) or [float(len(tried))])
    get_device("cpu").floor(40_000, 10_000)
    apart = len(tried)
    get_device("cpu").floor(40_000, 40_000)
    assert len(tried) - apart == apart + 1, "and NumPy's copy where both are the same"
    assert all(call.__self__.source.size >= 40_000 > 4 * 10_000 - 1 for call in tried[:apart])


def test_the_processor_has_a_floor_for_every_size() -> None:
    for moved in (0, 1, 1000, 3_000_000):
        copy = get_device("cpu").floor(moved, moved)
        gc.collect()  # what it copies from and to stays
        copy()


@pytest.mark.gpu
@pytest.mark.parametrize("words", FLOORS, ids=str)
def test_the_kernels_of_the_floor_write_what_they_read(words: FloorWords) -> None:
    cupy = pytest.importorskip("cupy")
    from edgeconv.hardware.cuda.kernels import load

    launches = [(each, blocks) for each in FLOOR_KERNELS for blocks in words.grids(each, THREADS)]
    for variant, blocks in launches:
        target = cupy.full((words.writes, 4), 0xEEEEEEEE, cupy.uint32)
        arguments = (cupy.asarray(words.source()), target, np.int64(words.reads), np.int64(words.writes))
        load(variant)((blocks,), (THREADS,), arguments)
        assert np.array_equal(target.get(), words.expected(variant.entry))


@pytest.mark.skipif(sanitizer_library() is None, reason="needs g++ with AddressSanitizer on Linux (apt install g++)")
def test_the_kernels_of_the_floor_on_the_cpu(libraries: Path) -> None:
    all_right(FLOORS, libraries)


def test_launches_of_the_floor() -> None:
    assert grids(1, 1, 132) == [(READ_AND_WRITE, 1), (ONE_WORD_EACH, 1)]
    assert grids(256 * 5400, 256 * 600, 132) == [(READ_AND_WRITE, 528), (READ_AND_WRITE, 600), (ONE_WORD_EACH, 5400)]
    assert grids(1, 513, 132)[-1] == (ONE_WORD_EACH, 3)


def test_every_chain_ends_at_its_limit() -> None:
    """a ← a/2 + 1 goes to 2 from anywhere, and each worker that came in time stored its sum."""
    for threads in (1, 2):
        work, flops = multiply_adds(threads)
        work.run()
        (rows,) = (each for each in work.arguments.values() if isinstance(each, np.ndarray))
        assert {tuple(row) for row in rows} - {(0.0,) * rows.shape[1]} == {(2.0 * CHAINS,) * rows.shape[1]}
        assert flops == threads * multiply_adds(1)[1]
