"""The CPU's `sliding` and `im2col`: generated code over tiles of rows, with tables of borders.

    sliding   rows are read once, and never more than three of them are materialised; what is equal is computed once
              (core/lowering.py), and code is generated for the weights, the stride and the processor (rows.py)
    im2col    columns in memory, then a matrix product with the weights. The column matrix of a whole picture would be
              27 times its pixels; a band of it is 27 rows (one per tap) of up to `IM2COL_TILE_PIXELS`, which stay in
              the L2 cache, and the product keeps rows of sums in registers while it goes down the taps. Nothing is
              shared: equal kernels are multiplied as often as they occur, so the time is that of the method

HWC in and out; threads take strips of rows (division.py), and results do not depend on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.chains import ChainProblem
from edgeconv.core.geometry import KERNEL_SIZE, OUTSIDE, bands, border_indices
from edgeconv.core.lowering import lower
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.caches import CACHE_LINE_BYTES
from edgeconv.methods.base import Method, Plan, check_workspace
from edgeconv.methods.cpu import division, native
from edgeconv.methods.cpu.layout import (
    ROWS_TOGETHER,
    WIDEST_VECTOR_STRIDE,
    Argument,
    RowLayout,
    TileFields,
    make_layout,
)
from edgeconv.methods.options import Options

TILE_PIXELS = 16384
"""Output pixels of a tile (samples where rows are flat). Whole rows of common pictures: a row that is cut costs
a spare block at each end, and reading pieces of rows keeps the processor from fetching ahead."""
IM2COL_TILE_PIXELS = 1024
"""Pixels of a band: 27 columns of them in float32 are 108 KiB."""


class CpuIm2col(Method):
    """Columns and a product. Always available: llvmlite is a base dependency."""

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """See Method.reason."""
        lacks_half = problem.dtype == np.float16 and not jit.processor().has_half
        return super().reason(problem, options) or ("this processor does not convert float16" if lacks_half else None)

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        return _prepare("im2col", problem, options, IM2COL_TILE_PIXELS, columns=True)


class CpuSliding(CpuIm2col):
    """Sliding window."""

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """See Method.reason."""
        if isinstance(problem, ChainProblem):
            is_canny = problem.chain.is_canny
            return None if is_canny else "it has code for canny alone, not for these stages"
        return super().reason(problem, options)

    def prepare(self, problem: Problem | ChainProblem, options: Options, pictures: int = 1) -> Plan:
        if isinstance(problem, ChainProblem):
            from edgeconv.methods.cpu import canny  # only for those who ask for it

            return canny.prepare(problem, options)
        return _prepare("sliding", problem, options, TILE_PIXELS, columns=False)


def _prepare(name: str, problem: Problem, options: Options, tile_pixels: int, *, columns: bool) -> native.NativePlan:
    processor = jit.processor()
    # Above stride 1 far less is written than read, and only the output counts: on machines with two and with 16 cores
    # storing smaller ones into the caches was faster.
    moved_bytes = problem.output_bytes + (problem.input_bytes if problem.stride == 1 else 0)
    streaming = moved_bytes > native.STREAMING_BYTES
    fetching = problem.input_bytes + problem.output_bytes > native.STREAMING_BYTES
    lowering = lower(problem, share=not columns)
    layout = make_layout(
        lowering,
        processor,
        tile_pixels,
        columns=columns,
        streaming=streaming,
        fetching=fetching,
        rows_together=_rows_together(problem, streaming, processor.vector_bytes),
    )
    tiles, picks = _tables(problem, layout)
    has_short_runs = bool((tiles[:, TileFields.OUT_COUNT] < layout.block_pixels).any())
    layout = replace(layout, direct=_reads_directly(layout, tiles), has_short_runs=has_short_runs)
    seconds = division.seconds_alone(problem, layout)
    divided = division.divide(problem.output_height, seconds, options.threads, layout.rows_together)
    units = -(-problem.output_height // divided.strip_rows) * len(tiles)
    workspace_bytes = layout.scratch_bytes * divided.threads
    max_threads = options.workspace_limit_bytes // layout.scratch_bytes
    check_workspace(name, workspace_bytes, options, f"use --threads {max_threads}" if max_threads else "")

    source_rows = border_indices(problem.height, problem.padding, problem.border)
    # The code looks ahead by the output rows of a turn, and there are none after the last.
    source_rows = np.pad(source_rows, (0, problem.stride * layout.rows_together), mode="edge").astype(np.int32)
    passes, weights = _bank_tables(layout)
    arguments = {
        Argument.IMAGE_ADDRESS: 0,
        Argument.OUT_ADDRESS: 0,
        Argument.UNITS: units,
        Argument.TILES_PER_STRIP: len(tiles),
        Argument.STRIP_ROWS: divided.strip_rows,
        Argument.OUT_ROWS: problem.output_height,
        Argument.IMAGE_ROW_SAMPLES: problem.width * problem.in_channels,
        Argument.OUT_ROW_SAMPLES: problem.output_width * lowering.stored_channels,
        Argument.SOURCE_ROWS_ADDRESS: source_rows,
        Argument.TILES_ADDRESS: tiles,
        Argument.PICKS_ADDRESS: picks,
        Argument.SCRATCH_ADDRESS: jit.aligned_zeros(workspace_bytes),
        Argument.PASSES_ADDRESS: passes,
        Argument.WEIGHTS_ADDRESS: weights,
    }
    choice = {
        "forms": ", ".join(lowering.forms) or "plain sums",
        "collapsed": lowering.collapsed,
        "flat_rows": lowering.flat,
        "different_outputs": lowering.different_outputs,
        "passes": layout.passes,
        "outputs_side_by_side": layout.bank is not None,
        "multiply_adds_per_pixel": lowering.multiply_adds,
        "arithmetic": lowering.sums,
        "rows_together": layout.rows_together,
        "reads_picture_directly": layout.direct,
        "streaming_stores": layout.streaming,
    }
    return native.NativePlan(
        problem,
        jit.compiled("edgeconv.methods.cpu.rows:write", layout, processor),
        arguments,
        units,
        divided,
        options,
        workspace_bytes=workspace_bytes,
        arithmetic=lowering.arithmetic,
        choice=choice,
    )


def _rows_together(problem: Problem, streaming: bool, vector_bytes: int) -> int:
    """Output rows that may be computed together: past the caches those that lie alike, by stores of whole lines."""
    row_bytes = problem.output_bytes // problem.output_height
    unlike = streaming and (row_bytes % CACHE_LINE_BYTES or vector_bytes < CACHE_LINE_BYTES)
    return 1 if unlike or problem.output_height < ROWS_TOGETHER else ROWS_TOGETHER


# --- tables -----------------------------------------------------------------------------------------------------------


def _tables(problem: Problem, layout: RowLayout) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Tiles of an output row and the picks of each.

    Where the lowering is flat, positions are samples: three for a pixel, or one of a grey picture.
    """
    step = layout.tap_step
    columns = border_indices(problem.width, problem.padding, problem.border)
    columns = np.where(columns[:, None] == OUTSIDE, OUTSIDE, columns[:, None] * step + np.arange(step)).ravel()
    width, padding, outputs = (side * step for side in (problem.width, problem.padding, problem.output_width))
    tiles: list[tuple[int, ...]] = []
    picks: list[NDArray[np.int64]] = []
    picked = 0
    longest = -(-outputs // -(-outputs // layout.tile_pixels))
    if longest < outputs:  # else the last block of every tile is computed in part by the one before it too
        longest = min(layout.tile_pixels, -(-longest // layout.block_pixels) * layout.block_pixels)
    for start, stop in bands(outputs, longest):
        count = stop - start
        groups, source_start = _whole_groups(start, count, width, padding, layout)
        tile_picks = _picks(start, count, columns, groups, layout)
        stop_picks = picked + len(tile_picks)
        # In the order of TileFields.
        tiles.append((start, count, groups.start, groups.stop, source_start, picked, stop_picks))
        picks.append(tile_picks)
        picked = stop_picks
    return np.array(tiles, np.int64), np.ascontiguousarray(np.concatenate(picks), np.int32)


def _reads_directly(layout: RowLayout, tiles: NDArray[np.int64]) -> bool:
    """Whether rows can be read where they lie: large pictures, whose tiles are longer than a block inside.

    What of a tile lies outside is one block at each end, so wide paddings are staged; and its taps that lie inside are
    one vector, so short registers stage too.
    """
    lowering = layout.lowering
    start, stop = tiles[:, TileFields.GROUPS_START], tiles[:, TileFields.GROUPS_STOP] - layout.reach
    long_enough = bool((stop - start >= layout.block_pixels).all())
    narrow = bool((np.maximum(start, tiles[:, TileFields.OUT_COUNT] - stop) <= layout.block_pixels).all())
    of_flat = lowering.flat and layout.streaming and lowering.staged == lowering.source and not layout.columns
    return (of_flat or layout.unshared) and long_enough and narrow and layout.source_lanes >= layout.reach


def _whole_groups(start: int, count: int, width: int, padding: int, layout: RowLayout) -> tuple[range, int]:
    """Positions of a tile whose `stride` source pixels all lie inside the picture, and the first one's pixel."""
    stride = layout.lowering.stride
    first = max(0, -(-padding // stride) - start)
    last = min((padding + width) // stride - start, _staged_count(0, count, layout))
    if stride > WIDEST_VECTOR_STRIDE or last - first < layout.source_lanes:
        return range(0), 0
    return range(first, last), (start + first) * stride - padding


def _picks(start: int, count: int, columns: NDArray[np.intp], groups: range, layout: RowLayout) -> NDArray[np.int64]:
    """(picks, 3): every staged position that the whole groups leave out, its phase, and the pixel that it is."""
    found = []
    for phase in range(layout.phases):
        index = np.arange(_staged_count(phase, count, layout))
        index = index[(index < groups.start) | (index >= groups.stop)]
        source = columns[(start + index) * layout.lowering.stride + phase]
        found.append(np.stack((index, np.full_like(index, phase), source), axis=1))
    return np.concatenate(found)


def _staged_count(phase: int, count: int, layout: RowLayout) -> int:
    """Positions of a phase that `count` outputs read: one more for every kernel column beyond the first."""
    columns = range(phase, KERNEL_SIZE, layout.lowering.stride)
    return count + (len(columns) - 1) * layout.tap_step


def _bank_tables(layout: RowLayout) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]]]:
    """The passes of a bank, (groups · passes, 2), and their weights, both empty where there is no bank.

    Weights are (groups · passes, directions, taps, outputs of a pass), in the type of the sums.
    """
    bank, lowering = layout.bank, layout.lowering
    if bank is None:
        return np.zeros((0, 2), np.int64), np.zeros(0)
    outputs, groups, directions = bank.structure
    planes = len(lowering.planes) // groups
    plane_bytes = (KERNEL_SIZE**2 if layout.columns else layout.phases) * layout.pitch_bytes
    taps = lowering.kernels.reshape(directions, groups, outputs, -1)
    fields, weights = [], []
    for group in range(groups):
        for start in bank.starts:
            fields.append((group * planes * plane_bytes, group * outputs + start))
            weights.append(taps[:, group, start : start + bank.outputs].swapaxes(1, 2))
    return np.array(fields, np.int64), np.ascontiguousarray(weights)
