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
from typing import Any, Literal

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

LARGE_PIXELS = 2**23
"""From here on narrow lanes, and so more warps, are faster for float32 pictures; below, fewer blocks."""

LINE_BYTES = 128
"""A cache line: see sliding.cu."""

INT8_LARGEST = 127
HALVES_STEP = 2.0**-21
"""Share of the largest weight that two halves may lose; float32 sums of float16 pictures round more than that."""

MMA_GROUP_PIXELS, MMA_DEPTH, MMA_COLUMNS = 4, 16, 8
"""Shape of the products in sliding_mma.cuh."""

Arithmetic = Literal["fma", "dp4a", "mma"]
ARITHMETIC_NAMES: dict[Arithmetic, str] = {
    "fma": "float32 FMA",
    "dp4a": "exact integers, dp4a",
    "mma": "tensor cores, {} weights and {} sums",
}


@dataclass(frozen=True)
class Tile:
    """How the strips are cut: the macros of sliding.cu that change speed and nothing else."""

    lane_pixels: int
    """Output pixels a lane computes in a row."""
    steps_ahead: int
    """Steps (of one output row) whose input rows are under way while one is computed."""
    warps: int
    """Warps that share a tile and a ring: one block."""
    min_blocks: int
    """Blocks that must fit a multiprocessor: caps the registers."""
    strip_rows: int
    """Output rows of a strip, about: made such that every resident block gets the same number of strips."""
    arithmetic: Arithmetic


def tile_for(problem: Problem) -> Tile:
    """The tile that measured fastest (docs/kernels-tried.md) for the sample size, stride and directions."""
    arithmetic = arithmetic_for(problem)
    wide = problem.dtype.itemsize == 4
    if problem.stride > 1:
        return Tile(2 if wide else 4, 1, 1, 16, 3, arithmetic)
    if arithmetic == "mma":
        if problem.directions > 1:
            return Tile(8, 3, 2, 4, 40, arithmetic) if problem.dtype == np.uint8 else Tile(4, 3, 2, 5, 40, arithmetic)
        return Tile(8, 3, 4, 4, 40, arithmetic) if problem.dtype == np.uint8 else Tile(8, 2, 2, 6, 40, arithmetic)
    if arithmetic == "dp4a":
        return Tile(8, 3, 4, 4, 9, arithmetic)
    if problem.directions > 1:
        return Tile(2 if wide else 4, 2, 4, 4, 16, arithmetic)
    if not wide:
        return Tile(8, 2, 4, 3, 24, arithmetic)
    if problem.output_height * problem.output_width >= LARGE_PIXELS:
        return Tile(2, 2, 4, 8, 13, arithmetic)
    return Tile(4, 2, 4, 5, 13, arithmetic)


def has_int8_weights(problem: Problem) -> bool:
    """Whether an 8-bit picture and its weights allow exact integer sums."""
    weights = problem.weights
    whole = np.array_equal(weights, np.rint(weights)) and float(np.abs(weights).max()) <= INT8_LARGEST
    return problem.dtype == np.uint8 and whole


def halves(weights: NDArray[np.float32]) -> NDArray[np.float16]:
    """Each weight as the sum of two halves, high and low part: (2, ...)."""
    with np.errstate(over="ignore"):
        high = weights.astype(np.float16)
        low = (weights - high.astype(np.float32)).astype(np.float16)
    return np.stack([high, low])


def has_half_weights(problem: Problem) -> bool:
    """Whether a float16 picture's weights, as two halves each, keep what float32 sums would show."""
    high, low = halves(problem.weights).astype(np.float64)
    largest = float(np.abs(problem.weights).max())
    lost = np.abs(high + low - problem.weights)
    return problem.dtype == np.float16 and bool(np.all(lost <= largest * HALVES_STEP))


def arithmetic_for(problem: Problem) -> Arithmetic:
    """How the strips sum a problem."""
    fits_products = problem.stride == 1 and problem.output_channels == RGB_CHANNELS
    if has_int8_weights(problem):
        return "mma" if fits_products and problem.output_dtype == np.uint8 and _needs_mma(problem) else "dp4a"
    return "mma" if fits_products and has_half_weights(problem) else "fma"


def _needs_mma(problem: Problem) -> bool:
    """Whether dp4a alone would take longer than memory does: all but one 3×3 kernel a channel."""
    return problem.groups == 1 or problem.directions > 1


def dp4a_weights(problem: Problem) -> NDArray[np.int32]:
    """The struct `Weights` of sliding_sums.cuh under WHOLE_WEIGHTS: signed bytes, four to a word."""
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


