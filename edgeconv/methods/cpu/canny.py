"""The Canny edge detector on the CPU: one pass of generated code over the picture, then edges across strips of rows.

Pictures are (H, W, 1) or (H, W, 3), uint8 or uint16, C-contiguous; the output is (H, W, 1), uint8, 255 on edges and 0
elsewhere, byte for byte what `edgeconv.core.canny` gives. canny_code.py says how a picture is computed, canny_layout.py
where everything lies. No pixel is touched here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from edgeconv.core.canny import CANNY_DTYPES, CannySettings
from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import WHOLE
from edgeconv.core.geometry import border_indices
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.cpu.emit import SCALAR_BYTES, Scalar
from edgeconv.hardware.threads import resolve_threads
from edgeconv.methods.base import AddressPlan, check_workspace
from edgeconv.methods.cpu import canny_code, division
from edgeconv.methods.cpu.arrays import address_of, check_arrays
from edgeconv.methods.cpu.canny_layout import (
    INT32_BYTES,
    STATE_FIELDS,
    CannyArgument,
    CannyShape,
    CannySizes,
    make_shape,
    make_sizes,
)
from edgeconv.methods.cpu.canny_rows import SECTOR_BITS, SECTOR_MASK
from edgeconv.methods.cpu.engine import STREAMING_BYTES
from edgeconv.methods.options import Options

SOURCES: dict[str, Scalar] = dict(zip(CANNY_DTYPES, ("u8", "u16"), strict=True))

NANOSECONDS_PER_PIXEL = 0.5
"""Of one core, grey and without smoothing; see division.py for how exact it has to be."""

LEAST_STRIP_ROWS = 32
"""Lower strips are cut only where there are threads for them: each computes two rows that its neighbours do, and has
edges across its ends."""

MOST_RUNS = 2**31 - 1
"""Runs are numbered up to here, as int32, and from 1 again."""


@cache
def code_for(shape: CannyShape, processor: jit.Processor) -> jit.Compiled:
    """The compiled functions; compiled once per process for each shape."""
    return jit.compile_module(canny_code.write(shape), processor)


def chain_reason(problem: ChainProblem) -> str | None:
    """Why the engine cannot compute a chain, or None: canny, with or without one smoothing, is what it has code for."""
    return None if problem.chain.canny_settings() is not None else "it has code for canny alone, not for these stages"


class EngineCannyPlan(AddressPlan):
    """Canny for pictures of one shape and type, with its tables, bits, and workers' scratch."""

    def __init__(self, problem: ChainProblem, options: Options) -> None:
        settings = problem.chain.canny_settings()
        assert settings is not None  # as `reason` asks
        height, width, channels = problem.input_shape
        threads = options.threads
        processor = jit.processor()
        code_shape = make_shape(SOURCES[problem.dtype.name], channels, settings, processor.vector_bytes)
        if threads is not None:
            resolve_threads(threads)
        seconds = problem.input_bytes * NANOSECONDS_PER_PIXEL * 1e-9
        divided = division.divide(height, seconds, threads)
        strip_rows = max(divided.strip_rows, min(LEAST_STRIP_ROWS, -(-height // divided.threads)))
        strip_rows = min(strip_rows, division.STRIP_ROWS)
        strips = -(-height // strip_rows)
        streaming = problem.input_bytes + problem.output_bytes > STREAMING_BYTES
        sizes = make_sizes(code_shape, height, width, strip_rows)

        self._threads = min(divided.threads, strips)
        self._code = code_for(code_shape, processor)
        self._scratch = jit.aligned_zeros(sizes.scratch * self._threads)
        self._weak, self._strong = (jit.aligned_zeros(sizes.bits) for _ in range(2))
        self._states = jit.aligned_zeros(strips * STATE_FIELDS * INT32_BYTES)
        reach = code_shape.reach
        self._source_rows, columns = (
            border_indices(side, reach, "reflect101").astype(np.int32) for side in (height, width)
        )
        self._source_columns = np.concatenate((columns[:reach], columns[-reach:]))
        self._arguments = np.zeros(len(CannyArgument), np.int64)
        for argument, value in (
            self._constants(height, width, strips, strip_rows, sizes, streaming) | _limits(settings, code_shape)
        ).items():
            self._arguments[argument] = value
        self._words = memoryview(self._arguments.data)
        self._address = self._arguments.ctypes.data
        self._alone = self._code.function(canny_code.ALONE, 1)
        self._job = crew.CrewJob(
            self._code,
            canny_code.WORK,
            self._address,
            strips,
            asked=threads,
            most_threads=self._threads,
            sleepers=divided.sleepers,
        )
        arrays = (self._scratch, self._weak, self._strong, self._states, self._source_rows, self._source_columns)
        workspace = sum(array.nbytes for array in arrays)
        choice = {
            "threads": self._threads,
            "native_threads": crew.unavailable_reason() or "yes",
            "strip_rows": strip_rows,
            "arithmetic": code_shape.code,
            "streaming_stores": streaming,
            "vector_bytes": processor.vector_bytes,
            "processor": processor.name,
            **jit.versions(),
        }
        check_workspace("sliding", workspace, options, or_else="")
        super().__init__(problem, workspace_bytes=workspace, arithmetic=WHOLE, choice=choice)

    def run(self, image: Any, out: Any) -> None:
        check_arrays(image, out, self.problem)
        self.run_at(address_of(image), address_of(out))

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        words = self._words
        words[CannyArgument.IMAGE_ADDRESS] = image_address
        words[CannyArgument.OUT_ADDRESS] = out_address
        words[CannyArgument.RUN] = words[CannyArgument.RUN] % MOST_RUNS + 1
        if self._threads == 1:
            self._alone(self._address)
        else:
            self._job.run()

    def _constants(
        self, height: int, width: int, strips: int, strip_rows: int, sizes: CannySizes, streaming: bool
    ) -> dict[CannyArgument, int]:
        return {
            CannyArgument.STRIPS: strips,
            CannyArgument.STRIP_ROWS: strip_rows,
            CannyArgument.HEIGHT: height,
            CannyArgument.WIDTH: width,
            CannyArgument.BLOCKED_WIDTH: sizes.blocked_width,
            CannyArgument.SCRATCH_ADDRESS: self._scratch.ctypes.data,
            CannyArgument.SCRATCH_BYTES: sizes.scratch,
            CannyArgument.SUMS_OFFSET: sizes.sums_offset,
            CannyArgument.STAGED_OFFSET: sizes.staged_offset,
            CannyArgument.RING_OFFSET: sizes.ring_offset,
            CannyArgument.QUEUE_OFFSET: sizes.queue_offset,
            CannyArgument.QUEUED_OFFSET: sizes.queued_offset,
            CannyArgument.PLANE_BYTES: sizes.plane,
            CannyArgument.SUMS_BYTES: sizes.sums,
            CannyArgument.RING_BYTES: sizes.ring,
            CannyArgument.SOURCE_ROWS_ADDRESS: self._source_rows.ctypes.data,
            CannyArgument.SOURCE_COLUMNS_ADDRESS: self._source_columns.ctypes.data,
            CannyArgument.WEAK_ADDRESS: self._weak.ctypes.data,
            CannyArgument.STRONG_ADDRESS: self._strong.ctypes.data,
            CannyArgument.WORDS: sizes.words,
            CannyArgument.STRIP_WORDS: sizes.strip_words,
            CannyArgument.STATES_ADDRESS: self._states.ctypes.data,
            CannyArgument.STREAMING: int(streaming),
        }


def _limits(settings: CannySettings, shape: CannyShape) -> dict[CannyArgument, int]:
    """Codes of the thresholds: as large as a code can be at most, which no pixel is above."""
    largest = 2 ** (8 * SCALAR_BYTES[shape.code] - 1 - SECTOR_BITS) - 1
    low, high = (min(limit, largest) << SECTOR_BITS | SECTOR_MASK for limit in settings.limits)
    return {CannyArgument.LOW_CODE: low, CannyArgument.HIGH_CODE: high}
