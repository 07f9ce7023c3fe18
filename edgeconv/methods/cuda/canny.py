"""canny on CUDA: one pass over the picture finds the edge pixels, three over their map do the hysteresis.

    canny_thin.cu         smoothing, gradient and thinning of uint8 pictures, everything in registers
    canny_tile.cu         the same by tiles in shared memory, for uint16 and for pictures narrower than a thread's reach
    canny_hysteresis.cu   what strong edge pixels are connected to, and the expansion to bytes
    canny_map.cuh         the map between them, two bits a pixel

All work stays on the GPU and the number of launches is always four, whatever the picture: pieces of edges that leave
a tile are joined in a forest, not followed from tile to tile. A batch of pictures is one call. The result is byte for
byte that of edgeconv/core/canny.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.canny import BLURS, CANNY_DTYPES, CannySettings, check_picture
from edgeconv.errors import UsageError
from edgeconv.hardware.cuda.kernels import KernelVariant, load, resident_blocks
from edgeconv.methods.cuda.kernel_args import WARP, Defines, unique

# --- kernels ----------------------------------------------------------------------------------------------------

THIN_PIXELS = 8
"""Of a thread of canny_thin.cu, and of a unit of the map."""
THIN_REACH = 4
"""Pixels that it reads on either side: a picture at least that much wider has at most one edge in a thread's row."""
THIN_THREADS = 128
TILE_WIDTH, TILE_HEIGHT, TILE_THREADS = 32, 16, 256
"""Of canny_tile.cu."""
SIDE = 64
"""Of the tiles of canny_hysteresis.cu, which are a warp's."""
HYSTERESIS_WARPS = 4
NODES = 4 * SIDE
"""Border pixels of a tile; corners are two."""

MOST_ROW_BYTES = (1 << 32) - 1
"""From one row to the next: canny_thin.cu multiplies by 32 bits."""
LARGEST_PAIR = 2047
"""The largest whole number of a pair (canny_pairs.cuh); an L1 magnitude of 8 bits is at most 2,040."""
LARGEST_SQUARE = 1 << 22
"""Above every squared magnitude of 8 bits, 2,080,800."""
SQUARE_UNIT = 2.0**-48
"""What squared magnitudes of pairs, which count in 2^-24, count in."""
LARGEST_LIMIT = 1 << 62
"""Above every magnitude of 16 bits, squared or not."""

THIN_GEOMETRY = np.dtype(
    [
        ("picture_bytes", np.int64),
        ("row_bytes", np.uint32),
        *((name, np.int32) for name in ("height", "width", "pictures", "columns", "strips", "rows_per_strip")),
        ("row_units", np.int32),
        *((name, np.uint32) for name in ("low", "high")),
    ],
    align=True,
)
"""`struct ThinGeometry` of canny_thin.cu."""
TILE_GEOMETRY = np.dtype(
    [
        *((name, np.int64) for name in ("row_bytes", "picture_bytes", "low", "high")),
        *((name, np.int32) for name in ("height", "width", "pictures", "tiles_across", "tiles_down", "row_units")),
    ],
    align=True,
)
"""`struct TileGeometry` of canny_tile.cu."""
MAP_GEOMETRY = np.dtype(
    [
        *((name, np.int32) for name in ("height", "width", "pictures", "tiles_across", "tiles_down", "late")),
        *((name, np.int64) for name in ("out_row_bytes", "out_picture_bytes")),
    ],
    align=True,
)
"""`struct MapGeometry` of canny_hysteresis.cu."""


def _resident_blocks(channels: int, settings: CannySettings, aligned: bool) -> int:
    """Blocks of canny_thin.cu that must fit a multiprocessor: as many as spill no registers on any architecture."""
    if channels > 1 or (settings.l2 and settings.blur == max(BLURS) and not aligned):
        return 2
    return 3 if settings.l2 or settings.blur else 4


def _shared_defines(channels: int, settings: CannySettings) -> Defines:
    return (("CHANNELS", channels), ("BLUR", settings.blur), *((("L2", 1),) if settings.l2 else ()))


def thin_variant(channels: int, settings: CannySettings, aligned: bool) -> KernelVariant:
    """The first pass of uint8 pictures; `aligned` where the first pixel of every thread starts on 8 bytes."""
    speed = (("THREADS", THIN_THREADS), ("MIN_BLOCKS", _resident_blocks(channels, settings, aligned)))
    defines = (*_shared_defines(channels, settings), ("ALIGNED", int(aligned)), *speed)
    return KernelVariant("methods/cuda/canny_thin.cu", "canny_thin", defines)


def tile_variant(dtype: str, channels: int, settings: CannySettings) -> KernelVariant:
    """The first pass of any picture."""
    defines = (("SAMPLE", dtype), *_shared_defines(channels, settings))
    return KernelVariant("methods/cuda/canny_tile.cu", "canny_tile", defines)


