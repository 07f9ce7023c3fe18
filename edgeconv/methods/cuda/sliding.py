"""sliding on CUDA: one pass over HWC, all output channels in one launch, nothing materialised.

Two kernels share the work:

    sliding.cu          blocks walk down strips of the picture; strides 1 to 3, where neighbouring windows overlap
    sliding_direct.cu   one thread per output pixel; larger strides, whose windows share nothing, pictures so small
                        that what a strip waits for at its start is longer than the work, and whole-number pictures
                        whose sums need float64 (exactness.py)

A uint8 picture with whole weights from -127 to 127 (every named filter but luma's) is summed in exact integers, four
products an instruction; all else is float32 FMA. Weights go in as a kernel parameter, so a new filter compiles
nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.exactness import FLOAT32, HALVES_STEP, TWOFOLD_HALF, WHOLE, own_arithmetic, sums_for
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.problem import Problem
from edgeconv.hardware.cuda.kernels import KernelVariant, load
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.base import Method, Options, Plan
from edgeconv.methods.cuda.kernel_args import round_up, rule_defines, sample_problem, sample_problems, unique

LANES = 32
CHUNK_BYTES = 16
"""What one asynchronous copy moves; rows that start on a multiple of it take the short way."""

DIRECT_THREADS = (32, 8)
LARGEST_STRIP_STRIDE = KERNEL_SIZE

DIRECT_PIXELS, DIRECT_FLOAT32_PIXELS = 2**16, 2**18
"""Up to so many output pixels a thread each was faster (256², 512²); the second for float32 at strides 1 and 2."""

LINE_BYTES = 128
"""A cache line: see sliding.cu."""
BARRIER_BYTES, STAGES = 8, 2
MOST_SHARED_BYTES = 48 * 1024
"""What a block of any GPU may have without asking for more."""

INT8_LARGEST = 127
SHORT_LARGEST = 2047
"""Two squares of no more add up below 2^23."""

MMA_GROUP_PIXELS, MMA_DEPTH, MMA_COLUMNS = 4, 16, 8
"""Shape of the products in sliding_mma.cuh."""

Arithmetic = Literal["fma", "dp4a", "mma"]
ARITHMETIC_NAMES: dict[Arithmetic, str] = {
    "fma": "float32 FMA",
    "dp4a": "exact integers, dp4a",
    "mma": "tensor cores, {} weights and {} sums",
}


@dataclass(frozen=True)
class StripTile:
    """How the strips are cut: the macros of sliding.cu that change speed and nothing else, and the strips' height."""

    lane_pixels: int
    """Output pixels a lane computes in a row."""
    step_rows: int
    """Output rows of a step, between two barriers; pairs of them for the tensor cores."""
    steps_ahead: int
    """Steps whose input rows are under way while one is computed."""
    warps: int
    """Warps that share a tile and a ring: one block."""
    min_blocks: int
    """Blocks that must fit a multiprocessor: caps the registers."""
    strip_rows: int
    """Output rows of a strip, about: made such that every resident block gets the same number of strips."""


MACROS = ("lane_pixels", "step_rows", "steps_ahead", "warps", "min_blocks")
"""The fields of Tile that sliding.cu is compiled with."""


def has_int8_weights(problem: Problem) -> bool:
    """Whether an 8-bit picture and its weights allow exact integer sums."""
    weights = problem.weights
    whole = np.array_equal(weights, np.rint(weights)) and float(np.abs(weights).max()) <= INT8_LARGEST
    return problem.dtype == np.uint8 and whole


def has_short_sums(problem: Problem) -> bool:
    """Whether an 8-bit picture's two responses are both at most SHORT_LARGEST in size."""
    taps = problem.weights.reshape(problem.directions, problem.output_channels, -1)
    largest = max(float(np.where(taps * sign > 0, taps * sign, 0).sum(axis=-1).max()) for sign in (1, -1))
    limit = np.iinfo(np.uint8).max * largest
    return problem.dtype == np.uint8 and problem.directions == 2 and limit <= SHORT_LARGEST


def halves(weights: NDArray[np.float32]) -> NDArray[np.float16]:
    """Each weight as the sum of two halves, high and low part: (2, ...)."""
    with np.errstate(over="ignore"):
        high = weights.astype(np.float16)
        low = (weights - high.astype(np.float32)).astype(np.float16)
    return np.stack([high, low])


def has_half_weights(problem: Problem) -> bool:
    """Whether a float16 picture's weights, as two halves each, keep what float32 sums would show."""
    high, low = halves(problem.weights).astype(np.float64)
    largest = np.abs(problem.weights).max(axis=(2, 3, 4), keepdims=True)  # of each direction and output by itself
    with np.errstate(invalid="ignore"):
        lost = np.abs(high + low - problem.weights)
    return problem.dtype == np.float16 and bool(np.all(lost <= largest * HALVES_STEP))


