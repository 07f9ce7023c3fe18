"""The Canny edge detector on the CPU: one pass of generated code over the picture, then edges across strips of rows.

Pictures are (H, W) or (H, W, 3), uint8 or uint16, C-contiguous; the output is (H, W), uint8, 255 on edges and 0
elsewhere, byte for byte what `edgeconv.core.canny` gives. canny_code.py says how a picture is computed, canny_layout.py
where everything lies. No pixel is touched here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.canny import CANNY_DTYPES, CannySettings
from edgeconv.core.geometry import border_indices
from edgeconv.errors import UsageError
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.cpu.scalars import SCALAR_BYTES, Scalar
from edgeconv.hardware.threads import resolve_threads
from edgeconv.methods.cpu import canny_code, division
from edgeconv.methods.cpu.arrays import address_of
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


class CannyPlan:
    """Canny for pictures of one shape and type, with its tables, bits, and workers' scratch.

    `run` may be called any number of times, by one thread at a time.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, settings: CannySettings, threads: int | None) -> None:
        self.input_shape, self.dtype = shape, np.dtype(dtype)
        height, width, channels = _checked_shape(shape, self.dtype)
        self.output_shape = (height, width)
        processor = jit.processor()
        source = SOURCES[self.dtype.name]
        code_shape = make_shape(source, channels, settings, processor.vector_bytes)
        if threads is not None:
            resolve_threads(threads)
        seconds = height * width * channels * NANOSECONDS_PER_PIXEL * 1e-9 * self.dtype.itemsize
        divided = division.divide(height, seconds, threads)
        strip_rows = max(divided.strip_rows, min(LEAST_STRIP_ROWS, -(-height // divided.threads)))
        strip_rows = min(strip_rows, division.STRIP_ROWS)
        strips = -(-height // strip_rows)
        streaming = height * width * (channels * self.dtype.itemsize + 1) > STREAMING_BYTES
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
        self.workspace_bytes = sum(array.nbytes for array in arrays)
        self.choice: dict[str, Any] = {
            "threads": self._threads,
            "native_threads": crew.unavailable_reason() or "yes",
            "strip_rows": strip_rows,
            "arithmetic": code_shape.code,
            "streaming_stores": streaming,
            "vector_bytes": processor.vector_bytes,
            "processor": processor.name,
            **jit.versions(),
        }

    def run(self, picture: NDArray[Any], out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """Edges of the picture, in `out` or a new array."""
        if out is None:
            out = np.empty(self.output_shape, np.uint8)
        _check_array("picture", picture, self.input_shape, self.dtype)
        _check_array("output", out, self.output_shape, np.dtype(np.uint8))
        if not out.flags.writeable:
            raise UsageError("The output array is read-only: pass one that can be written.")
        self.run_at(address_of(picture), address_of(out))
        return out

    def run_at(self, image_address: int, out_address: int) -> None:
        """`run` on arrays that the caller has checked, which do not overlap."""
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


def plan_canny(shape: tuple[int, ...], dtype: Any, settings: CannySettings, threads: int | None = None) -> CannyPlan:
    """A plan for pictures of a shape, (H, W) or (H, W, 3), and a type, uint8 or uint16.

    By as many `threads`, or else by as many as the process may use and the picture is worth. Raises UsageError.
    """
    return CannyPlan(shape, dtype, settings, threads)


def _checked_shape(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int, int]:
    """Height, width and channels."""
    height, width, *more = shape if len(shape) in (2, 3) else (0, 0)
    channels = more[0] if more else 1
    if dtype.name not in SOURCES or min(height, width) < 1 or channels not in (1, 3):
        raise UsageError(
            f"canny needs pictures (H, W) or (H, W, 3) of {' or '.join(SOURCES)}, not {shape} of {dtype.name}."
        )
    return height, width, channels


def _limits(settings: CannySettings, shape: CannyShape) -> dict[CannyArgument, int]:
    """Codes of the thresholds: as large as a code can be at most, which no pixel is above."""
    largest = 2 ** (8 * SCALAR_BYTES[shape.code] - 1 - SECTOR_BITS) - 1
    low, high = (min(limit, largest) << SECTOR_BITS | SECTOR_MASK for limit in settings.limits)
    return {CannyArgument.LOW_CODE: low, CannyArgument.HIGH_CODE: high}


def _check_array(what: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if not isinstance(array, np.ndarray):
        raise UsageError(f"The {what} must be a NumPy array for a CPU method, not {type(array).__name__}.")
    if array.shape != shape or array.dtype != dtype:
        raise UsageError(f"The {what} is {array.shape} {array.dtype}: the plan was made for {shape} {dtype}.")
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise UsageError(f"The {what} is not C-contiguous: pass numpy.require(array, requirements=['C', 'A']).")
