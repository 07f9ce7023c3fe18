"""Zarr and OME-Zarr (NGFF 0.1 to 0.5) by chunk, through zarr.

A folder that holds an array, or a group with `multiscales`, whose first, finest resolution is taken. Axes are those of
`multiscales`; without it the last axis is the channel where it is 1, 3 or 4 long, else the first one. Of time and depth
the first is taken. A chunk that is not in the store is its fill value: so the format says.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.filters import GREY_CHANNELS
from edgeconv.errors import ImageReadError, one_line
from edgeconv.io.formats.npy import DTYPES
from edgeconv.io.read_limits import ReadRules
from edgeconv.run.sources.base import TileSource, check_decoded, check_sides, unusable

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


def open_zarr(path: Path, rules: ReadRules) -> ZarrSource:
    """Open the finest resolution. Raises ImageReadError."""
    import zarr

    for folder, _, names in os.walk(path):
        if any(not os.path.isfile(os.path.join(folder, name)) for name in names):
            raise unusable(path, FORMAT, f"not every file in {Path(folder).name} is a plain file", RESAVE)
    try:
        array, axes, levels = _finest(path, zarr.open(str(path), mode="r"))
        return ZarrSource(path, array, axes, levels, rules)
    except (ImageReadError, MemoryError):
        raise
    except Exception as error:  # whatever metadata that say something else lead to
        raise unusable(path, FORMAT, f"it cannot be opened ({one_line(error)})") from None


def stored_block(array: Any, axes: str, rows: range, columns: range) -> NDArray[Any]:
    """A block of an array of zarr as HWC with all its channels, of which `axes` has a letter each."""
    place = {"y": slice(rows.start, rows.stop), "x": slice(columns.start, columns.stop), "c": slice(None)}
    stored = np.asarray(array[tuple(place.get(axis, 0) for axis in axes)])
    kept = [axis for axis in axes if axis in place]
    if "c" not in kept:
        stored, kept = stored[np.newaxis], ["c", *kept]
    return stored.transpose([kept.index(axis) for axis in "yxc"])


class ZarrSource(TileSource):
    """One array of a Zarr."""

    format = FORMAT

    def __init__(self, path: Path, array: Any, axes: str, levels: int, rules: ReadRules) -> None:
        sizes, chunks = dict(zip(axes, array.shape, strict=True)), dict(zip(axes, array.chunks, strict=True))
        channels = sizes.get("c", GREY_CHANNELS)
        dtype = array.dtype.newbyteorder("=")
        if channels not in CHANNELS or dtype.name not in DTYPES:
            what = f"{channels} channels of {array.dtype}"
            raise unusable(path, FORMAT, f"its layout ({what}) is not supported", RESAVE)
        super().__init__(path, channels, dtype, math.prod(chunks.values()) // (chunks["y"] * chunks["x"]), rules.rgb)
        check_sides(path, FORMAT, sizes["y"], sizes["x"])
        samples = math.prod(array.chunks) // chunks.get("c", 1)
        check_decoded(path, FORMAT, samples, rules, "a chunk")
        self._array, self._axes = array, axes
        self.height, self.width = sizes["y"], sizes["x"]
        self.chunk = chunks["y"], chunks["x"]
        deep = any(size > 1 for axis, size in sizes.items() if axis in "tz")
        taken = {"first of several times or depths taken": deep, f"finest of {levels} resolutions taken": levels > 1}
        self.notes = self.notes_of(taken, alpha=channels == max(CHANNELS))

    def load(self, rows: range, columns: range) -> NDArray[Any]:
        try:
            return self.as_given(stored_block(self._array, self._axes, rows, columns))
        except MemoryError:
            raise
        except Exception as error:  # whatever a codec says of a damaged chunk
            raise self.damaged(rows, columns, error) from None


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
