"""A row of the ledger, as it is written and as it is known again in a file that anybody may have changed.

Everything in a line is looked at before it is believed: the kind of every field, and whether `output` is the plain
name of something inside the folder. A row that names anything else is foreign, and nothing that it names is opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from edgeconv.core.records import Meta, Struct, as_type, fields_of
from edgeconv.io.contained_paths import foreign_reason

Status = Literal["done", "failed"]

CUT_SHORT = b" (cut short)"
"""Put behind the broken last line of a run that was killed."""

BEGINNING = b'{"input": '
"""Of every row: quotation marks within a row are escaped, so that these bytes are nowhere else."""

MOST_LINE_BYTES = 2**20
"""No row comes near it: two paths, some notes and an error."""

MOST_RUNS = 2**53
"""Whole numbers up to here are the same in every reader of JSON."""


class LedgerRow(Struct, frozen=True, forbid_unknown_fields=True):
    """What became of one picture."""

    input: str
    input_realpath: str
    input_bytes: int | None
    input_sha256: str | None
    parameters_sha256: str
    output: str | None
    output_bytes: int | None
    output_sha256: str | None
    status: Status
    seconds: float
    error: str | None
    notes: tuple[str, ...] = ()
    finished_utc: str = ""
    run: Annotated[int, Meta(ge=0, lt=MOST_RUNS)] = 0
    """Counts the batches into this folder, from 1; 0 until the row is written."""

    def to_line(self, run: int) -> bytes:
        """The row as it is written, finished now."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return json.dumps(fields_of(self) | {"finished_utc": now, "run": run}).encode("ascii") + b"\n"


@dataclass(frozen=True)
class LedgerLine:
    """What one line of a ledger turned out to be."""

    kind: Literal["row", "foreign", "damaged", "cut short"]
    row: LedgerRow | None = None
    """Of the first two kinds."""


def read_line(line: bytes) -> Iterator[LedgerLine]:
    """What a line without its end holds: nothing, a row, or one behind another that a full disk cut short."""
    if not line:
        return
    if line.endswith(CUT_SHORT):
        yield LedgerLine("cut short")
        return
    row = parse(line)
    at = line.rfind(BEGINNING) if row is None else -1
    if at > 0 and line.startswith(BEGINNING) and (behind := parse(line[at:])) is not None:
        yield LedgerLine("cut short")
        row = behind
    if row is None:
        yield LedgerLine("damaged")
    else:
        yield LedgerLine("row" if row.output is None or foreign_reason(row.output) is None else "foreign", row)


def parse(line: bytes) -> LedgerRow | None:
    """The row that a line holds, if every field of it is of its kind."""
    try:
        row = as_type(json.loads(line), LedgerRow)
    except (ValueError, RecursionError):
        return None
    return row if _is_name(row.input) and _is_name(row.input_realpath) else None


def in_order(files: Iterable[Iterable[LedgerRow]]) -> list[LedgerRow]:
    """The rows of several files as they were written: the order of each file stays, whatever the rows say."""
    placed: list[tuple[int, int, LedgerRow]] = []
    for rows in files:
        latest = 0
        for row in rows:
            latest = max(latest, row.run)
            placed.append((latest, len(placed), row))
    return [row for _, _, row in sorted(placed, key=lambda place: place[:2])]


def _is_name(text: str) -> bool:
    """Whether the system can be asked about such a name."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeError:
        return False