def arithmetic_for(problem: Problem) -> Arithmetic:
    """How the strips sum a problem."""
    fits_products = problem.stride == 1 and problem.output_channels == RGB_CHANNELS
    if has_int8_weights(problem):
        return "mma" if fits_products and problem.output_dtype == np.uint8 and _needs_mma(problem) else "dp4a"
    return "mma" if fits_products and has_half_weights(problem) else "fma"


@dataclass(frozen=True)
class TileRow:
    """A line of TILES: what it is for (nothing said: all), and the tile."""

    tile: StripTile
    arithmetic: Arithmetic | None = None
    stride: int | None = None
    directions: int | None = None
    sample_bytes: int | None = None
    least_pixels: int = 0
    """Of the output."""

    def fits(self, problem: Problem, arithmetic: Arithmetic) -> bool:
        """Whether the line is for this kind of work, in any size."""
        asked = (arithmetic, problem.stride, problem.directions, problem.dtype.itemsize)
        said = (self.arithmetic, self.stride, self.directions, self.sample_bytes)
        return all(mine in (None, its) for mine, its in zip(said, asked, strict=True))


TILES = (
    TileRow(StripTile(4, 4, 1, 4, 6, 31), "mma", directions=2, sample_bytes=1, least_pixels=2**23),
    TileRow(StripTile(8, 2, 1, 2, 8, 13), "mma", directions=2, sample_bytes=1, least_pixels=2**21),
    TileRow(StripTile(4, 2, 1, 4, 4, 10), "mma", directions=2, sample_bytes=1),
    TileRow(StripTile(4, 4, 1, 4, 4, 16), "mma", sample_bytes=1, least_pixels=2**23),
    TileRow(StripTile(4, 2, 1, 4, 4, 16), "mma", sample_bytes=1),
    TileRow(StripTile(4, 4, 1, 2, 6, 62), "mma", directions=2),
    TileRow(StripTile(4, 4, 1, 2, 8, 13), "mma", least_pixels=2**23),
    TileRow(StripTile(4, 2, 1, 2, 8, 10), "mma"),
    TileRow(StripTile(4, 3, 1, 4, 4, 16), "dp4a", stride=1, least_pixels=2**23),
    TileRow(StripTile(4, 2, 1, 4, 4, 13), "dp4a", stride=1),
    TileRow(StripTile(2, 2, 1, 4, 4, 8), stride=1, directions=2, sample_bytes=4),
    TileRow(StripTile(4, 2, 1, 4, 4, 62), stride=1, directions=2),
    TileRow(StripTile(2, 3, 2, 4, 4, 13), stride=1, sample_bytes=4, least_pixels=2**23),
    TileRow(StripTile(2, 3, 1, 4, 6, 10), stride=1, sample_bytes=4, least_pixels=2**21),
    TileRow(StripTile(4, 1, 1, 2, 12, 13), stride=1, sample_bytes=4, least_pixels=2**19),
    TileRow(StripTile(2, 2, 1, 2, 8, 8), stride=1, sample_bytes=4),
    TileRow(StripTile(4, 2, 2, 4, 6, 8), stride=1, sample_bytes=2),
    TileRow(StripTile(8, 1, 1, 4, 4, 31), stride=1),
    TileRow(StripTile(1, 2, 1, 4, 6, 3), stride=2, sample_bytes=4, least_pixels=2**19),
    TileRow(StripTile(2, 1, 2, 4, 4, 4), stride=2, sample_bytes=4),
    TileRow(StripTile(2, 2, 1, 4, 4, 6), stride=2, sample_bytes=2),
    TileRow(StripTile(4, 1, 1, 8, 3, 31), stride=2, directions=2),
    TileRow(StripTile(4, 2, 1, 4, 4, 6), stride=2),
    TileRow(StripTile(1, 1, 1, 4, 6, 3), stride=3, sample_bytes=4),
    TileRow(StripTile(2, 1, 1, 4, 4, 2), stride=3, sample_bytes=2),
    TileRow(StripTile(4, 1, 1, 4, 4, 2)),
)
"""The first line that fits holds. Measured on one NVIDIA H200, by scripts/sweep_cuda_sliding.py."""


