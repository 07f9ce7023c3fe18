"""im2col on CUDA: columns in memory, then a GEMM of the weights (directions · out channels × 27, or 9) by them.

    own      one launch in which every block has a small band of columns: it writes the columns of a tile, multiplies
             them from memory, and goes on to the next (im2col_gemm.cu). All bands together stay in the L2.
    cublas   bands of output rows as runs of pixels: im2col.cu, then cuBLAS SGEMM, then join and store (epilogue.cu)
             where the GEMM's result is not the output already.

Columns have the picture's type with the project's GEMM and are float32 with the vendor's, or float64. The project's
GEMM sums in float32, or in float64 where float32 does not hold the sums (exactness.py); cuBLAS in the columns' type.
The project's GEMM holds all rows in registers, so a filter bank of more takes several launches, each with its columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgeconv.core.exactness import FLOAT32 as FLOAT32_SUMS
from edgeconv.core.exactness import FLOAT64 as FLOAT64_SUMS
from edgeconv.core.exactness import own_arithmetic, sums_for
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.errors import one_line
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Plan, check_workspace
from edgeconv.methods.cuda.kernel_args import (
    MOST_RESPONSES,
    STAGING_THREADS,
    BankPart,
    Pitches,
    depth_of,
    outputs_within,
    parts_of,
    problem_defines,
    response_count,
    round_up,
    staging_variant,
    strided_geometry,
)
from edgeconv.methods.options import Options

COLUMNS_THREADS = 256
BAND_STEP = 1024
"""Pixels that a band of cuBLAS is a multiple of."""
L2_SHARE = 0.5
"""Share of the L2 that columns may take: the picture and the output pass through it too."""


@dataclass(frozen=True)
class Im2colShape:
    """How a kernel's blocks are cut: macros that change speed and nothing else."""

    threads: int
    pixels_per_thread: int
    """Columns that a thread of the GEMM holds."""
    blocks_per_multiprocessor: int = 1
    """Where every block has a band: how many share a multiprocessor's registers and its part of the L2."""

    @property
    def tile(self) -> int:
        """Columns that a block of the GEMM takes at once, and so what a band is a multiple of."""
        return self.threads * self.pixels_per_thread


MANY_RESPONSES = 8
"""Above this a thread of the GEMM has accumulators for two columns, up to it for four."""
BLOCKS_BY_BYTES = {4: 3, 2: 6, 1: 8}
"""Blocks of 128 threads, each with a band, on a multiprocessor, by the bytes of a column sample: 22 MB of float32
columns on a GPU with 132. More hide more latency, and push columns out of the L2."""
SMALL_THREADS, SMALL_BLOCKS = 64, 8
"""The same for a picture that is no more than one wave of such blocks."""
WIDE_BLOCKS, WIDE_SMALL_BLOCKS = 2, 4
"""The same where sums are float64 and need twice the registers."""


def _pixels_per_thread(problem: Problem) -> int:
    if sums_for(problem) == "float64":
        return 1  # each sum takes two registers
    return 4 if response_count(problem) <= MANY_RESPONSES else 2


def resident_shape(problem: Problem, multiprocessors: int) -> Im2colShape:
    """Of the kernel whose blocks have bands each: small blocks and short waits for small pictures."""
    pixels = problem.output_height * problem.output_width
    wide = sums_for(problem) == "float64"
    for pixels_per_thread in (1, _pixels_per_thread(problem)):
        small = Im2colShape(SMALL_THREADS, pixels_per_thread, WIDE_SMALL_BLOCKS if wide else SMALL_BLOCKS)
        if pixels <= multiprocessors * small.blocks_per_multiprocessor * small.tile:
            return small
    blocks = WIDE_BLOCKS if wide else BLOCKS_BY_BYTES[problem.dtype.itemsize]
    return Im2colShape(128, _pixels_per_thread(problem), blocks)


def gemm_parts(problem: Problem) -> tuple[BankPart, ...]:
    """The launches of the project's GEMM."""
    return parts_of(problem, outputs_within(problem, MOST_RESPONSES))


