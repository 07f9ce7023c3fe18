"""canny on CUDA: one pass over the picture finds the edge pixels, three over their map do the hysteresis.

    canny_thin.cu         smoothing, gradient and thinning of uint8 pictures, everything in registers
    canny_tile.cu         the same by tiles in shared memory, for uint16 and for pictures narrower than a thread's reach
    canny_hysteresis.cu   what strong edge pixels are connected to, and the expansion to bytes
    canny_map.cuh         the map between them, two bits a pixel

All work stays on the GPU and the number of launches is always four, whatever the picture: pieces of edges that leave
a tile are joined in a forest, not followed from tile to tile. A batch of pictures is one run. The result is byte for
byte that of edgeconv/core/canny.py.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from edgeconv.core.canny import BLURS
from edgeconv.core.chains import Chain, ChainProblem
from edgeconv.core.exactness import WHOLE
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
from edgeconv.methods.base import check_workspace
from edgeconv.methods.cuda.kernel_args import WARP, CudaPlan, Defines
from edgeconv.methods.options import Options

# --- kernels ----------------------------------------------------------------------------------------------------

THIN_PIXELS = 8
"""Of a thread of canny_thin.cu, and of a unit of the map."""
THIN_REACH = 4
"""Pixels that it reads on either side: a picture at least that much wider has at most one edge in a thread's row."""
THIN_THREADS = 128
TILE_WIDTH, TILE_HEIGHT, TILE_THREADS = 32, 16, 256
"""Of canny_tile.cu."""
SIDE = 64
"""Of the tiles of canny_hysteresis.cu, which are a warp's."""
HYSTERESIS_WARPS = 4
NODES = 4 * SIDE
"""Border pixels of a tile; corners are two."""

LARGEST_PAIR = 2047
"""The largest whole number of a pair (canny_thin.cu); an L1 magnitude of 8 bits is at most 2,040."""
LARGEST_SQUARE = 1 << 22
"""Above every squared magnitude of 8 bits, 2,080,800."""
SQUARE_UNIT = 2.0**-48
"""What squared magnitudes of pairs, which count in 2^-24, count in."""
LARGEST_LIMIT = 1 << 62
"""Above every magnitude of 16 bits, squared or not."""


def _resident_blocks(channels: int, chain: Chain, aligned: bool) -> int:
    """Blocks of canny_thin.cu that must fit a multiprocessor: as many as spill no registers on any architecture."""
    if channels > 1 or (chain.l2 and chain.blur == max(BLURS) and not aligned):
        return 2
    return 3 if chain.l2 or chain.blur else 4


def _shared_defines(channels: int, chain: Chain) -> Defines:
    return (("CHANNELS", channels), ("BLUR", chain.blur), *((("L2", 1),) if chain.l2 else ()))


def thin_variant(channels: int, chain: Chain, aligned: bool) -> KernelVariant:
    """The first pass of uint8 pictures; `aligned` where the first pixel of every thread starts on 8 bytes."""
    speed = (("THREADS", THIN_THREADS), ("MIN_BLOCKS", _resident_blocks(channels, chain, aligned)))
    defines = (*_shared_defines(channels, chain), ("ALIGNED", int(aligned)), *speed)
    return KernelVariant("methods/cuda/canny_thin.cu", "canny_thin", defines)


def tile_variant(dtype: str, channels: int, chain: Chain) -> KernelVariant:
    """The first pass of any picture."""
    defines = (("SAMPLE", dtype), *_shared_defines(channels, chain))
    return KernelVariant("methods/cuda/canny_tile.cu", "canny_tile", defines)


# --- plans ------------------------------------------------------------------------------------------------------


def chain_reason(problem: ChainProblem) -> str | None:
    """Why there are no kernels for a chain, or None: for canny, with or without one smoothing, there are."""
    return None if problem.chain.is_canny else "it has kernels for canny, not for these stages"


