"""Zarr and OME-Zarr (NGFF 0.3 to 0.5) by chunk, through zarr.

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
from edgeconv.io.formats.base import BadPicture
from edgeconv.io.formats.npy import DTYPES
from edgeconv.io.read_limits import ReadRules
from edgeconv.io.reading import MAX_SIDE, check_sides
from edgeconv.run.sources.base import TileSource, check_chunk

CHANNELS = (1, 3, 4)
AXES = "tczyx"
"""Those that a picture may have."""
RESAVE = "save it as an OME-Zarr with axes c, y, x and 1, 3 or 4 channels"


def stored_block(array: Any, axes: str, rows: range, columns: range) -> NDArray[Any]:
    """A block of an array of zarr as HWC with all its channels, of which `axes` has a letter each."""
    place = {"y": slice(rows.start, rows.stop), "x": slice(columns.start, columns.stop), "c": slice(None)}
    stored = np.asarray(array[tuple(place.get(axis, 0) for axis in axes)])
    kept = [axis for axis in axes if axis in place]
    if "c" not in kept:
        stored, kept = stored[np.newaxis], ["c", *kept]
    return stored.transpose([kept.index(axis) for axis in "yxc"])


class ZarrSource(TileSource):
    """One array of a Zarr, of the finest resolution."""

    format = "Zarr"

    def __init__(self, path: Path, rules: ReadRules) -> None:
        """Raises BadPicture, and whatever zarr says of metadata that make no sense."""
        import zarr

        for folder, _, names in os.walk(path):
            if any(not os.path.isfile(os.path.join(folder, name)) for name in names):
                raise BadPicture(f"not every file in {Path(folder).name} is a plain file", RESAVE)
        array, axes, levels = _finest(zarr.open(str(path), mode="r"))
        sizes, chunks = dict(zip(axes, array.shape, strict=True)), dict(zip(axes, array.chunks, strict=True))
        channels = sizes.get("c", GREY_CHANNELS)
        dtype = array.dtype.newbyteorder("=")
        if channels not in CHANNELS or dtype.name not in DTYPES:
            raise BadPicture(f"its layout ({channels} channels of {array.dtype}) is not supported", RESAVE)
        super().__init__(path, channels, dtype, math.prod(chunks.values()) // (chunks["y"] * chunks["x"]), rules.rgb)
        check_sides(MAX_SIDE**2, sizes["x"], sizes["y"])
        check_chunk("a chunk", math.prod(array.chunks) // chunks.get("c", 1), rules)
        self._array, self._axes = array, axes
        self.height, self.width = sizes["y"], sizes["x"]
        self.chunk = chunks["y"], chunks["x"]
        deep = any(size > 1 for axis, size in sizes.items() if axis in "tz")
        taken = {"first of several times or depths taken": deep, f"finest of {levels} resolutions taken": levels > 1}
        self.notes = self.notes_of(taken, alpha=channels == max(CHANNELS))

    def stored(self, rows: range, columns: range) -> NDArray[Any]:
        return stored_block(self._array, self._axes, rows, columns)


def _finest(node: Any) -> tuple[Any, str, int]:
    """The array, its axes, one letter each, and how many resolutions there are."""
    if hasattr(node, "shape"):
        return node, _axes_of(node.shape), 1
    attributes = dict(node.attrs)
    scales = attributes.get("ome", attributes).get("multiscales")
    if not scales:
        raise BadPicture("it is a group without 'multiscales' that say which array is the picture", RESAVE)
    array = node[scales[0]["datasets"][0]["path"]]
    if not hasattr(array, "shape"):
        raise BadPicture("its 'multiscales' name no array", RESAVE)
    axes = "".join(axis["name"] if isinstance(axis, dict) else axis for axis in scales[0].get("axes", ()))
    if len(axes) != array.ndim or len(set(axes)) != len(axes) or not {"x", "y"} <= set(axes) <= set(AXES):
        raise BadPicture(f"its axes '{axes}' are not of {', '.join(AXES)}", RESAVE)
    return array, axes, len(scales[0]["datasets"])


def _axes_of(shape: tuple[int, ...]) -> str:
    """Axes where nothing names them."""
    if len(shape) == 2:
        return "yx"
    if len(shape) == 3 and (shape[2] in CHANNELS or shape[0] in CHANNELS):
        return "yxc" if shape[2] in CHANNELS else "cyx"
    raise BadPicture(f"an array of shape {shape} without named axes is not a picture", RESAVE)
