"""sliding on CUDA: one pass over HWC, all output channels in one launch, nothing materialised.

Four kernels share the problems between them:

    flat_rows.cu        each channel by itself at stride 1, where rows start on 16 bytes (flat_rows.py)
    sliding.cu          warps walk down strips of the picture; strides 1 to 6
    sliding_bank.cu     many filters at once: lanes share the outputs of their pixels (sliding_bank.py)
    sliding_direct.cu   one thread per output pixel; larger strides, whose windows lie far apart, and pictures so small
                        that what a strip waits for at its start is longer than its computation

A uint8 picture with whole weights from -127 to 127 (every named filter but luma's) is summed in exact integers, four
products an instruction, or on the tensor cores; filters that are the same for every plane by fewer operations, where
there are some to save; all else is FMA, in float32 or in float64 (exactness.py). Weights go in as kernel parameters, so
that a new filter of the same structure compiles nothing.

    sliding_choice.py    which kernel, arithmetic and form of core/lowering.py a problem takes, decided once for a plan
    sliding_tiles.py     how strips are cut: a rule of a few tiles
    sliding_packing.py   weights as the kernels take them
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import own_arithmetic
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import AddressPlan, Method, Plan
from edgeconv.methods.cuda import canny
from edgeconv.methods.cuda.flat_rows import FlatPlan, flat_filter
from edgeconv.methods.cuda.kernel_args import (
    WARP,
    BankPart,
    CudaPlan,
    Defines,
    Pitches,
    batch_defines,
    blocks_over,
    launch_of,
    outputs_within,
    parts_of,
    picture_geometry,
    problem_defines,
)
from edgeconv.methods.cuda.sliding_bank import BankPlan
from edgeconv.methods.cuda.sliding_choice import Strips, choose_strips, is_small, overlaps
from edgeconv.methods.cuda.sliding_packing import halo_bytes, packed_weights
from edgeconv.methods.cuda.sliding_tiles import (
    CHUNK_BYTES,
    StripTile,
    strip_height,
    tile_for,
)
from edgeconv.methods.options import Options

DIRECT_THREADS = (32, 8)

# --- kernels ----------------------------------------------------------------------------------------------------


def _shared_defines(problem: Problem, pitches: Pitches | None = None) -> Defines:
    """The macros of both kernels."""
    return (*problem_defines(problem, pitches=pitches), ("STRIDE", problem.stride))


def direct_parts(problem: Problem) -> tuple[BankPart, ...]:
    """The launches of sliding_direct.cu for a problem: of a bank as many filters as the arguments hold."""
    return parts_of(problem, outputs_within(problem))


def direct_variant(problem: Problem, batch: bool = False, pitches: Pitches | None = None) -> KernelVariant:
    """The kernel with one thread per output pixel."""
    defines = (*_shared_defines(problem, pitches), *batch_defines(batch))
    return KernelVariant("methods/cuda/sliding_direct.cu", "sliding_direct", defines)


def strip_variant(
    strips: Strips, tile: StripTile, aligned_in: bool, aligned_out: bool, batch: bool = False
) -> KernelVariant:
    """The kernel whose blocks walk down strips; aligned where every row of that picture starts on 16 bytes."""
    shared = _shared_defines(strips.problem)
    defines: Defines = (
        *(define for define in shared if strips.is_wide or define[0] != "WIDE_SUMS"),
        *tile.macros,
        ("ALIGNED_IN", int(aligned_in)),
        ("ALIGNED_OUT", int(aligned_out)),
        ("HALO_BYTES", halo_bytes(strips.problem, aligned_in)),
        *batch_defines(batch),
        *strips.macros,
    )
    return KernelVariant("methods/cuda/sliding.cu", "sliding", defines)


def row_bytes(problem: Problem) -> tuple[int, int]:
    """Bytes of a row of the picture and of the output."""
    return (
        problem.width * problem.in_channels * problem.dtype.itemsize,
        problem.output_width * problem.output_channels * problem.output_dtype.itemsize,
    )


# --- plans ------------------------------------------------------------------------------------------------------


@dataclass
class DirectPlan(CudaPlan):
    """One thread per output pixel."""

    def __post_init__(self) -> None:
        problem = self.problem
        blocks = blocks_over(problem, *DIRECT_THREADS)
        self._launches = []
        for part in direct_parts(problem):
            kernel = load(direct_variant(part.problem, self.pictures > 1, part.pitches))
            arguments = (picture_geometry(problem), part.problem.weights)
            launch = launch_of(problem, self.pictures, kernel, blocks, DIRECT_THREADS, *arguments)
            self._launches.append((launch, part.image_offset_bytes, part.out_offset_bytes))
        self.launches = sum(launch.launches for launch, _, _ in self._launches)
        self.arithmetic = own_arithmetic(problem)
        self.choice = {"kernel": "direct", "arithmetic": self.arithmetic.name, "forms": "plain sums"}

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        for launch, image_offset, out_offset in self._launches:
            launch.at(image_address + image_offset, out_address + out_offset, stream)


@dataclass(frozen=True)
class Cut:
    """A launch of strips, for arrays whose rows start in one way, and how it cuts the picture."""

    launch: Any
    tile: StripTile
    rows_per_strip: int
    strips: int


@dataclass
class StripPlan(CudaPlan):
    """Blocks that walk down strips."""

    strips: Strips = field(kw_only=True)
    tile: StripTile | None = None
    """One that is asked for; else the fastest for how the rows start."""

    def __post_init__(self) -> None:
        import cupy

        problem = self.problem
        self._pitches = row_bytes(problem)
        self._steps = (problem.input_bytes, problem.output_bytes) if self.pictures > 1 else (0, 0)
        strips = self.strips
        self.arithmetic = strips.arithmetic
        self._pointers: list[Any] = []
        if strips.mends:
            self._plain_weights = cupy.asarray(problem.weights)
            self.workspace_bytes = int(self._plain_weights.nbytes)
            self._pointers.append(np.uint64(self._plain_weights.data.ptr))
        self._cuts: dict[tuple[bool, bool], Cut] = {}
        usual = self._cut(self._aligned(0, 0))
        self._usual = usual.launch
        self.launches = self._usual.launches
        overlap = max(0, KERNEL_SIZE - problem.stride) * (usual.strips - 1)
        rows = min(problem.height, KERNEL_SIZE * problem.output_height) + overlap
        self.moved_bytes = self.pictures * (rows * self._pitches[0] + problem.output_bytes)
        self.choice = {
            "kernel": "strips",
            "rows_per_strip": usual.rows_per_strip,
            **asdict(usual.tile),
            "sums": strips.sums,
            "arithmetic": self.arithmetic.name,
            "forms": ", ".join(() if strips.form is None else strips.form.names) or "plain sums",
        }

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        launch = self._usual
        if (image_address | out_address) % CHUNK_BYTES:
            launch = self._cut(self._aligned(image_address, out_address)).launch
        launch.at(image_address, out_address, stream)

    def _aligned(self, image_address: int, out_address: int) -> tuple[bool, bool]:
        in_pitch, out_pitch = self._pitches
        in_step, out_step = self._steps
        return (
            (image_address | in_pitch | in_step) % CHUNK_BYTES == 0,
            (out_address | out_pitch | out_step) % CHUNK_BYTES == 0,
        )

    def _cut(self, aligned: tuple[bool, bool]) -> Cut:
        if aligned not in self._cuts:
            self._cuts[aligned] = self._new_cut(*aligned)
        return self._cuts[aligned]

    def _new_cut(self, aligned_in: bool, aligned_out: bool) -> Cut:
        problem, batch = self.problem, self.pictures > 1
        tile = self.tile or tile_for(self.strips, aligned_in)
        kernel = load(strip_variant(self.strips, tile, aligned_in, aligned_out, batch))
        across = -(-problem.output_width // (WARP * tile.thread_pixels))
        at_once = max(1, resident_blocks(kernel, WARP) // across)
        rows_per_strip = strip_height(problem, tile, at_once, self.pictures)
        strips = -(-problem.output_height // rows_per_strip)
        geometry = picture_geometry(problem, across, rows_per_strip)
        arguments = (geometry, packed_weights(self.strips, aligned_in), *self._pointers)
        launch = launch_of(problem, self.pictures, kernel, across * strips, (WARP, 1), *arguments)
        return Cut(launch, tile, rows_per_strip, strips)


def plan_for_large(problem: Problem, strips: Strips | None, pictures: int = 1) -> AddressPlan:
    """The plan for pictures that are not small, or for a batch of them in one launch."""
    if strips is not None:
        return StripPlan(problem, pictures=pictures, strips=strips)
    if overlaps(problem):
        return BankPlan(problem, pictures=pictures)
    return DirectPlan(problem, pictures=pictures)


def plan_for(problem: Problem, pictures: int = 1) -> AddressPlan:
    """Flat rows where they do it, else the kernel for pictures of that size; a batch is never small."""

    def other() -> AddressPlan:
        strips = choose_strips(problem)
        is_direct = pictures == 1 and is_small(problem, strips)
        return DirectPlan(problem) if is_direct else plan_for_large(problem, strips, pictures)

    flat = flat_filter(problem)
    return other() if flat is None else FlatPlan(problem, pictures=pictures, filter=flat, elsewhere=other)


class CudaSliding(Method):
    """The CUDA method `sliding`."""

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason()

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        return canny.chain_reason(problem) if isinstance(problem, ChainProblem) else None

    def prepare(self, problem: Problem | ChainProblem, options: Options, pictures: int = 1) -> Plan:
        """See Method.prepare. A batch takes as many launches as one picture; a filter needs no workspace."""
        if isinstance(problem, ChainProblem):
            return canny.CannyPlan(problem, options, pictures)
        return plan_for(problem, pictures)