def shared_bytes(problem: Problem, tile: StripTile) -> int:
    """Shared memory of a block, at most: the ring and the stage of sliding.cu."""
    lanes = LANES * tile.warps
    in_pixel, out_pixel = RGB_CHANNELS * problem.dtype.itemsize, problem.output_channels * problem.output_dtype.itemsize
    pixels = (lanes * tile.lane_pixels - 1) * problem.stride + KERNEL_SIZE
    row = round_up(LINE_BYTES + pixels * in_pixel + CHUNK_BYTES, LINE_BYTES)
    ring = (1 + tile.steps_ahead) * (tile.step_rows * problem.stride * row + BARRIER_BYTES)
    return ring + STAGES * tile.step_rows * lanes * tile.lane_pixels * out_pixel


def tiles_of(problem: Problem) -> tuple[tuple[int, StripTile], ...]:
    """The tiles for this kind of work, each with the least number of output pixels that it is for, largest first."""
    arithmetic = arithmetic_for(problem)
    fitting = [
        (row.least_pixels, row.tile)
        for row in TILES
        if row.fits(problem, arithmetic) and shared_bytes(problem, row.tile) <= MOST_SHARED_BYTES
    ]
    last = [least for least, _ in fitting].index(0)
    return tuple(fitting[: last + 1])


def tile_for(problem: Problem) -> StripTile:
    """The tile that measured fastest for this work."""
    pixels = problem.output_height * problem.output_width
    return next(tile for least, tile in tiles_of(problem) if pixels >= least)


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
        *rule_defines(problem),
        ("STRIDE", problem.stride),
    ]
    if problem.dtype == np.float16:
        defines.append(("USES_FLOAT16", 1))
    return tuple(defines)


def direct_variant(problem: Problem) -> KernelVariant:
    """The kernel with a thread an output pixel."""
    return KernelVariant("methods/cuda/sliding_direct.cu", "sliding_direct", _rules(problem))


def strip_variant(problem: Problem, tile: StripTile, aligned_in: bool, aligned_out: bool) -> KernelVariant:
    """The kernel whose blocks walk down strips; aligned where every row of that picture starts on 16 bytes."""
    defines = _rules(problem)
    defines += tuple((name.upper(), getattr(tile, name)) for name in MACROS)
    defines += (("ALIGNED_IN", int(aligned_in)), ("ALIGNED_OUT", int(aligned_out)))
    defines += (("HALO_BYTES", _halo_bytes(problem)),)
    arithmetic = arithmetic_for(problem)
    if arithmetic == "mma":
        defines += (("USES_MMA", 1),)
        if has_short_sums(problem):
            defines += (("SHORT_SUMS", 1),)
    if arithmetic != "fma" and problem.dtype == np.uint8:
        defines += (("WHOLE_WEIGHTS", 1),)
    return KernelVariant("methods/cuda/sliding.cu", "sliding", defines)


def has_strips(problem: Problem) -> bool:
    """Whether sliding.cu does it: windows that overlap or touch, two directions at most, sums that float32 holds."""
    overlaps = problem.stride <= LARGEST_STRIP_STRIDE
    return overlaps and problem.combine != "maximum" and sums_for(problem) == "float32"


def is_small(problem: Problem) -> bool:
    """Whether a thread a pixel is faster than strips and stores the same bytes.

    It does in integers, and in float32, where both add in the same order; the tensor cores' sums of float16 differ.
    """
    if arithmetic_for(problem) == "mma" and problem.dtype == np.float16:
        return False
    plain = problem.dtype == np.float32 and problem.stride <= 2
    return problem.output_height * problem.output_width <= (DIRECT_FLOAT32_PIXELS if plain else DIRECT_PIXELS)


def variants() -> tuple[KernelVariant, ...]:
    """Representative kernels, for a machine without a GPU to compile."""
    tiled = (
        sample_problem("laplacian8", "each", "uint16", output_mode="clip"),
        sample_problem("sobel", "each", "uint16", output_mode="abs"),
        sample_problem("scharr", "each", "uint8", output_mode="abs"),
        sample_problem("laplacian8", "luma", "uint8", padding=0, output_mode="abs"),
        sample_problem("sobel", "each", "uint8", stride=2, output_mode="abs"),
        sample_problem("sobel", "each", "uint8", stride=2),
        sample_problem("laplacian8", "each", "uint16", stride=3),
        sample_problem("sobel", "each", "float32"),
        sample_problem("laplacian8", "mix", "float16", stride=2),
    )
    problems = sample_problems()
    listed = [direct_variant(problem) for problem in problems]
    for problem in filter(has_strips, (*problems, *tiled)):
        for _, tile in tiles_of(problem):
            listed += [strip_variant(problem, tile, aligned, aligned) for aligned in (False, True)]
    return unique(listed)


