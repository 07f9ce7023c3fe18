"""Outputs that are written in pieces: one table of kinds, by suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeconv.errors import ImageWriteError
from edgeconv.run.tiled.sinks.base import OutputShape, Sink
from edgeconv.run.tiled.sinks.tiff import TiffSink
from edgeconv.run.tiled.sinks.zarr import ZarrSink


@dataclass(frozen=True)
class SinkKind:
    """One line of the table."""

    name: str
    suffixes: tuple[str, ...]
    """The first is that of an output which is not named."""
    dtypes: tuple[str, ...]
    """Sample types that it can hold without conversion."""
    copies_of_a_tile: int
    """Copies of a tile in memory while it is written."""
    make: Callable[[Path, OutputShape, int], Sink]


KINDS = (
    SinkKind("TIFF", (".tiff", ".tif"), ("uint8", "uint16", "float32", "float64"), 0, TiffSink),
    SinkKind("Zarr", (".zarr",), ("uint8", "uint16", "float16", "float32", "float64"), 2, ZarrSink),
)


def kind_for(path: Path) -> SinkKind:
    """The kind for the suffix of `path`. Raises ImageWriteError."""
    for kind in KINDS:
        if path.suffix.lower() in kind.suffixes:
            return kind
    able = " or ".join(kind.suffixes[0] for kind in KINDS)
    raise ImageWriteError(f"{path}: '{path.suffix}' is not a format that can be written by tiles: use {able}.")


def check_dtype(path: Path, kind: SinkKind, dtype: str) -> None:
    """Raise ImageWriteError where `kind` cannot hold samples of `dtype`."""
    if dtype not in kind.dtypes:
        able = " or ".join(other.suffixes[0] for other in KINDS if dtype in other.dtypes)
        raise ImageWriteError(f"{path}: {kind.name} cannot hold {dtype} samples: use {able}.")