class CannyPlan(CudaPlan):
    """Four launches: one pass over the picture, three over the map of its edge pixels.

    Of a batch all pictures in one run, one behind another.
    """

    def __init__(self, problem: ChainProblem, options: Options, pictures: int = 1) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        height, width, _ = problem.input_shape
        workspace = workspace_bytes_of(height, width, pictures)
        check_workspace("sliding", workspace, options, or_else="use --method opencv")
        by_strips = problem.dtype == np.uint8 and width >= THIN_PIXELS + THIN_REACH
        choice = {"first_pass": "strips" if by_strips else "tiles"}
        super().__init__(problem, workspace, None, 4, WHOLE, choice, pictures)

        shapes = _workspace(height, width, pictures)
        self._map, self._borders, self._parents = (cupy.empty(shape, its_type) for shape, its_type in shapes)
        self._late = -width % THIN_PIXELS if by_strips else 0
        tiles_across, tiles_down = -(-width // SIDE), -(-height // SIDE)
        geometry = np.array((height, width, pictures, tiles_across, tiles_down, self._late), np.int32)
        blocks, threads = -(-tiles_across * tiles_down * pictures // HYSTERESIS_WARPS), (HYSTERESIS_WARPS * WARP, 1)
        label, join, expand = (
            load(KernelVariant("methods/cuda/canny_hysteresis.cu", f"canny_{name}"))
            for name in ("label", "join", "expand")
        )
        parents = np.uint64(self._parents.data.ptr)
        self._label = PackedLaunch(label, blocks, threads, parents, geometry)
        self._join = PackedLaunch(join, blocks, threads, geometry)
        self._expand = PackedLaunch(expand, blocks, threads, parents, geometry)
        self._first = cache(self._strips) if by_strips else cache(self._by_tiles)
        self._launches(0, 0)

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        for launch, source, target in self._launches(image_address, out_address):
            launch.at(source, target, stream)

    def _launches(self, image_address: int, out_address: int) -> tuple[tuple[Any, int, int], ...]:
        """In their order: each with the addresses that it reads and writes."""
        edges, borders = self._map.data.ptr, self._borders.data.ptr
        aligned = self.problem.width % THIN_PIXELS == 0 and image_address % THIN_PIXELS == 0
        return (
            (self._first(aligned), image_address, edges),
            (self._label, edges, borders),
            (self._join, borders, self._parents.data.ptr),
            (self._expand, edges, out_address),
        )

    def _strips(self, aligned: bool) -> Any:
        from edgeconv.hardware.cuda.launch import PackedLaunch

        height, width, channels = self.problem.input_shape
        kernel = load(thin_variant(channels, self.problem.chain, aligned))
        columns = -(-width // THIN_PIXELS)
        at_once = resident_blocks(kernel, THIN_THREADS) * THIN_THREADS
        rows = strip_rows(height, columns * self.pictures, at_once, self.problem.chain.blur)
        strips = -(-height // rows)
        sizes = (height, width, self.pictures, columns, strips, rows, self._map.shape[2])
        geometry = np.array((*sizes, *limits_of_pairs(self.problem.chain)), np.uint32)
        blocks = -(-columns * strips * self.pictures // THIN_THREADS)
        return PackedLaunch(kernel, blocks, (THIN_THREADS, 1), geometry)

    def _by_tiles(self, aligned: bool) -> Any:
        from edgeconv.hardware.cuda.launch import PackedLaunch

        height, width, channels = self.problem.input_shape
        kernel = load(tile_variant(self.problem.dtype.name, channels, self.problem.chain))
        across, down = -(-width // TILE_WIDTH), -(-height // TILE_HEIGHT)
        low, high = (np.int64(min(limit, LARGEST_LIMIT)) for limit in self.problem.chain.limits)
        geometry = np.array((height, width, self.pictures, across, down, self._map.shape[2]), np.int32)
        return PackedLaunch(kernel, across * down * self.pictures, (TILE_THREADS, 1), geometry, low, high)


def _workspace(height: int, width: int, pictures: int) -> tuple[tuple[tuple[int, ...], type[np.generic]], ...]:
    """Shapes and types: the map, the border pixels of tiles (all, and those not decided), and the parents of nodes."""
    tiles_across, tiles_down = -(-width // SIDE), -(-height // SIDE)
    tiles = tiles_across * tiles_down * pictures
    return (
        ((pictures, height, tiles_across * SIDE // THIN_PIXELS), np.uint16),
        ((tiles, 2, NODES // WARP), np.uint32),
        ((1 + tiles * NODES,), np.int32),
    )


def workspace_bytes_of(height: int, width: int, pictures: int = 1) -> int:
    """What a plan for such pictures holds, without making it."""
    return sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in _workspace(height, width, pictures))


def limits_of_pairs(chain: Chain) -> tuple[int, int]:
    """The lower threshold and how far the upper one is above it, as canny_thin.cu takes them."""
    low, high = chain.limits
    if chain.l2:
        low, high = min(low, LARGEST_SQUARE), min(high, LARGEST_SQUARE)
        bits = np.array([low * SQUARE_UNIT, (high - low) * SQUARE_UNIT], np.float32).view(np.uint32)
        return int(bits[0]), int(bits[1])
    low, high = min(low, LARGEST_PAIR), min(high, LARGEST_PAIR)
    return low * 0x10001, (high - low) * 0x10001


ROWS_AROUND = 3
"""What the rows above and below a strip cost, in rows of its own: nothing is thinned there."""
LONGEST_STRIP = 64


def strip_rows(height: int, columns: int, at_once: int, blur: int) -> int:
    """Rows of a strip, such that the threads that run at once have done all of them soonest.

    `columns` are threads side by side, of all pictures; `at_once` are threads that the GPU holds.
    """
    most = min(height, LONGEST_STRIP)

    def cost(rows: int) -> int:
        waves = -(-columns * -(-height // rows) // at_once)
        return waves * (rows + ROWS_AROUND + blur // 2)

    return min(range(most, 0, -1), key=cost)