def mma_weights(problem: Problem) -> NDArray[np.int32]:
    """The struct `Weights` of sliding_mma.cuh: every matrix B (16 samples × 8 columns) as the lanes hold it."""
    dense = problem.dense_weights()
    parts = dense[np.newaxis].astype(np.int8) if problem.dtype == np.uint8 else halves(dense)
    directions, sample_bytes = problem.directions, problem.dtype.itemsize
    pixel_bytes = RGB_CHANNELS * sample_bytes
    products = 3 if directions == 2 else 2
    samples = MMA_GROUP_PIXELS * RGB_CHANNELS // products
    lead = -_halo_bytes(problem) % LINE_BYTES
    matrices = np.zeros((KERNEL_SIZE, products, len(parts), MMA_DEPTH, MMA_COLUMNS), parts.dtype)
    for product in range(products):
        first_pixel = product * samples // RGB_CHANNELS
        phase = (lead + first_pixel * pixel_bytes) % 4 // sample_bytes
        for column in range(samples * directions):
            pixel, channel = divmod(product * samples + column // directions, RGB_CHANNELS)
            start = phase + (pixel - first_pixel) * RGB_CHANNELS
            taps = parts[:, column % directions, channel].transpose(2, 0, 3, 1).reshape(KERNEL_SIZE, len(parts), -1)
            matrices[:, product, :, start : start + taps.shape[-1], column] = taps
    lane = np.arange(LANES)
    per_word = 4 // sample_bytes
    words = MMA_DEPTH // per_word // 4
    depth = (np.arange(words)[:, None, None] * 4 + lane[:, None] % 4) * per_word + np.arange(per_word)
    held = matrices[..., depth, lane[:, None] // 4]
    return np.ascontiguousarray(held).reshape(-1).view(np.int32)


def _halo_bytes(problem: Problem) -> int:
    return problem.padding * RGB_CHANNELS * problem.dtype.itemsize % (LANES * CHUNK_BYTES)


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


def strip_variant(problem: Problem, tile: Tile, aligned_in: bool, aligned_out: bool) -> KernelVariant:
    """The kernel whose blocks walk down strips; aligned where every row of that picture starts on 16 bytes."""
    defines = _rules(problem)
    defines += tuple(
        (name.upper(), value) for name, value in asdict(tile).items() if name not in ("strip_rows", "arithmetic")
    )
    defines += (("ALIGNED_IN", int(aligned_in)), ("ALIGNED_OUT", int(aligned_out)))
    defines += (("HALO_BYTES", _halo_bytes(problem)),)
    if tile.arithmetic == "mma":
        defines += (("USES_MMA", 1),)
    if tile.arithmetic != "fma" and problem.dtype == np.uint8:
        defines += (("WHOLE_WEIGHTS", 1),)
    return KernelVariant("sliding.cu", "sliding", defines)


def has_strips(problem: Problem) -> bool:
    """Whether sliding.cu does it: windows that overlap or touch, and no more than two directions at once."""
    return problem.stride <= LARGEST_STRIP_STRIDE and problem.combine != "maximum"


def variants() -> tuple[KernelVariant, ...]:
    """Representative kernels, for a machine without a GPU to compile."""
    listed = []
    for problem in sample_problems():
        if has_strips(problem):
            listed += [strip_variant(problem, tile_for(problem), aligned, aligned) for aligned in (False, True)]
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

    def __post_init__(self) -> None:
        problem = self.problem
        tile = self.tile = self.tile or tile_for(problem)
        self._pitches = (
            problem.width * RGB_CHANNELS * problem.dtype.itemsize,
            problem.output_width * problem.output_channels * problem.output_dtype.itemsize,
        )
        pack = {"fma": lambda work: work.weights, "dp4a": dp4a_weights, "mma": mma_weights}[tile.arithmetic]
        self._weights = pack(problem)
        self._launches: dict[tuple[bool, bool], Any] = {}
        self.launches = 1
        self._usual = self._launch(self._aligned(0, 0))
        overlap = max(0, KERNEL_SIZE - problem.stride) * (self._strips - 1)
        self.moved_bytes = problem.input_bytes + problem.output_bytes + overlap * self._pitches[0]
        kinds = ("whole 8-bit", "32-bit integer") if problem.dtype == np.uint8 else ("twofold half", "float32")
        self.choice = {
            "kernel": "strips",
            "rows_per_strip": self._rows_per_strip,
            **asdict(tile),
            "arithmetic": ARITHMETIC_NAMES[tile.arithmetic].format(*kinds),
        }

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run. The first arrays that do not start on 16 bytes cost a compile of their own."""
        image_address, out_address = image.data.ptr, out.data.ptr
        launch = self._usual
        if (image_address | out_address) % CHUNK_BYTES:
            aligned = self._aligned(image_address, out_address)
            launch = self._launches.get(aligned) or self._launch(aligned)
        launch.at(image_address, out_address)

    def _aligned(self, image_address: int, out_address: int) -> tuple[bool, bool]:
        in_pitch, out_pitch = self._pitches
        return ((image_address | in_pitch) % CHUNK_BYTES == 0, (out_address | out_pitch) % CHUNK_BYTES == 0)

    def _launch(self, aligned: tuple[bool, bool]) -> Any:
        import cupy

        from edgeconv.methods.cuda.launch import PackedLaunch

        problem, tile = self.problem, self.tile
        assert tile is not None
        kernel = load(strip_variant(problem, tile, *aligned))
        threads = tile.warps * LANES
        resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, 0)
        resident *= cupy.cuda.Device().attributes["MultiProcessorCount"]
        across = -(-problem.output_width // (threads * tile.lane_pixels))
        strips_at_once = max(1, resident // across)
        rows_at_once = -(-problem.output_height // strips_at_once)
        strips = max(1, round(rows_at_once / tile.strip_rows)) * strips_at_once
        self._rows_per_strip = -(-problem.output_height // strips)
        self._strips = -(-problem.output_height // self._rows_per_strip)
        geometry = [problem.height, problem.width, *problem.output_shape[:2], problem.padding]
        geometry += [across, self._rows_per_strip]
        launch = PackedLaunch(kernel, across * self._strips, (threads, 1), np.array(geometry, np.int32), self._weights)
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
