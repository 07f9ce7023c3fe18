"""A user's own kernel from a file: JSON or CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgeconv.core.filters import Filter, custom_filter
from edgeconv.errors import UsageError
from edgeconv.io.files import SMALL_BYTES, parse_json, read_text, reason_of


def read_kernel(path: Path) -> Filter:
    """A kernel from a `.json` file (nested lists) or a `.csv` file (three rows of three)."""
    try:
        text = read_text(path, SMALL_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"Kernel file '{path}' cannot be read: {reason_of(error)}.") from None
    suffix = path.suffix.lower()
    values: Any
    if suffix == ".json":
        try:
            values = parse_json(text)
        except ValueError as error:
            raise UsageError(f"Kernel file '{path}' is not JSON: {error}.") from None
    elif suffix == ".csv":
        try:
            values = [row for row in csv.reader(io.StringIO(text)) if row]
        except csv.Error as error:
            raise UsageError(f"Kernel file '{path}' is not CSV: {error}.") from None
    else:
        raise UsageError(f"Kernel file '{path}' must end in .json or .csv.")
    return replace(custom_filter(values, name=path.stem), file=path)