def hysteresis_variant(entry: str, aligned: bool) -> KernelVariant:
    """A pass of the hysteresis; `aligned` where every row of the output starts on 16 bytes."""
    return KernelVariant("methods/cuda/canny_hysteresis.cu", entry, (("ALIGNED", int(aligned)),))


def variants() -> tuple[KernelVariant, ...]:
    """All kernels, for a machine without a GPU to compile."""
    listed = [hysteresis_variant(entry, True) for entry in ("canny_label", "canny_join", "canny_expand")]
    listed.append(hysteresis_variant("canny_expand", False))
    for channels in (1, 3):
        for l2 in (False, True):
            for blur in BLURS:
                settings = CannySettings(0, 0, l2, blur)
                listed += [thin_variant(channels, settings, aligned) for aligned in (False, True)]
                listed += [tile_variant(dtype, channels, settings) for dtype in CANNY_DTYPES]
    return unique(listed)


# --- plans ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PictureRows:
    """Where the rows of a batch lie: bytes from its start to row 1, and to picture 1."""

    address: int
    row_bytes: int
    picture_bytes: int

    def on(self, multiple: int) -> bool:
        """Whether every row starts on a multiple of so many bytes."""
        return (self.address | self.row_bytes | self.picture_bytes) % multiple == 0


