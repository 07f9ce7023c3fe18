"""The kernel whose time is the floor of a convolution (floor.cu); apart from the device, which needs CuPy."""

from __future__ import annotations

from edgeconv.hardware.cuda.kernels import KernelVariant

WORD_BYTES = 16
THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = (4, 8, 16)
"""Grids that are tried, beside one with a thread for each word that is written."""

FLOOR_KERNEL = KernelVariant("hardware/cuda/floor.cu", "read_and_write", ())


def words(size_bytes: int) -> int:
    """Words of an array, at least one."""
    return max(1, -(-size_bytes // WORD_BYTES))


def grids(written_words: int, multiprocessors: int) -> list[int]:
    """Blocks of each launch that is tried."""
    most = -(-written_words // THREADS)
    return sorted({most, *(min(most, blocks * multiprocessors) for blocks in BLOCKS_PER_MULTIPROCESSOR)})


def variants() -> tuple[KernelVariant, ...]:
    """Every kernel that the device may ask for."""
    return (FLOOR_KERNEL,)
