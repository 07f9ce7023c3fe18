"""Pictures in pieces, for the tests of tiles."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from edgeconv.api.auto import Choice
from edgeconv.api.workspaces import PreparedFilter
from edgeconv.core.choices import DeviceName
from edgeconv.core.request import Request
from edgeconv.methods.options import Options
from edgeconv.run.tiled.grid import Tile, WindowRules
from edgeconv.run.tiled.pipeline import Clock, WindowFilter, for_each_tile
from edgeconv.run.tiled.reader import Reader
from edgeconv.run.tiled.sources.base import ChunkLayout, TileSource

THREADS = 2


class ArraySource(TileSource):
    """An array (HWC) as a source with the given chunks; counts what was loaded."""

    def __init__(self, pixels: np.ndarray, row_cuts: tuple[int, ...], column_cuts: tuple[int, ...]) -> None:
        super().__init__(Path("array"))
        self._pixels = pixels
        self.loaded: list[tuple[int, int]] = []
        height, width, channels = pixels.shape
        self.layout = ChunkLayout(
            height, width, channels, pixels.dtype, "array", (), row_cuts, column_cuts, pixels[0, 0].nbytes
        )

    def load(self, row: int, column: int) -> np.ndarray:
        self.loaded.append((row, column))
        rows, columns = self.span(row, column)
        return self._pixels[rows.start : rows.stop, columns.start : columns.stop].copy()

    def close(self) -> None:
        pass


def in_one_chunk(pixels: np.ndarray) -> ArraySource:
    return ArraySource(pixels, (0, pixels.shape[0]), (0, pixels.shape[1]))


def by_whole(pixels: np.ndarray, request: Request, method: str, device: DeviceName = "cpu") -> np.ndarray:
    """The output of the whole picture, before a second pass of `normalize`."""
    choice = Choice(method, device, "for a test")
    out: np.ndarray = PreparedFilter(request.unfinished, pixels.shape, pixels.dtype, choice, Options()).run(pixels)
    return out


def by_tiles(
    source: TileSource,
    request: Request,
    tile: tuple[int, int],
    method: str,
    device: DeviceName = "cpu",
    shifted: bool = False,
    keep_bytes: int = 2**20,
) -> np.ndarray:
    """The same put together from tiles of `tile` (rows, columns of the output)."""
    layout = source.layout
    problem = request.picture_problem((layout.height, layout.width, layout.channels), layout.dtype)
    reach = None if request.chain is None else request.chain.reach
    rules = WindowRules(request.stride, request.padding, request.border, reach)
    grid = rules.grid((layout.height, layout.width), tile, shifted)
    out = np.zeros(problem.output_shape, problem.output_dtype)
    written = np.zeros(problem.output_shape[:2], int)

    def handle(tile: Tile, padded: np.ndarray, raw: np.ndarray) -> None:
        out[tile.rows.start : tile.rows.stop, tile.columns.start : tile.columns.stop] = raw
        written[tile.rows.start : tile.rows.stop, tile.columns.start : tile.columns.stop] += 1

    clock = Clock()
    with ThreadPoolExecutor(THREADS) as pool:
        reader = Reader(source, grid, keep_bytes, pool, THREADS)
        work = WindowFilter(request, Choice(method, device, "a test"), Options(), layout.dtype, clock)
        for_each_tile(grid, reader, work, handle, clock)
    assert (written == 1).all(), "a sample was not written exactly once"
    return out


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Byte for byte."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    bits = np.dtype(f"u{expected.dtype.itemsize}")
    differs = np.argwhere(np.ascontiguousarray(got).view(bits) != np.ascontiguousarray(expected).view(bits))
    if len(differs):
        place = tuple(differs[0].tolist())
        raise AssertionError(f"{len(differs)} samples differ, first {place}: {got[place]} and not {expected[place]}")


def random_cuts(rng: Any, size: int) -> tuple[int, ...]:
    """Random cuts of `size`."""
    inner = np.unique(rng.integers(1, size, rng.integers(0, 6))) if size > 1 else []
    return (0, *(int(cut) for cut in inner), size)
