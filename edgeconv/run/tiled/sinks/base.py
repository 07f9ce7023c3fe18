"""The interface of an output that is written in pieces: it takes tiles in any order and appears whole or not at all."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.errors import ImageWriteError
from edgeconv.io import temporary_files
from edgeconv.io.files import NameTakenError


@dataclass(frozen=True)
class OutputShape:
    """The whole output."""

    height: int
    width: int
    channels: int
    dtype: np.dtype[Any]
    pictures: int = 1
    """Of a filter bank one for each filter: channels c·K + k are those of picture k of K."""

    @property
    def picture_channels(self) -> int:
        """Channels of one picture: 3, or 1 of grey."""
        return self.channels // self.pictures

    @property
    def nbytes(self) -> int:
        """Bytes of all samples."""
        return self.height * self.width * self.channels * self.dtype.itemsize


class Sink(ABC):
    """An output under a temporary name beside `target` until `commit`; `discard` removes what is not committed."""

    def __init__(self, target: Path, shape: OutputShape, piece: int) -> None:
        self.target = target
        self.shape = shape
        self.piece = piece
        """Side of the pieces that the file itself is cut into; tiles start at multiples of it."""
        self.path = temporary_files.begin(Path(os.path.realpath(target)))  # a link may lead to another disk
        """Where the output is until it is committed."""

    @abstractmethod
    def write(self, row: int, column: int, pixels: NDArray[Any], pool: Executor, threads: int) -> None:
        """Put a tile (HWC) at `row`, `column` of the output, compressed on `pool`. Raises ImageWriteError."""

    @abstractmethod
    def finish(self) -> None:
        """Complete the file under its temporary name, so that it can be read. Raises ImageWriteError."""

    @abstractmethod
    def commit(self, replace: bool = True) -> None:
        """Let it take the target's place in one step. Raises ImageWriteError.

        Without `replace` NameTakenError where something is there.
        """

    @abstractmethod
    def discard(self) -> None:
        """Remove whatever is not committed; harmless after `commit`."""

    def unwritable(self, error: OSError) -> ImageWriteError:
        """The error for an output that the system refuses."""
        if isinstance(error, FileExistsError) or error.errno == errno.ENOTEMPTY:
            return NameTakenError(f"{self.target}: was created by another process in the meantime.")
        if isinstance(error, FileNotFoundError):
            return ImageWriteError(f"{self.target}: the folder {self.target.parent} does not exist: create it first.")
        return ImageWriteError(f"{self.target}: cannot be written ({error.strerror or error}): choose another place.")