def resident_variant(problem: Problem, shape: Im2colShape, pitches: Pitches | None = None) -> KernelVariant:
    """im2col and GEMM in one launch."""
    cut = (
        ("COLUMN", problem.dtype.name),
        ("THREADS", shape.threads),
        ("PIXELS_PER_THREAD", shape.pixels_per_thread),
        ("TILE", shape.tile),
        ("BLOCKS_PER_MULTIPROCESSOR", shape.blocks_per_multiprocessor),
    )
    defines = (*problem_defines(problem, problem.dtype, pitches=pitches), *cut)
    return KernelVariant("methods/cuda/im2col_gemm.cu", "im2col_gemm", defines)


def columns_variant(problem: Problem) -> KernelVariant:
    """im2col of a band, for cuBLAS."""
    column = problem.weights.dtype
    defines = (*problem_defines(problem, column), ("COLUMN", column.name), ("THREADS", COLUMNS_THREADS))
    return KernelVariant("methods/cuda/im2col.cu", "im2col", defines)


# --- one launch, bands of a block -------------------------------------------------------------------------------


class ResidentPlan(Plan):
    """Every block has a tile of columns."""

    def __init__(self, problem: Problem, options: Options) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        device = cupy.cuda.Device()
        multiprocessors = int(device.attributes["MultiProcessorCount"])
        l2_bytes = int(device.attributes["L2CacheSize"])
        pixels = problem.output_height * problem.output_width
        parts = gemm_parts(problem)
        shape = resident_shape(parts[0].problem, multiprocessors)
        depth = depth_of(parts[0].problem)
        bytes_per_block = shape.tile * depth * problem.dtype.itemsize
        check_workspace("im2col", bytes_per_block, options)

        most = min(options.workspace_limit_bytes, int(L2_SHARE * l2_bytes)) // bytes_per_block
        blocks = min(-(-pixels // shape.tile), shape.blocks_per_multiprocessor * multiprocessors, max(1, most))
        workspace = cupy.cuda.alloc(blocks * bytes_per_block)
        columns_bytes = depth * pixels * problem.dtype.itemsize
        super().__init__(
            problem=problem,
            workspace_bytes=blocks * bytes_per_block,
            moved_bytes=len(parts) * (problem.input_bytes + 2 * columns_bytes) + problem.output_bytes,
            launches=len(parts),
            arithmetic=own_arithmetic(problem),
            choice={
                "gemm": "own",
                "tile_pixels": shape.tile,
                "blocks": blocks,
                "columns_dtype": problem.dtype.name,
            },
        )
        self._workspace = workspace
        self._launches = []
        for part in parts:
            arguments = (np.uint64(workspace.ptr), strided_geometry(problem), part.problem.weights)
            kernel = load(resident_variant(part.problem, shape, part.pitches))
            self._launches.append((part, PackedLaunch(kernel, blocks, (shape.threads, 1), *arguments)))

    def run(self, image: Any, out: Any) -> None:
        for part, launch in self._launches:
            launch.at(image.data.ptr + part.image_offset_bytes, out.data.ptr + part.out_offset_bytes)


# --- bands of output pixels -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """A run of output pixels and its launches: the columns, and join and store."""

    first: int
    count: int
    im2col: Any
    epilogue: Any


class CublasPlan(Plan):
    """Band after band: one launch for the columns, cuBLAS, and join and store where its result is not the output."""

    def __init__(self, problem: Problem, band_pixels: int) -> None:
        import cupy

        from edgeconv.hardware.cuda.launch import PackedLaunch

        pixels = problem.output_height * problem.output_width
        leading = round_up(min(band_pixels, pixels), BAND_STEP)
        column = problem.weights.dtype
        rows, depth = response_count(problem), depth_of(problem)
        stores_responses = problem.output_dtype == column and problem.output_mode == "raw"
        self._direct = problem.directions == 1 and stores_responses
        self._columns = cupy.empty((depth, leading), column)
        self._weights = cupy.asarray(problem.dense_weights().reshape(rows, depth))
        self._responses: Any = None if self._direct else cupy.empty((leading, rows), column)
        im2col, epilogue = load(columns_variant(problem)), load(staging_variant(problem, column, "epilogue"))
        self._bands = []
        for first in range(0, pixels, leading):
            count = min(leading, pixels - first)
            place = (np.int64(first), np.int32(count), np.int64(leading))
            blocks, threads = -(-count // COLUMNS_THREADS), (COLUMNS_THREADS, 1)
            fill = PackedLaunch(im2col, blocks, threads, strided_geometry(problem), *place)
            blocks, threads = -(-count * problem.output_channels // STAGING_THREADS), (STAGING_THREADS, 1)
            self._bands.append(Band(first, count, fill, PackedLaunch(epilogue, blocks, threads, np.int32(count))))
        responses_bytes = 0 if self._direct else rows * pixels * column.itemsize
        super().__init__(
            problem=problem,
            workspace_bytes=int(self._columns.nbytes + (0 if self._responses is None else self._responses.nbytes)),
            moved_bytes=problem.input_bytes
            + 2 * (depth * pixels * column.itemsize + responses_bytes)
            + problem.output_bytes,
            launches=(2 if self._direct else 3) * len(self._bands),
            arithmetic=replace(FLOAT64_SUMS if column == np.float64 else FLOAT32_SUMS, multiplies_zeros=True),
            choice={
                "gemm": "cublas",
                "bands": len(self._bands),
                "band_pixels": leading,
                "columns_dtype": column.name,
            },
        )

    def run(self, image: Any, out: Any) -> None:
        flat = out.reshape(-1)
        channels = self.problem.output_channels
        for band in self._bands:
            band.im2col.at(image.data.ptr, self._columns.data.ptr)
            here = flat[band.first * channels : (band.first + band.count) * channels]
            self._sgemm(band.count, here if self._direct else self._responses)
            if not self._direct:
                band.epilogue(self._responses, here)

    def _sgemm(self, count: int, responses: Any) -> None:
        """responses[pixel][response] = Σ over k of weights[response][k] · columns[k][pixel], by cuBLAS.

        cuBLAS counts in columns first, so row-major (depth, leading) columns and (responses, depth) weights are both
        transposed matrices to it, and its result is (responses, pixels): pixel after pixel in memory.
        """
        import cupy
        from cupy.cuda import cublas

        handle = cupy.cuda.device.get_cublas_handle()
        rows, (depth, leading) = response_count(self.problem), self._columns.shape
        one, zero = np.ones((), self._columns.dtype), np.zeros((), self._columns.dtype)
        cublas.setStream(handle, cupy.cuda.get_current_stream().ptr)
        cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH)  # float32 multiply-adds: no TF32
        product = cublas.dgemm if self._columns.dtype == np.float64 else cublas.sgemm
        product(
            handle,
            cublas.CUBLAS_OP_T,
            cublas.CUBLAS_OP_T,
            rows,
            count,
            depth,
            one.ctypes.data,
            self._weights.data.ptr,
            depth,
            self._columns.data.ptr,
            leading,
            zero.ctypes.data,
            responses.data.ptr,
            rows,
        )


def cublas_plan(problem: Problem, options: Options, band_bytes: int | None = None) -> Plan:
    """A plan in bands whose columns take about `band_bytes` (None: their share of the L2), within the limit."""
    import cupy

    itemsize = problem.weights.dtype.itemsize
    bytes_per_pixel = (depth_of(problem) + response_count(problem)) * itemsize
    check_workspace("im2col", BAND_STEP * bytes_per_pixel, options)
    if band_bytes is None:
        band_bytes = int(L2_SHARE * int(cupy.cuda.Device().attributes["L2CacheSize"]))
    most = min(band_bytes // (depth_of(problem) * itemsize), options.workspace_limit_bytes // bytes_per_pixel)
    return CublasPlan(problem, max(BAND_STEP, most // BAND_STEP * BAND_STEP))


class CudaIm2col(Method):
    """im2col and GEMM on an NVIDIA GPU."""

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason()

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        missing = None if options.gemm == "own" else cublas_unavailable_reason()
        if missing is not None:
            return f"--gemm cublas needs cuBLAS ({missing}), and --gemm own does not"
        return super().reason(problem, options)

    def prepare(self, problem: Problem, options: Options, pictures: int = 1) -> Plan:
        return ResidentPlan(problem, options) if options.gemm == "own" else cublas_plan(problem, options)


def cublas_unavailable_reason() -> str | None:
    """Why the vendor's GEMM cannot be used, or None where it can."""
    import cupy

    try:
        return None if cupy.cuda.device.get_cublas_handle() else "it gave no handle"
    except Exception as error:  # CuPy raises its classes and those of the path finder: each means the same here
        return one_line(error)
