"""A plan of generated code: tiles and strips, tables of borders, scratch, threads. No pixel is touched here.

Both CPU methods use it; they differ in the lowering and in whether the code copies columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, bands, border_indices
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.cpu.emit import SCALAR_BYTES
from edgeconv.methods.base import AddressPlan, check_workspace
from edgeconv.methods.cpu import banks, division, rowcode
from edgeconv.methods.cpu.arrays import address_of, check_arrays
from edgeconv.methods.cpu.layout import (
    WIDEST_VECTOR_STRIDE,
    Argument,
    Pick,
    RowLayout,
    TileFields,
    make_layout,
    passes,
    reach,
    tap_step,
)
from edgeconv.methods.cpu.lowering import ARITHMETIC_OF_SUM, Lowering
from edgeconv.methods.options import Options

STREAMING_BYTES = 8 * 2**20
"""Bytes above which stores go past the caches and loads are asked for early, by `moves_past_caches`."""

IMAGE_ADDRESS, OUT_ADDRESS = int(Argument.IMAGE_ADDRESS), int(Argument.OUT_ADDRESS)


@dataclass(frozen=True)
class CodeShape:
    """How a method wants its code: see rowcode."""

    tile_pixels: int
    columns: bool


def moves_past_caches(problem: Problem) -> bool:
    """Whether outputs are stored past the caches: picture and output are too large to be found there again.

    Above stride 1 far less is written than read, and only the output counts: on machines with two and with 16 cores
    storing smaller ones into the caches was faster.
    """
    moved_bytes = problem.output_bytes + (problem.input_bytes if problem.stride == 1 else 0)
    return moved_bytes > STREAMING_BYTES


@cache
def code_for(lowering: Lowering, layout: RowLayout, processor: jit.Processor) -> jit.Compiled:
    """The compiled function; compiled once per process for each lowering."""
    return jit.compile_module(rowcode.write(lowering, layout), processor)


def cannot_read(problem: PictureProblem) -> str | None:
    """Why this processor has no instructions for pictures of a type; None where it has."""
    lacks_half = problem.dtype == np.float16 and not jit.processor().has_half
    return "this processor does not convert float16" if lacks_half else None


class EnginePlan(AddressPlan):
    """One problem, compiled, with its tables and its workers' scratch."""

    problem: Problem

    def __init__(self, name: str, problem: Problem, lowering: Lowering, options: Options, shape: CodeShape) -> None:
        super().__init__(problem)
        processor = jit.processor()
        layout = make_layout(lowering, processor, shape.tile_pixels, shape.columns)

        tiles, picks = _tables(problem, lowering, layout)
        if not shape.columns and _reads_directly(lowering, layout, tiles):
            lowering = replace(lowering, direct=True)
        seconds = division.seconds_alone(problem, lowering, layout)
        strips = division.STRIPS_OF_ROWS_APART if layout.row_by_row else division.STRIPS_PER_THREAD
        divided = division.divide(problem.output_height, seconds, options.threads, strips)
        self._threads, strip_rows = divided.threads, divided.strip_rows
        units = -(-problem.output_height // strip_rows) * (1 if layout.row_by_row else len(tiles))
        self.workspace_bytes = layout.scratch_bytes * self._threads
        most_threads = options.workspace_limit_bytes // layout.scratch_bytes
        fewer = f"use --threads {most_threads}" if most_threads else ""
        check_workspace(name, self.workspace_bytes, options, fewer)

        self.arithmetic = ARITHMETIC_OF_SUM[lowering.sum]
        self._code = code_for(lowering, layout, processor)
        rows = border_indices(problem.height, problem.padding, problem.border)
        # The code looks one output row ahead, and there is none after the last.
        self._source_rows = np.pad(rows, (0, problem.stride), mode="edge").astype(np.int32)
        self._tiles, self._picks = tiles, picks
        self._passes, self._weights = banks.tables(problem, lowering, layout)
        self._scratch = jit.aligned_zeros(self.workspace_bytes)
        self._arguments = np.zeros(len(Argument), np.int64)
        constant = {
            Argument.UNITS: units,
            Argument.TILES_PER_STRIP: len(tiles),
            Argument.STRIP_ROWS: strip_rows,
            Argument.OUT_ROWS: problem.output_height,
            Argument.IMAGE_ROW_SAMPLES: problem.width * problem.in_channels,
            Argument.OUT_ROW_SAMPLES: problem.output_width * lowering.stored_channels,
            Argument.SOURCE_ROWS_ADDRESS: self._source_rows.ctypes.data,
            Argument.TILES_ADDRESS: self._tiles.ctypes.data,
            Argument.PICKS_ADDRESS: self._picks.ctypes.data,
            Argument.SCRATCH_ADDRESS: self._scratch.ctypes.data,
            Argument.PASSES_ADDRESS: self._passes.ctypes.data,
            Argument.WEIGHTS_ADDRESS: self._weights.ctypes.data,
        }
        for argument, value in constant.items():
            self._arguments[argument] = value
        self._arguments_address = self._arguments.ctypes.data
        self._words = memoryview(self._arguments.data)  # three times as fast to write as the array
        self._alone = self._code.function(rowcode.ALONE, 1)
        self._job = crew.CrewJob(
            self._code,
            rowcode.ENTRY_POINT,
            self._arguments_address,
            units,
            asked=options.threads,
            most_threads=self._threads,
            sleepers=divided.sleepers,
        )
        self.choice = {
            "forms": ", ".join(lowering.forms) or "plain sums",
            "collapsed": lowering.collapsed,
            "flat_rows": lowering.flat,
            "different_outputs": lowering.different_outputs,
            "passes": passes(lowering, layout),
            "outputs_side_by_side": lowering.bank is not None,
            "multiply_adds_per_pixel": lowering.multiply_adds,
            "arithmetic": lowering.sum,
            "threads": self._threads,
            "native_threads": crew.unavailable_reason() or "yes",
            "tile_pixels": layout.tile_pixels,
            "strip_rows": strip_rows,
            "reads_picture_directly": lowering.direct,
            "streaming_stores": lowering.streaming,
            "vector_bytes": processor.vector_bytes,
            "processor": processor.name,
            **jit.versions(),
        }

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)
        self.run_at(address_of(image), address_of(out))

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        arguments = self._words
        arguments[IMAGE_ADDRESS] = image_address
        arguments[OUT_ADDRESS] = out_address
        if self._threads == 1:
            self._alone(self._arguments_address)
        else:
            self._job.run()


