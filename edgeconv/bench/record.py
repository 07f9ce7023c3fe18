"""The record of a bench run: one dictionary that goes to JSON, a row on each line, and its schema.

Field names carry their units; `bench.schema.json` (JSON Schema 2020-12) fixes the shape. Exports, the gate and the
tables in docs read only this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from edgeconv.core.safe_text import visible_lines
from edgeconv.errors import UsageError
from edgeconv.io.files import RECORD_BYTES, parse_json, read_text, reason_of, utf8

KIND = "bench"
SCHEMA_VERSION = 1
ROW_LISTS = ("rows", "files", "left_out")
"""Lists that are written one entry a line, so that a record can be read and compared line by line."""

MACHINE_FACTS = ("name", "machine", "usable_threads", "governor", "compute_capability", "multiprocessors")
"""Those that change a time."""

Row = dict[str, Any]
Record = dict[str, Any]


def schema() -> dict[str, Any]:
    """The JSON Schema of a record."""
    loaded: dict[str, Any] = json.loads(files("edgeconv.bench").joinpath("bench.schema.json").read_text("utf-8"))
    return loaded


def to_json(record: Record) -> bytes:
    """UTF-8, keys in the order of the record; raises ValueError on NaN."""
    parts = []
    for name, value in record.items():
        if name in ROW_LISTS:
            lines = ",\n".join("    " + _dump(row) for row in value)
            text = f"[\n{lines}\n  ]" if value else "[]"
        else:
            text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).replace("\n", "\n  ")
        parts.append(f'  "{name}": {text}')
    return utf8(visible_lines("{\n" + ",\n".join(parts) + "\n}\n"))


def read_record(path: Path) -> Record:
    """A record from its file; raises UsageError for a file that is missing, not JSON or not a bench record."""
    return read_kinds(path, {KIND: ("a record of edgeconv bench", SCHEMA_VERSION)})


def read_kinds(path: Path, kinds: Mapping[str, tuple[str, int]]) -> Record:
    """What a JSON file holds, if it is of one of `kinds`: by `kind`, what that is in words, and its schema's version.

    Raises UsageError for a file that is missing, not JSON or of no such kind.
    """
    try:
        text = read_text(path, RECORD_BYTES, plain=False)  # a shell's <(...) is a pipe
    except (OSError, ValueError) as error:
        raise UsageError(f"Record '{path}' cannot be read: {reason_of(error)}.") from None
    try:
        record: Record = parse_json(text)
    except ValueError as error:
        raise UsageError(f"Record '{path}' is not JSON: {error}.") from None
    kind = str(record.get("kind")) if isinstance(record, dict) else ""
    if kind not in kinds:
        wanted = " or ".join(words for words, _ in kinds.values())
        raise UsageError(f"'{path}' is not {wanted}.")
    found, version = record.get("schema_version"), kinds[kind][1]
    if found != version:
        raise UsageError(f"'{path}' has schema version {found} and this edgeconv reads {version}.")
    return record


def row_key(row: Row) -> tuple[Any, ...]:
    """What makes two rows of two records the same measurement: the work, the entrant and its device."""
    work = row["work"]
    names = ("picture", "size", "stride", "dtype", "filter", "channels", "padding", "border", "output_mode")
    return (*(work[name] for name in names), row["device"], row["kind"], row["entrant"])


def unlike_facts(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What two mappings differ in: `name ours and theirs`, sorted by name."""
    names = sorted(ours.keys() | theirs.keys())
    return [f"{name} {ours.get(name)} and {theirs.get(name)}" for name in names if ours.get(name) != theirs.get(name)]


def unlike_machines(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What two machines, each its devices' facts by name, differ in, as far as that changes a time."""
    found = []
    for device in sorted(ours.keys() | theirs.keys()):
        if device not in ours or device not in theirs:
            found.append(f"only one was measured on {device}")
            continue
        facts = ({name: side[device].get(name) for name in MACHINE_FACTS} for side in (ours, theirs))
        found += [f"{device} {words}" for words in unlike_facts(*facts)]
    return found


def row_title(row: Row) -> str:
    """The row in a few words."""
    work = row["work"]
    picture = f"{Path(work['picture']).name} " if work["picture"] else ""
    words = f"{picture}{work['size']} s{work['stride']} {work['dtype']} {work['filter']} {work['channels']}"
    return f"{row['entrant']} on {row['device']} · {words}"


def lead_series(row: Row) -> dict[str, Any] | None:
    """The timing that a row leads with, None where it was not timed."""
    state = row["lead_l2_state"]
    return None if state is None else row["timings"][state]


def lead_account(row: Row) -> dict[str, Any] | None:
    """The metrics that belongs to `lead_series`."""
    state = row["lead_l2_state"]
    return None if state is None else row["accounts"][state]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
