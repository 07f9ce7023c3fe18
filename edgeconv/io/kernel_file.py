"""A user's own kernel or filter bank from a file: JSON, CSV or NPY."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgeconv.core.filters import Filter, custom_filter
from edgeconv.errors import UsageError
from edgeconv.io.files import SMALL_BYTES, parse_json, read_small_bytes, read_text, reason_of
from edgeconv.io.formats import npy
from edgeconv.io.formats.base import BadPicture


def read_kernel(path: Path) -> Filter:
    """A kernel, or a bank, from a `.json` file (nested lists), a `.csv` file (three rows of three) or a `.npy` file.

    3×3, or K×C×3×3 as `custom_filter` takes it. Raises UsageError.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"Kernel file '{path}' must end in .json, .csv or .npy.")
    return replace(custom_filter(reader(path), name=path.stem), file=path)


def _from_json(path: Path) -> Any:
    text = _text_of(path)
    try:
        return parse_json(text)
    except ValueError as error:
        raise UsageError(f"Kernel file '{path}' is not JSON: {error}.") from None


def _from_csv(path: Path) -> Any:
    try:
        return [row for row in csv.reader(io.StringIO(_text_of(path))) if row]
    except csv.Error as error:
        raise UsageError(f"Kernel file '{path}' is not CSV: {error}.") from None


def _from_npy(path: Path) -> Any:
    try:
        return npy.read_numbers(read_small_bytes(path, SMALL_BYTES))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    except BadPicture as bad:
        raise UsageError(f"Kernel file '{path}' is not an NPY of numbers: {bad.reason}.") from None


def _text_of(path: Path) -> str:
    try:
        return read_text(path, SMALL_BYTES)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError | ValueError) -> UsageError:
    return UsageError(f"Kernel file '{path}' cannot be read: {reason_of(error)}.")


READERS: dict[str, Callable[[Path], Any]] = {".json": _from_json, ".csv": _from_csv, ".npy": _from_npy}
"""By the suffix of the file."""
