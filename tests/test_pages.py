"""Memory of large results: blocks of their own, used again when the last array on them is gone."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest
from meet import run_program

import edgeconv
from edgeconv.api.arrays import ALIGNED_BYTES, aligned_empty
from edgeconv.hardware import pages
from edgeconv.hardware.pages import LARGE_PAGE_BYTES, LEAST_BYTES, MOST_WAITING, large_empty

U8 = np.dtype("uint8")


@pytest.fixture(autouse=True)
def _none_waiting():
    pages._WAITING.clear()
    yield
    pages._WAITING.clear()
    pages._LIMIT.clear()


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


@pytest.mark.parametrize("size", [LEAST_BYTES, LEAST_BYTES + 1, 3 * LARGE_PAGE_BYTES - 1])
def test_a_block_starts_on_a_large_page_and_can_be_written_to_its_last_byte(size: int) -> None:
    block = large_empty(size)
    assert (block.dtype, block.size, address(block) % LARGE_PAGE_BYTES) == (U8, size, 0)
    block[:] = 0x5A
    assert (block == 0x5A).all()


def test_memory_comes_back_only_when_the_last_view_is_gone() -> None:
    block = large_empty(LEAST_BYTES)
    place = address(block)
    view = block.reshape(-1, 2)[5:, 1:]
    del block
    gc.collect()
    other = large_empty(LEAST_BYTES)
    assert address(other) != place
    del view
    gc.collect()
    assert address(large_empty(LEAST_BYTES - 5)) == place  # rounded up to the same pages


def test_two_results_never_share_memory() -> None:
    image = np.random.default_rng(1).integers(0, 256, (1024, 1024, 3), np.uint8)
    plan = edgeconv.plan(image.shape, "uint8", filter="laplacian8", channels="each", method="sliding", device="cpu")
    results = [plan(image) for _ in range(6)]
    places = sorted(address(result) for result in results)
    assert all(later - place >= results[0].nbytes for place, later in pairwise(places))
    expected = results[0].copy()
    del results[2:]
    again = [plan(255 - image) for _ in range(4)]
    assert np.array_equal(results[0], expected)
    assert np.array_equal(results[1], expected)
    assert all(np.array_equal(result, again[0]) for result in again)
    assert all(result.flags.writeable and result.flags.c_contiguous and result.flags.aligned for result in again)


def test_few_blocks_wait_and_none_that_is_very_large() -> None:
    held = [large_empty(LEAST_BYTES + number * LARGE_PAGE_BYTES) for number in range(MOST_WAITING + 3)]
    held.append(large_empty(pages.limit_bytes() + 1))
    while held:
        del held[0]
    gc.collect()
    assert [block.size_bytes for block in pages._WAITING] == [
        LEAST_BYTES + number * LARGE_PAGE_BYTES for number in range(3, MOST_WAITING + 3)
    ]


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 9, 3), (1000, 1000, 3)])
def test_results_of_every_size_start_on_a_cache_line(shape: tuple[int, ...]) -> None:
    array = aligned_empty(shape, np.dtype("float32"))
    assert (array.shape, address(array) % ALIGNED_BYTES, array.flags.c_contiguous) == (shape, 0, True)


def test_a_system_without_advice_gives_memory_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MADV_HUGEPAGE", "MADV_FREE"):
        monkeypatch.delattr(pages.mmap, name, raising=False)
    block = large_empty(LEAST_BYTES)
    block[:] = 1
    del block
    assert len(pages._WAITING) == 1


SCRIPT_THAT_A_MODULE_HOLDS = """
import numpy as np, edgeconv
from edgeconv.hardware.cpu import jit
found = jit.processor()
jit.processor = lambda: found
out = edgeconv.convolve(np.zeros((1000, 1000, 3), np.uint8), device="cpu")
"""
"""The function keeps the script's names, and with them its arrays, until the package's modules are gone."""


def test_results_that_are_there_when_the_interpreter_ends_say_nothing() -> None:
    done = run_program(SCRIPT_THAT_A_MODULE_HOLDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_memory_that_is_kept_is_seen_bounded_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert edgeconv.result_memory() == (256 * 2**20, 0)
    blocks = [large_empty(size * LARGE_PAGE_BYTES) for size in (2, 3)]
    while blocks:
        del blocks[0]
    assert edgeconv.result_memory().held_bytes == 5 * LARGE_PAGE_BYTES
    assert edgeconv.result_memory(4 * LARGE_PAGE_BYTES).held_bytes == 3 * LARGE_PAGE_BYTES, "the oldest goes"
    assert edgeconv.result_memory("2M") == (2 * 2**20, 0)
    blocks.append(large_empty(LEAST_BYTES + 1))
    blocks.clear()
    assert edgeconv.result_memory().held_bytes == 0, "larger than the limit"
    with pytest.raises(edgeconv.EdgeconvError, match="limit 'lots' is not a number of bytes"):
        edgeconv.result_memory("lots")


def test_the_environment_says_how_much_is_kept() -> None:
    code = "import edgeconv; print(*edgeconv.result_memory())"
    assert run_program(code, EDGECONV_RESULT_MEMORY="3M").stdout.split() == [str(3 * 2**20), "0"]
    assert "EDGECONV_RESULT_MEMORY 'x' is not a number" in run_program(code, EDGECONV_RESULT_MEMORY="x").stderr


def test_more_than_the_system_has_is_a_memory_error() -> None:
    for size in (2**60, 2**64):  # more than an address space, and than a number of a mapping
        with pytest.raises(MemoryError):
            large_empty(size)
