"""The kernels whose times limit a GPU's speeds (limits.cu); apart from the device, which needs CuPy."""

from __future__ import annotations

from edgeconv.hardware.cuda.kernels import KernelVariant

WORD_BYTES = 16
SECTOR_BYTES = 32
"""What memory gives at once: a quarter of a cache line."""
THREADS = 256
BLOCKS_PER_MULTIPROCESSOR = (4, 8, 16)
"""Grids that are tried, beside one with a thread for each word that is written."""

FMA_CHAINS = 8
FMA_STEPS = 4096
FMA_BLOCKS_PER_MULTIPROCESSOR = 8

READ_AND_WRITE, ONE_WORD_EACH, FMA_KERNEL = (
    KernelVariant("hardware/cuda/limits.cu", entry, (("CHAINS", FMA_CHAINS), ("STEPS", FMA_STEPS)))
    for entry in ("read_and_write", "one_word_each", "fma_chains")
)
FLOOR_KERNELS = (READ_AND_WRITE, ONE_WORD_EACH)


def words(size_bytes: int) -> int:
    """Words of an array, at least one."""
    return max(1, -(-size_bytes // WORD_BYTES))


def grids(read_words: int, written_words: int, multiprocessors: int) -> list[tuple[KernelVariant, int]]:
    """Every launch that is tried: a kernel and its blocks."""
    most = -(-written_words // THREADS)
    blocks = sorted({most, *(min(most, blocks * multiprocessors) for blocks in BLOCKS_PER_MULTIPROCESSOR)})
    words_each = -(-max(read_words, written_words) // THREADS)
    return [*((READ_AND_WRITE, count) for count in blocks), (ONE_WORD_EACH, words_each)]


def variants() -> tuple[KernelVariant, ...]:
    """Every kernel that the device may ask for."""
    return (*FLOOR_KERNELS, FMA_KERNEL)
