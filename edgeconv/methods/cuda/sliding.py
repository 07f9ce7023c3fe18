"""sliding on CUDA: one pass over HWC, all output channels in one launch, nothing materialised.

Two kernels share the work:

    sliding.cu          warps walk down strips of the picture; strides 1 to 3, where neighbouring windows overlap
    sliding_direct.cu   a thread an output pixel; larger strides, whose windows share nothing

A uint8 picture with whole weights from -127 to 127 (every named filter but luma's) is summed in exact integers, four
products an instruction; all else is float32 FMA. Weights go in as a kernel parameter, so a new filter compiles
nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.filters import RGB_CHANNELS
from edgeconv.geometry import KERNEL_SIZE
from edgeconv.methods.base import Method, Options, Plan
from edgeconv.methods.cuda.kernels import KernelVariant, load
from edgeconv.methods.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.cuda.product import sample_problems, unique
from edgeconv.problem import Problem

LANES = 32
CHUNK_BYTES = 16
"""What one asynchronous copy moves; rows that start on a multiple of it take the short way."""

DIRECT_THREADS = (32, 8)
LARGEST_STRIP_STRIDE = KERNEL_SIZE

INT8_LARGEST = 127


@dataclass(frozen=True)
class Tile:
    """How the strips are cut: the macros of sliding.cu that change speed and nothing else."""

    lane_pixels: int
    """Output pixels a lane computes in a row."""
    steps_ahead: int
    """Steps (of one output row) whose input rows are under way while one is computed."""
    warps: int
    """Warps a block."""
    min_blocks: int
    """Blocks that must fit a multiprocessor: caps the registers."""


def tile_for(problem: Problem) -> Tile:
    """The tile that measured fastest (docs/kernels-tried.md) for the sample size, stride and directions."""
    if problem.stride > 1:
        return Tile(4, 1, 1, 6)
    if problem.directions > 1:
        return Tile(4, 3, 2, 8)
    return Tile({1: 8, 2: 4, 4: 4}[problem.dtype.itemsize], 3, 2, 8)


def has_int8_weights(problem: Problem) -> bool:
    """Whether an 8-bit picture and its weights allow exact sums by dp4a."""
    weights = problem.weights
    whole = np.array_equal(weights, np.rint(weights)) and float(np.abs(weights).max()) <= INT8_LARGEST
    return problem.dtype == np.uint8 and whole


def integer_weights(problem: Problem) -> NDArray[np.int32]:
    """The struct `Weights` of sliding.cu under USES_DP4A, as 32-bit words: signed bytes, four to a word."""
    weights = problem.weights.astype(np.int8)
    directions, out_channels, in_group = weights.shape[:3]
    if in_group == 1:
        packed = np.zeros((directions, out_channels, KERNEL_SIZE, 2, 4), np.int8)
        for shift in range(2):
            packed[..., shift, shift : shift + KERNEL_SIZE] = weights[:, :, 0]
    else:
        taps = KERNEL_SIZE * RGB_CHANNELS
        rows = weights.transpose(0, 1, 3, 4, 2).reshape(directions, out_channels, KERNEL_SIZE, taps)
        packed = np.zeros((directions, 4, out_channels, KERNEL_SIZE, 12), np.int8)
        for phase in range(4):
            packed[:, phase, ..., phase : phase + taps] = rows
    return packed.reshape(-1).view(np.int32)


def _rules(problem: Problem) -> tuple[tuple[str, str | int], ...]:
    """The macros that both kernels share."""
    defines: list[tuple[str, str | int]] = [
        ("INPUT", problem.dtype.name),
        ("OUTPUT", problem.output_dtype.name),
        ("BORDER", problem.border),
        ("COMBINE", problem.combine),
        ("STORE", problem.output_mode),
        ("DIRECTIONS", problem.directions),
        ("OUT_CHANNELS", problem.output_channels),
        ("IN_GROUP", int(problem.weights.shape[2])),
        ("STRIDE", problem.stride),
    ]
    if problem.dtype == np.float16:
        defines.append(("USES_FLOAT16", 1))
    return tuple(defines)


def direct_variant(problem: Problem) -> KernelVariant:
    """The kernel with a thread an output pixel."""
    return KernelVariant("sliding_direct.cu", "sliding_direct", _rules(problem))


def strip_variant(problem: Problem, tile: Tile, aligned: bool) -> KernelVariant:
    """The kernel whose warps walk down strips; `aligned` where every row of both pictures starts on a chunk."""
    defines = _rules(problem)
    defines += tuple((name.upper(), value) for name, value in asdict(tile).items())
    halo = problem.padding * RGB_CHANNELS * problem.dtype.itemsize % (LANES * CHUNK_BYTES)
    defines += (("ALIGNED", int(aligned)), ("HALO_BYTES", halo))
    if has_int8_weights(problem):
        defines += (("USES_DP4A", 1),)
    return KernelVariant("sliding.cu", "sliding", defines)


def has_strips(problem: Problem) -> bool:
    """Whether sliding.cu does it: windows that overlap, and no more than two directions at once."""
    return problem.stride <= LARGEST_STRIP_STRIDE and problem.combine != "maximum"


def variants() -> tuple[KernelVariant, ...]:
    """Representative kernels, for a machine without a GPU to compile."""
    listed = []
    for problem in sample_problems():
        if has_strips(problem):
            listed += [strip_variant(problem, tile_for(problem), aligned) for aligned in (False, True)]
        listed.append(direct_variant(problem))
    return unique(listed)


@dataclass
class DirectPlan(Plan):
    """A thread an output pixel."""

    def __post_init__(self) -> None:
        from edgeconv.methods.cuda.launch import PackedLaunch

        problem = self.problem
        across, down = DIRECT_THREADS
        blocks = -(-problem.output_width // across) * -(-problem.output_height // down)
        geometry = [problem.height, problem.width, *problem.output_shape[:2], problem.padding]
        kernel = load(direct_variant(problem))
        self._launch = PackedLaunch(kernel, blocks, DIRECT_THREADS, np.array(geometry, np.int32), problem.weights)
        self.launches = 1
        self.choice = {"kernel": "direct", "arithmetic": "float32 FMA"}

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run."""
        self._launch(image, out)


