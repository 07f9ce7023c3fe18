"""Pictures in pieces, for the tests of tiles."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from edgeconv.api.auto import Choice
from edgeconv.api.prepared import PreparedFilter
from edgeconv.core.choices import DeviceName
from edgeconv.core.request import Request
from edgeconv.core.timing import Stopwatch
from edgeconv.errors import UsageError
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods.options import Options
from edgeconv.run.rectangles import Tile, TilePlan
from edgeconv.run.sources import open_source
from edgeconv.run.sources.base import Reader, TileSource
from edgeconv.run.tiles import WindowFilter, filter_tiles, refuse_seams


class ArraySource(TileSource):
    """An array (HWC) as a source with the given chunks; counts what was loaded."""

    format = "array"

    def __init__(self, pixels: np.ndarray, chunk: tuple[int, int] | None = None) -> None:
        self.height, self.width, channels = pixels.shape
        super().__init__(Path("array"), channels, pixels.dtype, channels, rgb=False)
        self.chunk = chunk or pixels.shape[:2]
        self._pixels = pixels
        self.loaded: list[tuple[range, range]] = []

    def stored(self, rows: range, columns: range) -> np.ndarray:
        self.loaded.append((rows, columns))
        return self._pixels[rows.start : rows.stop, columns.start : columns.stop].copy()


def by_whole(pixels: np.ndarray, request: Request, method: str, device: DeviceName = "cpu") -> np.ndarray:
    """The output of the whole picture, before a second pass of `normalize`."""
    unfinished, choice = request.unfinished, Choice(method, device, "for a test")
    problem = unfinished.picture_problem(pixels.shape, pixels.dtype)
    out: np.ndarray = PreparedFilter(unfinished, problem, choice, Options()).run(pixels)
    return out


def by_tiles(
    source: TileSource,
    request: Request,
    tile: tuple[int, int],
    method: str,
    device: DeviceName = "cpu",
    kept_bytes: int = 2**20,
) -> np.ndarray:
    """The same put together from tiles of `tile` (rows, columns of the output)."""
    problem = request.picture_problem((source.height, source.width, source.channels), source.dtype)
    out = np.zeros(problem.output_shape, problem.output_dtype)
    written = np.zeros(problem.output_shape[:2], int)

    def handle(tile: Tile, window: np.ndarray, filtered: np.ndarray) -> None:
        place = tuple(slice(span.start, span.stop) for span in tile.rectangle)
        out[place] = tile.part_of(filtered)
        written[place] += 1

    work = WindowFilter(request, Choice(method, device, "a test"), Options(), source.dtype)
    tiles = TilePlan(*tile, kept_bytes, 0).tiles(problem)
    with ThreadPoolExecutor(2) as pool:
        reader = Reader(source, [each.window for each in tiles], kept_bytes, pool, 2)
        filter_tiles(reader, tiles, work, Stopwatch(), handle)
    assert (written == 1).all(), "a sample was not written exactly once"
    return out


def pixels_of(path: Path, rules: ReadRules = DEFAULT_RULES) -> tuple[np.ndarray, tuple[str, ...]]:
    """The picture in a file through its chunks, and its notes."""
    source = open_source(path, rules)
    out = np.zeros((source.height, source.width, source.channels), source.dtype)
    rows, columns = source.chunk
    try:
        for y, x in product(range(0, source.height, rows), range(0, source.width, columns)):
            place = out[y : y + rows, x : x + columns]
            part = source.load(range(y, y + place.shape[0]), range(x, x + place.shape[1]))
            assert (part.shape, part.dtype) == (place.shape, out.dtype)
            place[...] = part
    finally:
        source.close()
    return out, source.notes


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Byte for byte."""
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    bits = np.dtype(f"u{expected.dtype.itemsize}")
    differs = np.argwhere(np.ascontiguousarray(got).view(bits) != np.ascontiguousarray(expected).view(bits))
    if len(differs):
        place = tuple(differs[0].tolist())
        raise AssertionError(f"{len(differs)} samples differ, first {place}: {got[place]} and not {expected[place]}")


def shows_seams(request: Request, method: str, dtype: Any, device: DeviceName = "cpu") -> bool:
    """Whether a method is refused, as its tiles might differ from the whole."""
    work = WindowFilter(request, Choice(method, device, "drawn"), Options(), np.dtype(dtype))
    plan = work.plan((64, 64, 3))
    try:
        refuse_seams(Choice(method, device, "drawn"), plan.problem, plan)
    except UsageError:
        return True
    return False
