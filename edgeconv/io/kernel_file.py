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
from edgeconv.io.files import SMALL_BYTES, parse_json, read_bytes, read_text, refuse_special
from edgeconv.io.formats import npy
from edgeconv.io.formats.base import BadPicture

READERS: dict[str, Callable[[Path], Any]] = {
    "json": lambda path: parse_json(read_text(path, SMALL_BYTES)),
    "csv": lambda path: [row for row in csv.reader(io.StringIO(read_text(path, SMALL_BYTES))) if row],
    "npy": lambda path: npy.read_numbers(read_bytes(path, SMALL_BYTES)),
}
"""By the suffix of the file."""


def read_kernel(path: Path) -> Filter:
    """A kernel, or a bank, from a `.json` file (nested lists), a `.csv` file (three rows of three) or a `.npy` file.

    3×3, or K×C×3×3 as `custom_filter` takes it. Raises UsageError, and ImageReadError for a file that cannot be read.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in READERS:
        raise UsageError(f"Kernel file '{path}' must end in .json, .csv or .npy.")
    refuse_special(path)
    try:
        values = READERS[kind](path)
    except (ValueError, csv.Error, BadPicture) as error:
        raise UsageError(f"Kernel file '{path}' is not {kind.upper()} with numbers: {error}.") from None
    return replace(custom_filter(values, name=path.stem), file=path)
