"""Zarr and OME-Zarr (NGFF 0.1 to 0.5) by chunk, through zarr.

A folder that holds an array, or a group with `multiscales`, whose first, finest resolution is taken. Axes are those of
`multiscales`; without it the last axis is the channel where it is 1, 3 or 4 long, else the first one. Of time and depth
the first is taken. A chunk that is not in the store is its fill value: so the format says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS
from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats.npy import DTYPES
from edgeconv.io.image import DEPTH_NOTE, GREY_NOTE
from edgeconv.run.tiled.grid import even_cuts
from edgeconv.run.tiled.sources.base import ChunkLayout, TileSource, as_given, check_size, given_channels, unusable

FORMAT = "Zarr"
CHANNELS = (1, 3, 4)
MARKS = (".zarray", ".zgroup", "zarr.json")
"""Any of these in a folder makes it a Zarr of version 2 or 3."""
OLD_AXES = "tczyx"
"""Of NGFF before it named them."""
RESAVE = "save it as an OME-Zarr with axes c, y, x and 1, 3 or 4 channels"


def is_zarr(path: Path) -> bool:
    """Whether `path` is a folder with a Zarr in it, as far as the system lets one look."""
    try:
        return any((path / mark).is_file() for mark in MARKS)
    except (OSError, ValueError):  # a name too long, a folder that is closed: whoever reads it says so
        return False


def open_zarr(path: Path, rgb: bool = False, channels: int | None = None) -> ZarrSource:
    """Open the finest resolution; with `channels` it may have so many, as an output of a filter bank has.

    Raises ImageReadError.
    """
    import zarr

    from edgeconv.run.tiled.sources.zarr_bounds import BoundedStore

    try:
        node = zarr.open(BoundedStore.at(path), mode="r")
        array, axes, levels = _finest(path, node)
        _bound(path, array)
    except (ImageReadError, MemoryError):
        raise
    except Exception as error:  # whatever metadata that say something else lead to
        raise unusable(path, FORMAT, f"it cannot be opened ({one_line(error)})") from None
    return ZarrSource(path, array, axes, levels, rgb, channels)


def _bound(path: Path, array: Any) -> None:
    """Let no chunk unpack to more than its place in the array; raises ImageReadError where that cannot be said."""
    try:
        array.store.bound(array)
    except ValueError as error:
        raise unusable(path, FORMAT, str(error), "save it with one compression: zstd, blosc, gzip or none") from None


class ZarrSource(TileSource):
    """One array of a Zarr."""

    def __init__(
        self, path: Path, array: Any, axes: str, levels: int, rgb: bool, all_channels: int | None = None
    ) -> None:
        super().__init__(path)
        self._array, self._axes = array, axes
        sizes = dict(zip(axes, array.shape, strict=True))
        channels = sizes.get("c", 1)
        if array.dtype.name not in DTYPES or channels not in (*CHANNELS, all_channels):
            what = f"{channels} channels of {array.dtype}"
            raise unusable(path, FORMAT, f"its layout ({what}) is not supported", RESAVE)
        check_size(path, FORMAT, sizes["y"], sizes["x"])
        chunks = dict(zip(axes, array.chunks, strict=True))
        beside = [sizes[axis] for axis in "tz" if axis in sizes]
        depth = int(np.prod([chunks[axis] for axis in "tz" if axis in chunks], dtype=np.int64))
        self.layout = ChunkLayout(
            height=sizes["y"],
            width=sizes["x"],
            channels=all_channels or given_channels(channels, rgb),
            dtype=array.dtype.newbyteorder("="),
            format=FORMAT,
            notes=_notes(array.dtype, channels, any(count > 1 for count in beside), levels, rgb),
            row_cuts=even_cuts(sizes["y"], chunks["y"]),
            column_cuts=even_cuts(sizes["x"], chunks["x"]),
            stored_bytes_a_pixel=max(channels, chunks.get("c", 1)) * depth * array.dtype.itemsize,
        )

    def load(self, row: int, column: int) -> NDArray[Any]:
        rows, columns = self.span(row, column)
        place = {"y": slice(rows.start, rows.stop), "x": slice(columns.start, columns.stop), "c": slice(None)}
        try:
            stored = np.asarray(self._array[tuple(place.get(axis, 0) for axis in self._axes)])
        except MemoryError:
            raise
        except Exception as error:  # whatever a codec says of a damaged chunk
            raise self.damaged(row, column, error) from None
        kept = [axis for axis in self._axes if axis in place]
        if "c" not in kept:
            stored, kept = stored[np.newaxis], ["c", *kept]
        return as_given(stored.transpose([kept.index(axis) for axis in "yxc"]), self.layout.channels)

    def close(self) -> None:
        """Nothing is held open."""


def _finest(path: Path, node: Any) -> tuple[Any, str, int]:
    """The array, its axes, one letter each, and how many resolutions there are."""
    if hasattr(node, "shape"):
        return node, _axes_of(path, node.shape), 1
    attributes = dict(node.attrs)
    scales = attributes.get("ome", attributes).get("multiscales")
    if scales:
        array = node[scales[0]["datasets"][0]["path"]]
        if not hasattr(array, "shape"):
            raise unusable(path, FORMAT, "its 'multiscales' name no array", RESAVE)
        named = scales[0].get("axes") or list(OLD_AXES[-array.ndim :])
        axes = "".join(axis["name"] if isinstance(axis, dict) else axis for axis in named)
        if len(axes) != array.ndim or len(set(axes)) != len(axes) or not {"x", "y"} <= set(axes) <= set(OLD_AXES):
            raise unusable(path, FORMAT, f"its axes '{axes}' are not of {', '.join(OLD_AXES)}", RESAVE)
        return array, axes, len(scales[0]["datasets"])
    arrays = [array for _, array in node.arrays()]
    if len(arrays) != 1:
        raise unusable(path, FORMAT, f"it has {len(arrays)} arrays and no 'multiscales' that says which", RESAVE)
    return arrays[0], _axes_of(path, arrays[0].shape), 1


def _axes_of(path: Path, shape: tuple[int, ...]) -> str:
    """Axes where nothing names them."""
    if len(shape) == 2:
        return "yx"
    if len(shape) == 3 and shape[2] in CHANNELS:
        return "yxc"
    if len(shape) == 3 and shape[0] in CHANNELS:
        return "cyx"
    raise unusable(path, FORMAT, f"an array of shape {shape} without named axes is not a picture", RESAVE)


def _notes(dtype: np.dtype[Any], channels: int, deep: bool, levels: int, rgb: bool) -> tuple[str, ...]:
    notes = []
    if channels == GREY_CHANNELS and rgb:
        notes.append(GREY_NOTE)
    if channels == max(CHANNELS):
        notes.append("alpha channel dropped")
    if deep:
        notes.append("first of several times or depths taken")
    if levels > 1:
        notes.append(f"finest of {levels} resolutions taken")
    if dtype == np.uint16:
        notes.append(DEPTH_NOTE)
    return tuple(notes)