class CannyCudaPlan:
    """Canny of pictures of one shape and type on the current GPU. Not for two threads at once.

    `run` puts four launches in CuPy's current stream, allocates nothing where it is given `out` and rows that lie in
    one piece, and does not wait.
    """

    launches = 4

    def __init__(self, shape: Sequence[int], dtype: Any, settings: CannySettings, pictures: int | None = None) -> None:
        kind = np.dtype(dtype)
        sample = check_picture(np.broadcast_to(np.zeros((), kind), tuple(shape)))
        if pictures is not None and pictures < 1:
            raise UsageError(f"A batch of canny has at least one picture, not {pictures}.")
        import cupy

        self.settings = settings
        self.pictures = pictures or 1
        self.height, self.width = sample.shape[:2]
        self.channels = 1 if sample.ndim == 2 else sample.shape[2]
        self.dtype = kind
        batch = () if pictures is None else (pictures,)
        self._has_batch, self._has_channels = pictures is not None, len(shape) == 3
        self.input_shape = (*batch, *shape)
        self.output_shape = (*batch, self.height, self.width)
        self.by_strips = kind == np.uint8 and self.width >= THIN_PIXELS + THIN_REACH
        tiles_across, tiles_down = -(-self.width // SIDE), -(-self.height // SIDE)
        tiles = tiles_across * tiles_down * self.pictures
        shapes = _workspace(self.height, self.width, self.pictures)
        self._map, self._borders, self._parents = (cupy.empty(shape, its_type) for shape, its_type in shapes)
        self._row_units = self._map.shape[2]
        self.workspace_bytes = workspace_bytes_of(self.height, self.width, self.pictures)
        self._map_geometry = np.zeros(1, MAP_GEOMETRY)
        late = -self.width % THIN_PIXELS if self.by_strips else 0
        self._map_geometry[0] = (
            self.height, self.width, self.pictures, tiles_across, tiles_down, late, self.width, self.height * self.width
        )  # fmt: skip
        self._tiles = tiles
        self._hysteresis: dict[bool, tuple[Any, ...]] = {}
        self._first: dict[bool, tuple[Any, NDArray[Any]]] = {}
        self._run_hysteresis_on(True)
        self._first_pass_on(self.by_strips and self.width % THIN_PIXELS == 0)

    def run(self, image: Any, out: Any = None) -> Any:
        """The edges (H, W) of a picture, uint8, 0 or 255; with a batch axis where the plan has one.

        `image` and `out` are CuPy arrays; of a view whose pixels do not lie side by side a copy is taken.
        """
        import cupy

        self._check("picture", image, self.input_shape, self.dtype)
        if out is None:
            out = cupy.empty(self.output_shape, np.uint8)
        self._check("output", out, self.output_shape, np.dtype(np.uint8))
        source = self._source(image) or self._source(cupy.ascontiguousarray(image))
        target, written = rows_of(out, self._has_batch, has_channels=False), out
        if target is None:
            written = cupy.empty(self.output_shape, np.uint8)
            target = rows_of(written, self._has_batch, has_channels=False)
        assert source is not None
        assert target is not None
        self._launch(source, target, None)
        if written is not out:
            out[...] = written
        return out

    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        """`run` on C-contiguous arrays that the caller has checked, on the stream of that address if it has one."""
        row_bytes = self.width * self.channels * self.dtype.itemsize
        source = PictureRows(image_address, row_bytes, self.height * row_bytes)
        self._launch(source, PictureRows(out_address, self.width, self.height * self.width), stream)

    def passes(self, image: Any, out: Any) -> tuple[Callable[[], None], ...]:
        """The launches of `run` one by one, in their order: to measure them, and to look at `edge_map` after the first.

        Rows must lie in one piece. Each pass overwrites what the one before it left.
        """
        source, target = self._source(image), rows_of(out, self._has_batch, has_channels=False)
        assert source is not None
        assert target is not None
        return (partial(self._launch_first_pass, source, None), *self._hysteresis_passes(target, None))

    def edge_map(self) -> NDArray[np.uint8]:
        """On the host, after the first of `passes`: what `core.canny.thin` gives, 0, 1 weak or 2 strong.

        (pictures, H, W).
        """
        units = np.asarray(self._map.get() if hasattr(self._map, "get") else self._map).astype(np.uint32)
        pixel = np.arange(THIN_PIXELS)
        two_bits = units[..., np.newaxis] >> (pixel // 2 * 2 + pixel % 2 * 8) & 3
        levels = ((two_bits & 1) + (two_bits >> 1)).astype(np.uint8).reshape(self.pictures, self.height, -1)
        late = int(self._map_geometry["late"][0])
        if not late:
            return np.ascontiguousarray(levels[:, :, : self.width])
        before = self.width - self.width % THIN_PIXELS
        return np.concatenate((levels[:, :, :before], levels[:, :, before + late : before + THIN_PIXELS]), axis=2)

    def _source(self, image: Any) -> PictureRows | None:
        return rows_of(image, self._has_batch, self._has_channels)

    # --- launches ---

    def _launch(self, source: PictureRows, target: PictureRows, stream: int | None) -> None:
        self._launch_first_pass(source, stream)
        for launch in self._hysteresis_passes(target, stream):
            launch()

    def _hysteresis_passes(self, target: PictureRows, stream: int | None) -> tuple[Callable[[], None], ...]:
        self._map_geometry["out_row_bytes"] = target.row_bytes
        self._map_geometry["out_picture_bytes"] = target.picture_bytes
        label, join, expand = self._run_hysteresis_on(target.on(16))
        return (
            partial(label.at, self._map.data.ptr, self._borders.data.ptr, stream),
            partial(join.at, self._borders.data.ptr, self._parents.data.ptr, stream),
            partial(expand.at, self._map.data.ptr, target.address, stream),
        )

    def _launch_first_pass(self, source: PictureRows, stream: int | None) -> None:
        aligned = self.by_strips and self.width % THIN_PIXELS == 0 and source.on(THIN_PIXELS)
        launch, geometry = self._first_pass_on(aligned)
        geometry["row_bytes"], geometry["picture_bytes"] = source.row_bytes, source.picture_bytes
        launch.at(source.address, self._map.data.ptr, stream)

    def _run_hysteresis_on(self, aligned: bool) -> tuple[Any, ...]:
        """The launches of the hysteresis, for an output whose rows start on 16 bytes or not."""
        from edgeconv.hardware.cuda.launch import PackedLaunch

        if aligned not in self._hysteresis:
            blocks, threads = -(-self._tiles // HYSTERESIS_WARPS), (HYSTERESIS_WARPS * WARP, 1)
            parents, geometry = np.uint64(self._parents.data.ptr), self._map_geometry
            self._hysteresis[aligned] = (
                PackedLaunch(load(hysteresis_variant("canny_label", True)), blocks, threads, parents, geometry),
                PackedLaunch(load(hysteresis_variant("canny_join", True)), blocks, threads, geometry),
                PackedLaunch(load(hysteresis_variant("canny_expand", aligned)), blocks, threads, parents, geometry),
            )
        return self._hysteresis[aligned]

    def _first_pass_on(self, aligned: bool) -> tuple[Any, NDArray[Any]]:
        """The launch of the first pass with its geometry, whose pitches change from call to call."""
        if aligned not in self._first:
            self._first[aligned] = self._strips(aligned) if self.by_strips else self._by_tiles()
        return self._first[aligned]

    def _strips(self, aligned: bool) -> tuple[Any, NDArray[Any]]:
        from edgeconv.hardware.cuda.launch import PackedLaunch

        kernel = load(thin_variant(self.channels, self.settings, aligned))
        columns = -(-self.width // THIN_PIXELS)
        at_once = resident_blocks(kernel, THIN_THREADS) * THIN_THREADS
        rows = strip_rows(self.height, columns * self.pictures, at_once, self.settings.blur)
        strips = -(-self.height // rows)
        low, high = limits_of_pairs(self.settings)
        geometry = np.zeros(1, THIN_GEOMETRY)
        geometry[0] = (
            0, 0, self.height, self.width, self.pictures, columns, strips, rows, self._row_units, low, high
        )  # fmt: skip
        blocks = -(-columns * strips * self.pictures // THIN_THREADS)
        return PackedLaunch(kernel, blocks, (THIN_THREADS, 1), geometry), geometry

    def _by_tiles(self) -> tuple[Any, NDArray[Any]]:
        from edgeconv.hardware.cuda.launch import PackedLaunch

        kernel = load(tile_variant(self.dtype.name, self.channels, self.settings))
        across, down = -(-self.width // TILE_WIDTH), -(-self.height // TILE_HEIGHT)
        low, high = (min(limit, LARGEST_LIMIT) for limit in self.settings.limits)
        geometry = np.zeros(1, TILE_GEOMETRY)
        geometry[0] = (0, 0, low, high, self.height, self.width, self.pictures, across, down, self._row_units)
        return PackedLaunch(kernel, across * down * self.pictures, (TILE_THREADS, 1), geometry), geometry

    def _check(self, what: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if tuple(array.shape) != shape or array.dtype != dtype:
            wanted, found = ("×".join(map(str, sizes)) for sizes in (shape, array.shape))
            raise UsageError(
                f"This plan of canny needs a {what} of {wanted} {dtype.name}, not {found} {array.dtype.name}."
            )


def plan_canny(shape: Sequence[int], dtype: Any, settings: CannySettings, pictures: int | None = None) -> CannyCudaPlan:
    """A plan for pictures of a shape, (H, W), (H, W, 1) or (H, W, 3), and a type; `pictures` in a batch, if it is one.

    Raises UsageError for another shape or type.
    """
    return CannyCudaPlan(shape, dtype, settings, pictures)


def _workspace(height: int, width: int, pictures: int) -> tuple[tuple[tuple[int, ...], type[np.generic]], ...]:
    """Shapes and types: the map, the border pixels of tiles (all, and those not decided), and the parents of nodes."""
    tiles_across, tiles_down = -(-width // SIDE), -(-height // SIDE)
    tiles = tiles_across * tiles_down * pictures
    return (
        ((pictures, height, tiles_across * SIDE // THIN_PIXELS), np.uint16),
        ((tiles, 2, NODES // WARP), np.uint32),
        ((1 + tiles * NODES,), np.int32),
    )


def workspace_bytes_of(height: int, width: int, pictures: int = 1) -> int:
    """What a plan for such pictures holds, without making it."""
    return sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in _workspace(height, width, pictures))


def rows_of(array: Any, has_batch: bool, has_channels: bool) -> PictureRows | None:
    """Where the rows of (pictures, H, W, channels) lie, of which axes may be left out; None where the samples of a row
    do not lie side by side, or rows not one behind another."""
    shape, strides = list(array.shape), list(array.strides)
    if not has_batch:
        shape.insert(0, 1)
        strides.insert(0, 0)
    if not has_channels:
        shape.append(1)
        strides.append(array.dtype.itemsize)
    (pictures, height, width, channels), item = shape, array.dtype.itemsize
    # The step along an axis of length one means nothing.
    row_bytes = strides[1] if height > 1 else width * channels * item
    picture_bytes = strides[0] if pictures > 1 else height * row_bytes
    side_by_side = (channels == 1 or strides[3] == item) and (width == 1 or strides[2] == channels * item)
    if not side_by_side or not width * channels * item <= row_bytes <= MOST_ROW_BYTES or picture_bytes < 0:
        return None
    return PictureRows(int(array.data.ptr), int(row_bytes), int(picture_bytes))


def limits_of_pairs(settings: CannySettings) -> tuple[int, int]:
    """The lower threshold and how far the upper one is above it, as canny_thin.cu takes them."""
    low, high = settings.limits
    if settings.l2:
        low, high = min(low, LARGEST_SQUARE), min(high, LARGEST_SQUARE)
        bits = np.array([low * SQUARE_UNIT, (high - low) * SQUARE_UNIT], np.float32).view(np.uint32)
        return int(bits[0]), int(bits[1])
    low, high = min(low, LARGEST_PAIR), min(high, LARGEST_PAIR)
    return low * 0x10001, (high - low) * 0x10001


ROWS_AROUND = 3
"""What the rows above and below a strip cost, in rows of its own: nothing is thinned there."""
LONGEST_STRIP = 64


def strip_rows(height: int, columns: int, at_once: int, blur: int) -> int:
    """Rows of a strip, such that the threads that run at once have done all of them soonest.

    `columns` are threads side by side, of all pictures; `at_once` are threads that the GPU holds.
    """
    most = min(height, LONGEST_STRIP)

    def cost(rows: int) -> int:
        waves = -(-columns * -(-height // rows) // at_once)
        return waves * (rows + ROWS_AROUND + blur // 2)

    return min(range(most, 0, -1), key=cost)
