"""The Canny edge detector on the CPU: one pass of generated code over the picture, then edges across strips of rows.

Pictures are (H, W, 1) or (H, W, 3), uint8 or uint16, C-contiguous; the output is (H, W, 1), uint8, 255 on edges and 0
elsewhere, byte for byte what `edgeconv.core.canny` gives. canny_edges.py says how a picture is computed,
canny_layout.py where everything lies. No pixel is touched here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from edgeconv.core.chains import Chain, ChainProblem
from edgeconv.core.exactness import WHOLE
from edgeconv.core.geometry import border_indices
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cpu.processor import SCALAR_BYTES, Scalar
from edgeconv.hardware.threads import resolve_threads
from edgeconv.methods.base import check_workspace
from edgeconv.methods.cpu import division, native
from edgeconv.methods.cpu.canny_layout import (
    INT32_BYTES,
    SECTOR_BITS,
    SECTOR_MASK,
    STATE_FIELDS,
    WORD_BYTES,
    CannyArgument,
    CannyShape,
    make_sizes,
)
from edgeconv.methods.options import Options

NANOSECONDS_PER_PIXEL = 0.5
"""Of one core, grey and without smoothing; see division.py for how exact it has to be."""

MIN_STRIP_ROWS = 32
"""Lower strips are cut only where there are threads for them: each computes two rows that its neighbours do, and has
edges across its ends."""

MAX_RUNS = 2**31 - 1
"""Runs are numbered up to here, as int32, and from 1 again."""


class _CannyPlan(native.NativePlan):
    """Each run has a number, by which strips that are ready are known."""

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        words = self._words
        words[CannyArgument.RUN] = words[CannyArgument.RUN] % MAX_RUNS + 1
        super().run_at(image_address, out_address)


def prepare(problem: ChainProblem, options: Options) -> native.NativePlan:
    """Canny for pictures of one shape and type, with its tables, bits, and workers' scratch."""
    height, width, channels = problem.input_shape
    if options.threads is not None:
        resolve_threads(options.threads)
    processor = jit.processor()
    source = cast(Scalar, problem.dtype.name)
    shape = CannyShape(source, channels, problem.chain.l2, problem.chain.blur, processor.vector_bytes)
    divided = division.divide(height, problem.input_bytes * NANOSECONDS_PER_PIXEL * 1e-9, options.threads)
    strip_rows = max(divided.strip_rows, min(MIN_STRIP_ROWS, -(-height // divided.threads)))
    strip_rows = min(strip_rows, division.STRIP_ROWS)
    strips = -(-height // strip_rows)
    divided = replace(divided, strip_rows=strip_rows, threads=min(divided.threads, strips))
    streaming = problem.input_bytes + problem.output_bytes > native.STREAMING_BYTES

    sizes = make_sizes(shape, height, width, strip_rows)
    bits_bytes = strips * sizes[CannyArgument.STRIP_WORDS] * WORD_BYTES
    reach = shape.reach
    source_rows, columns = (border_indices(side, reach, "reflect101").astype(np.int32) for side in (height, width))
    low, high = _codes_of_limits(problem.chain, shape)
    arguments: dict[Any, Any] = sizes | {
        CannyArgument.IMAGE_ADDRESS: 0,
        CannyArgument.OUT_ADDRESS: 0,
        CannyArgument.STRIPS: strips,
        CannyArgument.LOW_CODE: low,
        CannyArgument.HIGH_CODE: high,
        CannyArgument.SCRATCH_ADDRESS: jit.aligned_zeros(sizes[CannyArgument.SCRATCH_BYTES] * divided.threads),
        CannyArgument.SOURCE_ROWS_ADDRESS: source_rows,
        CannyArgument.SOURCE_COLUMNS_ADDRESS: np.concatenate((columns[:reach], columns[-reach:])),
        CannyArgument.WEAK_ADDRESS: jit.aligned_zeros(bits_bytes),
        CannyArgument.STRONG_ADDRESS: jit.aligned_zeros(bits_bytes),
        CannyArgument.STATES_ADDRESS: jit.aligned_zeros(strips * STATE_FIELDS * INT32_BYTES),
        CannyArgument.RUN: 0,
        CannyArgument.STREAMING: int(streaming),
    }
    workspace = sum(each.nbytes for each in arguments.values() if isinstance(each, np.ndarray))
    check_workspace("sliding", workspace, options, or_else="")
    return _CannyPlan(
        problem,
        jit.compiled("edgeconv.methods.cpu.canny_edges:write", shape, processor),
        arguments,
        strips,
        divided,
        options,
        workspace_bytes=workspace,
        arithmetic=WHOLE,
        choice={"arithmetic": shape.code, "streaming_stores": streaming},
    )


def _codes_of_limits(chain: Chain, shape: CannyShape) -> tuple[int, int]:
    """Codes of the thresholds: as large as a code can be at most, which no pixel is above."""
    largest = 2 ** (8 * SCALAR_BYTES[shape.code] - 1 - SECTOR_BITS) - 1
    low, high = (min(limit, largest) << SECTOR_BITS | SECTOR_MASK for limit in chain.limits)
    return low, high