@dataclass
class StripPlan(Plan):
    """Warps that walk down strips."""

    tile: Tile | None = None
    waves: int = 1
    """How many tiles each resident warp gets, one after another."""
    strip_rows: int | None = None

    def __post_init__(self) -> None:
        problem = self.problem
        tile = self.tile = self.tile or tile_for(problem)
        pitches = (
            problem.width * RGB_CHANNELS * problem.dtype.itemsize,
            problem.output_width * problem.output_channels * problem.output_dtype.itemsize,
        )
        self._aligned_rows = all(pitch % CHUNK_BYTES == 0 for pitch in pitches)
        integers = has_int8_weights(problem)
        self._weights = integer_weights(problem) if integers else problem.weights
        self._launches: dict[bool, Any] = {}
        self.launches = 1
        self._launch(self._aligned_rows)
        overlap = max(0, KERNEL_SIZE - problem.stride) * (self._strips - 1)
        self.moved_bytes = problem.input_bytes + problem.output_bytes + overlap * pitches[0]
        self.choice = {
            "kernel": "strips",
            "arithmetic": "exact integers (dp4a)" if integers else "float32 FMA",
            "rows_per_strip": self._rows_per_strip,
            **asdict(tile),
        }

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run. The first arrays that do not start on 16 bytes cost a compile of their own."""
        aligned = self._aligned_rows and (image.data.ptr | out.data.ptr) % CHUNK_BYTES == 0
        (self._launches.get(aligned) or self._launch(aligned))(image, out)

    def _launch(self, aligned: bool) -> Any:
        import cupy

        from edgeconv.methods.cuda.launch import PackedLaunch

        problem, tile = self.problem, self.tile
        assert tile is not None
        kernel = load(strip_variant(problem, tile, aligned))
        resident_blocks = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            kernel.kernel.ptr, tile.warps * LANES, 0
        )
        resident = resident_blocks * tile.warps * cupy.cuda.Device().attributes["MultiProcessorCount"]
        across = -(-problem.output_width // (LANES * tile.lane_pixels))
        strips = max(1, self.waves * resident // across)
        self._rows_per_strip = self.strip_rows or -(-problem.output_height // strips)
        self._strips = -(-problem.output_height // self._rows_per_strip)
        geometry = [problem.height, problem.width, *problem.output_shape[:2], problem.padding]
        geometry += [across, self._rows_per_strip, self._strips]
        blocks = -(-across * self._strips // tile.warps)
        launch = PackedLaunch(kernel, blocks, (LANES, tile.warps), np.array(geometry, np.int32), self._weights)
        self._launches[aligned] = launch
        return launch


class Sliding(Method):
    """The CUDA method `sliding`."""

    def unavailable_reason(self) -> str | None:
        """See Method.unavailable_reason."""
        return cuda_unavailable_reason()

    def prepare(self, problem: Problem, options: Options) -> Plan:
        """See Method.prepare. Any problem can be done; no workspace is needed."""
        return StripPlan(problem) if has_strips(problem) else DirectPlan(problem)