@dataclass
class DirectPlan(Plan):
    """A thread an output pixel."""

    def __post_init__(self) -> None:
        from edgeconv.hardware.cuda.launch import PackedLaunch

        problem = self.problem
        across, down = DIRECT_THREADS
        blocks = -(-problem.output_width // across) * -(-problem.output_height // down)
        geometry = [problem.height, problem.width, *problem.output_shape[:2], problem.padding]
        kernel = load(direct_variant(problem))
        self._launch = PackedLaunch(kernel, blocks, DIRECT_THREADS, np.array(geometry, np.int32), problem.weights)
        self.launches = 1
        self.arithmetic = own_arithmetic(problem)
        self.choice = {"kernel": "direct", "arithmetic": self.arithmetic.name}

    def run(self, image: Any, out: Any) -> None:
        """See Plan.run."""
        self._launch(image, out)


def strip_height(problem: Problem, tile: StripTile, strips_at_once: int) -> int:
    """Output rows of a strip where so many strips are worked on at a time: all of them get the same number in turn.

    But no fewer than pay for the rows that strips share, which count twice where samples are wide. The steps of a
    strip are whole ones, those counted that only bring the rows above its first output.
    """
    rows_at_once = -(-problem.output_height // strips_at_once)
    turns = max(1, round(rows_at_once / tile.strip_rows))
    shared = KERNEL_SIZE - problem.stride
    least = shared * (2 if problem.dtype.itemsize == 4 else 1)
    before = (KERNEL_SIZE - 1) // problem.stride
    rows = max(-(-problem.output_height // (strips_at_once * turns)), least)
    return round_up(rows + before, tile.step_rows) - before


@dataclass
class StripPlan(Plan):
    """Warps that walk down strips."""

    tile: StripTile | None = None

    def __post_init__(self) -> None:
        import cupy

        problem = self.problem
        self.tile = self.tile or tile_for(problem)
        self._pitches = (
            problem.width * RGB_CHANNELS * problem.dtype.itemsize,
            problem.output_width * problem.output_channels * problem.output_dtype.itemsize,
        )
        arithmetic = arithmetic_for(problem)
        pack = {"fma": lambda work: work.weights, "dp4a": dp4a_weights, "mma": mma_weights}[arithmetic]
        self._weights = pack(problem)
        self.arithmetic = FLOAT32 if arithmetic == "fma" else WHOLE if problem.dtype == np.uint8 else TWOFOLD_HALF
        self._arguments: list[Any] = [self._weights]
        if self.arithmetic is TWOFOLD_HALF:
            self._plain_weights = cupy.asarray(problem.weights)  # for what a NaN spoils: mend.cuh
            self.workspace_bytes = int(self._plain_weights.nbytes)
            self._arguments.append(np.uint64(self._plain_weights.data.ptr))
        self._launches: dict[tuple[bool, bool], Any] = {}
        self.launches = 1
        self._usual = self._launch(self._aligned(0, 0))
        overlap = max(0, KERNEL_SIZE - problem.stride) * (self._strips - 1)
        self.moved_bytes = problem.input_bytes + problem.output_bytes + overlap * self._pitches[0]
        kinds = ("whole 8-bit", "32-bit integer") if problem.dtype == np.uint8 else ("twofold half", "float32")
        self.choice = {
            "kernel": "strips",
            "rows_per_strip": self._rows_per_strip,
            **asdict(self.tile),
            "arithmetic": ARITHMETIC_NAMES[arithmetic].format(*kinds),
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

        from edgeconv.hardware.cuda.launch import PackedLaunch

        problem, tile = self.problem, self.tile
        assert tile is not None
        kernel = load(strip_variant(problem, tile, *aligned))
        threads = tile.warps * LANES
        resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, 0)
        resident *= cupy.cuda.Device().attributes["MultiProcessorCount"]
        across = -(-problem.output_width // (threads * tile.lane_pixels))
        strips_at_once = max(1, resident // across)
        self._rows_per_strip = strip_height(problem, tile, strips_at_once)
        self._strips = -(-problem.output_height // self._rows_per_strip)
        geometry = [problem.height, problem.width, *problem.output_shape[:2], problem.padding]
        geometry += [across, self._rows_per_strip]
        arguments = (np.array(geometry, np.int32), *self._arguments)
        launch = PackedLaunch(kernel, across * self._strips, (threads, 1), *arguments)
        self._launches[aligned] = launch
        return launch


class Sliding(Method):
    """The CUDA method `sliding`."""

    def unavailable_reason(self) -> str | None:
        """See Method.unavailable_reason."""
        return cuda_unavailable_reason()

    def prepare(self, problem: Problem, options: Options) -> Plan:
        """See Method.prepare. Any problem can be done; no workspace is needed."""
        return StripPlan(problem) if has_strips(problem) and not is_small(problem) else DirectPlan(problem)
