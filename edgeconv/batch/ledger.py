"""The ledger: what became of every picture, one JSON object a line, only ever appended to.

    {"input", "input_realpath", "input_bytes", "input_sha256", "parameters_sha256", "output", "output_bytes",
     "output_sha256", "status": "done" | "failed", "seconds", "error", "notes", "finished_utc"}

`input` is the path as it was given, `input_realpath` the same from the root with links followed; `output` is relative
to the ledger's folder; `notes` says what decoding dropped or changed. Names that are not UTF-8 are written as Python
holds them, a lone surrogate for each odd byte, escaped, so they are read back to the same path. Of several rows for an
output the last one counts.

On this machine the ledger is one file. A row is one write to a file opened for appending, so a process that is killed
leaves at most one broken last line, which readers pass over and the next run marks as cut short. Any other line that is
no row was damaged later: `verify` names it, as an output that it told of is not looked at. In a remote store,
where nothing can be appended to, it is a folder of segments (segments.py).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Literal

from edgeconv.batch.segments import SEGMENTS_NAME, SegmentLedger, read_segments
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.errors import ImageReadError, ImageWriteError

LEDGER_NAME = "edgeconv-ledger.jsonl"

CUT_SHORT = b" (cut short)"
"""Put behind the broken last line of a run that was killed."""

Status = Literal["done", "failed"]


def sha256_of(data: bytes | memoryview) -> str:
    """Hash of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Row:
    """One picture's fate."""

    input: str
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
    input_realpath: str | None = None
    """None in rows of before it was kept."""
    finished_utc: str = ""

    @property
    def source(self) -> str:
        """The input's real path, as far as it is known."""
        return self.input_realpath or os.path.realpath(self.input)

    def to_line(self) -> bytes:
        """The row as it is written, finished now."""
        record = asdict(self) | {"finished_utc": datetime.now(UTC).isoformat(timespec="milliseconds")}
        return json.dumps(record).encode("ascii") + b"\n"


def place_of(folder: str) -> str:
    """Where the ledger of an output folder is."""
    return store_of(folder).join(folder, SEGMENTS_NAME if is_remote(folder) else LEDGER_NAME)


def open_ledger(folder: str) -> Ledger | SegmentLedger:
    """The ledger of an output folder, for appending. Raises ImageWriteError."""
    return SegmentLedger(place_of(folder)) if is_remote(folder) else Ledger(Path(folder))


def read_rows(folder: Path | str) -> Iterator[Row]:
    """The rows of a folder's ledger in the order written, lines that are none left out. Raises ImageReadError."""
    for line in _lines_of(place_of(str(folder))):
        row = _row_of(line)
        if row is not None:
            yield row


def damaged_lines(folder: Path | str) -> list[int]:
    """Lines of a folder's ledger, from 1, that are no rows and that no killed run left so. Raises ImageReadError."""
    *whole, _ = _lines_of(place_of(str(folder)))  # the last one lacks its end, or there is nothing in it
    return [number for number, line in enumerate(whole, 1) if not line.endswith(CUT_SHORT) and _row_of(line) is None]


def _lines_of(place: str) -> list[bytes]:
    """What stands before, between and behind the ends of lines; nothing where there is no ledger."""
    try:
        data = read_segments(place) if is_remote(place) else Path(place).read_bytes()
    except FileNotFoundError:
        return [b""]
    except OSError as error:
        raise ImageReadError(f"Ledger '{place}' cannot be read: {error.strerror}.") from None
    return data.split(b"\n")


def _row_of(line: bytes) -> Row | None:
    """The row that a line holds, if it holds one whose names and hashes are texts."""
    try:
        fields = json.loads(line)
        row = Row(**fields | {"notes": tuple(fields.get("notes", ()))})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    texts = (row.input, row.parameters_sha256, row.status)
    maybe_texts = (row.input_sha256, row.input_realpath, row.output, row.output_sha256, row.error)
    are_texts = all(isinstance(text, str) for text in texts)
    return row if are_texts and all(text is None or isinstance(text, str) for text in maybe_texts) else None


def done_by_output(rows: Iterable[Row]) -> dict[str, Row]:
    """The last row of each output that was done, by the output's name."""
    return {row.output: row for row in rows if row.status == "done" and row.output is not None}


class Ledger:
    """Appends rows to a folder's ledger; for several threads at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER_NAME
        self._lock = Lock()
        try:
            self._stream = self.path.open("ab", buffering=0)
            if self._ends_in_a_broken_line():
                self._stream.write(CUT_SHORT + b"\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def append(self, row: Row) -> None:
        """Write one row and flush it to the system. Raises ImageWriteError where that fails."""
        line = row.to_line()
        try:
            with self._lock:
                written = self._stream.write(line)
                if written != len(line):
                    raise OSError(28, os.strerror(28))
        except OSError as error:
            raise self._unwritable(error) from None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def _ends_in_a_broken_line(self) -> bool:
        with self.path.open("rb") as stream:
            if stream.seek(0, os.SEEK_END) == 0:
                return False
            stream.seek(-1, os.SEEK_END)
            return stream.read(1) != b"\n"

    def _unwritable(self, error: OSError) -> ImageWriteError:
        return ImageWriteError(f"Ledger '{self.path}' cannot be written: {error.strerror}. Nothing more was filtered.")


@dataclass(frozen=True)
class Finding:
    """What `verify` found of one output."""

    output: str
    state: Literal["same", "missing", "changed"]


def verify(folder: Path | str) -> list[Finding]:
    """Hash every output that the ledger calls done and compare; raises ImageReadError where there is no ledger."""
    folder = str(folder)
    store = store_of(folder)
    done = done_by_output(read_rows(folder))
    if not done and not _is_there(folder):
        name = Path(place_of(folder)).name
        raise ImageReadError(f"{folder}: has no {name}: name the output folder of 'edgeconv batch'.")
    findings = []
    for output, row in done.items():
        try:
            digest = store.digest(store.join(folder, output))
        except ImageReadError:
            digest = None
        same: Literal["same", "changed"] = "same" if digest == row.output_sha256 else "changed"
        findings.append(Finding(output, "missing" if digest is None else same))
    return findings


def _is_there(folder: str) -> bool:
    place = place_of(folder)
    return bool(store_of(place).names(place)) if is_remote(place) else Path(place).is_file()
