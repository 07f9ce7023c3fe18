"""Records read from files: of a class by their `kind`, checked against it, or refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from edgeconv.core.records import Part, as_type
from edgeconv.errors import UsageError
from edgeconv.io.files import RECORD_BYTES, parse_json, read_text

SCHEMA_VERSION = 1
"""Of every record that is read here."""

P = TypeVar("P", bound=Part)


def read_record(path: Path, kinds: Mapping[str, type[P]]) -> P:
    """The record that a JSON file holds, if it is one of `kinds`. Raises UsageError for other files, ImageReadError."""
    try:
        found = parse_json(read_text(path, RECORD_BYTES))
    except ValueError as error:
        raise UsageError(f"Record '{path}' is not JSON: {error}.") from None
    kind = str(found.get("kind")) if isinstance(found, dict) else ""
    if kind not in kinds:
        *most, last = kinds
        wanted = f"{', '.join(most)} or {last}" if most else last
        raise UsageError(f"'{path}' is not a record of edgeconv {wanted}.")
    version = found.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(f"'{path}' has schema version {version} and this edgeconv reads {SCHEMA_VERSION}.")
    try:
        return as_type(found, kinds[kind])
    except ValueError as error:
        raise UsageError(f"Record '{path}' is damaged ({error}): copy it once more from where it was made.") from None