def _tables(problem: Problem, lowering: Lowering, layout: RowLayout) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Tiles of an output row and the picks of each.

    Where the lowering is flat, positions are samples: three for a pixel, or one of a grey picture.
    """
    columns = border_indices(problem.width, problem.padding, problem.border)
    width, padding, outputs = problem.width, problem.padding, problem.output_width
    if lowering.flat:
        step = tap_step(lowering)
        samples = np.arange(step)
        columns = np.where(columns[:, None] == OUTSIDE, OUTSIDE, columns[:, None] * step + samples).ravel()
        width, padding, outputs = width * step, padding * step, outputs * step
    tiles: list[list[int]] = []
    picks: list[NDArray[np.int64]] = []
    picked = 0
    longest = -(-outputs // -(-outputs // layout.tile_pixels))
    if longest < outputs:  # else the last block of every tile is computed in part by the one before it too
        longest = min(layout.tile_pixels, -(-longest // layout.block_pixels) * layout.block_pixels)
    for start, stop in bands(outputs, longest):
        count = stop - start
        groups, source_start = _whole_groups(start, count, width, padding, lowering, layout)
        tile_picks = _picks(start, count, columns, groups, lowering, layout)
        fields = {
            TileFields.OUT_START: start,
            TileFields.OUT_COUNT: count,
            TileFields.GROUPS_START: groups.start,
            TileFields.GROUPS_STOP: groups.stop,
            TileFields.SOURCE_START: source_start,
            TileFields.PICKS_START: picked,
            TileFields.PICKS_STOP: picked + len(tile_picks),
        }
        tiles.append([fields[name] for name in TileFields])
        picks.append(tile_picks)
        picked += len(tile_picks)
    return np.array(tiles, np.int64), np.ascontiguousarray(np.concatenate(picks), np.int32)


def _reads_directly(lowering: Lowering, layout: RowLayout, tiles: NDArray[np.int64]) -> bool:
    """Whether flat rows can be read where they lie: large pictures, whose tiles are longer than a block inside.

    What of a tile lies outside is one block at each end, so wide paddings are staged; and its taps that lie inside are
    one vector, so short registers stage too.
    """
    beyond = reach(lowering)
    start, stop = tiles[:, TileFields.GROUPS_START], tiles[:, TileFields.GROUPS_STOP] - beyond
    long_enough = bool((stop - start >= layout.block_pixels).all())
    narrow = bool((np.maximum(start, tiles[:, TileFields.OUT_COUNT] - stop) <= layout.block_pixels).all())
    in_a_vector = layout.vector_bytes // SCALAR_BYTES[lowering.source] >= beyond
    in_place = lowering.flat and lowering.streaming and lowering.staged == lowering.source
    return in_place and long_enough and narrow and in_a_vector


def _whole_groups(
    start: int, count: int, width: int, padding: int, lowering: Lowering, layout: RowLayout
) -> tuple[range, int]:
    """Positions of a tile whose `stride` source pixels all lie inside the picture, and the first one's pixel."""
    stride = lowering.stride
    first = max(0, -(-padding // stride) - start)
    last = min((padding + width) // stride - start, _staged_count(0, count, lowering))
    lanes = layout.vector_bytes // SCALAR_BYTES[lowering.source]
    if stride > WIDEST_VECTOR_STRIDE or last - first < lanes:
        return range(0), 0
    return range(first, last), (start + first) * stride - padding


def _picks(
    start: int, count: int, columns: NDArray[np.intp], groups: range, lowering: Lowering, layout: RowLayout
) -> NDArray[np.int64]:
    """(picks, 2): every staged position that the whole groups leave out, of every phase."""
    found = []
    for phase in range(lowering.phases):
        index = np.arange(_staged_count(phase, count, lowering))
        index = index[(index < groups.start) | (index >= groups.stop)]
        padded = (start + index) * lowering.stride + phase
        pick = np.empty((len(index), len(Pick)), np.int64)
        pick[:, Pick.POSITION] = phase * layout.pitch + index
        pick[:, Pick.SOURCE] = columns[padded]
        found.append(pick)
    return np.concatenate(found)


def _staged_count(phase: int, count: int, lowering: Lowering) -> int:
    """Positions of a phase that `count` outputs read: one more for every kernel column beyond the first."""
    columns = range(phase, KERNEL_SIZE, lowering.stride)
    return count + (len(columns) - 1) * tap_step(lowering)
