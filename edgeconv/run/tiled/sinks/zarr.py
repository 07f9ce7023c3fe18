"""An OME-Zarr (NGFF 0.5, Zarr 3) of one resolution: axes c, y, x, a chunk for every piece, compressed by Zstandard.

A filter bank gives all its channels, each in chunks of its own.

It is written into a temporary folder beside its place and then renamed: an older output there is moved aside first,
under a name that is not that of a left-over, and removed last.
"""

from __future__ import annotations

import os
import secrets
import time
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.io import temporary_files
from edgeconv.io.files import pass_permissions_on
from edgeconv.run.tiled.sinks.base import OutputShape, Sink

LEVEL_NAME = "0"
VERSION = "0.5"

REMOVAL_PAUSES = (0.01, 0.05, 0.2, 0.5)
"""If one chunk cannot be written, Zarr's threads continue with others for a moment and create their folders again."""


class ZarrSink(Sink):
    """See the module. Zarr itself spreads the chunks of a tile over its threads."""

    def __init__(self, target: Path, shape: OutputShape, piece: int) -> None:
        import zarr

        super().__init__(target, shape, piece)
        try:
            group = zarr.open_group(str(self.path), mode="w-", zarr_format=3)
            pass_permissions_on(target, self.path)
            self._array = group.create_array(
                LEVEL_NAME,
                shape=(shape.channels, shape.height, shape.width),
                chunks=(shape.channels if shape.pictures == 1 else 1, piece, piece),
                dtype=shape.dtype,
                dimension_names=("c", "y", "x"),
            )
            group.attrs["ome"] = {"version": VERSION, "multiscales": [_multiscale(target)]}
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError):
                raise self.unwritable(error) from None
            raise

    def write(self, row: int, column: int, pixels: NDArray[Any], pool: Executor, threads: int) -> None:
        height, width = pixels.shape[:2]
        try:
            self._array[:, row : row + height, column : column + width] = np.moveaxis(pixels, 2, 0)
        except OSError as error:
            raise self.unwritable(error) from None

    def finish(self) -> None:
        """See Sink.finish: every chunk is a complete file already."""

    def commit(self, replace: bool = True) -> None:
        target = Path(os.path.realpath(self.target))
        aside = target.with_name(f"{target.name}.replaced-{secrets.token_hex(6)}")
        try:
            if replace and target.exists():
                os.rename(target, aside)
            os.rename(self.path, target)
        except OSError as error:
            if aside.exists() and not target.exists():
                os.rename(aside, target)
            raise self.unwritable(error) from None
        temporary_files.end(self.path)
        if os.path.lexists(aside):
            going = temporary_files.begin(target)
            with suppress(OSError):  # what remains of it is a left-over
                os.rename(aside, going)
                temporary_files.remove(going)
            temporary_files.end(going)

    def discard(self) -> None:
        for pause in REMOVAL_PAUSES:
            if not os.path.lexists(self.path):
                break
            with suppress(OSError):
                temporary_files.remove(self.path)
            time.sleep(pause)
        temporary_files.end(self.path)


def _multiscale(target: Path) -> dict[str, Any]:
    """The metadata that viewers of OME-Zarr look for."""
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    scale = {"type": "scale", "scale": [1.0] * len(axes)}
    return {
        "name": target.name.removesuffix(target.suffix),
        "axes": axes,
        "datasets": [{"path": LEVEL_NAME, "coordinateTransformations": [scale]}],
    }
