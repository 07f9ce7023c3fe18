"""The ledger: what became of every picture, one JSON object a line, only ever appended to.

    {"input", "input_realpath", "input_bytes", "input_sha256", "parameters_sha256", "output", "output_bytes",
     "output_sha256", "status": "done" | "failed", "seconds", "error", "notes", "finished_utc"}

`input` is the path as it was given, `input_realpath` the same from the root with links followed; `output` is relative
to the ledger's folder; `notes` says what decoding dropped or changed. Names that are not UTF-8 are written as Python
holds them, a lone surrogate for each odd byte, escaped, so they are read back to the same path. Of several rows for an
output the last one counts.

In a folder the ledger is one file, and one more for each share of an array of jobs (`--shard`): on a file system that
machines share, what two of them append to one file at once is not kept apart. A row is one write to a file opened for
appending, so a process that is killed leaves at most one broken last line, which readers pass over and the next run
marks as cut short. Any other line that is no row was damaged later: `verify` names it, as an output that it told of is
not looked at. In a remote store, where nothing can be appended to, it is a folder of segments (segments.py).
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import re
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
SHARES_NAME = "edgeconv-ledger.{}-of-{}.jsonl"
_NAMES = re.compile(r"edgeconv-ledger(\.\d+-of-\d+)?\.jsonl")

ALL = (1, 1)
"""The share that is everything."""

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


def is_ledger_name(name: str) -> bool:
    """Whether a file or a folder of this name is (part of) a ledger."""
    return name == SEGMENTS_NAME or _NAMES.fullmatch(name) is not None


def place_of(folder: str, share: tuple[int, int] = ALL) -> str:
    """Where the ledger of an output folder is, or what a share of an array of jobs adds to it."""
    name = LEDGER_NAME if share == ALL else SHARES_NAME.format(*share)
    return store_of(folder).join(folder, SEGMENTS_NAME if is_remote(folder) else name)


def open_ledger(folder: str, share: tuple[int, int] = ALL) -> Ledger | SegmentLedger:
    """The ledger of an output folder, for appending. Raises ImageWriteError."""
    place = place_of(folder, share)
    return SegmentLedger(place) if is_remote(folder) else Ledger(Path(place))


def read_rows(folder: Path | str) -> Iterator[Row]:
    """The rows of a folder's ledger in the order written, lines that are none left out. Raises ImageReadError."""
    files = (filter(None, map(_row_of, _lines_of(place))) for place in _places_in(str(folder)))
    return heapq.merge(*files, key=lambda row: row.finished_utc)  # which keeps the order that a file has


def damaged_lines(folder: Path | str) -> list[tuple[str, int]]:
    """File and line, from 1, of what is no row in a folder's ledger and was not left so by a killed run.

    Raises ImageReadError.
    """
    damaged = []
    for place in _places_in(str(folder)):
        *whole, _ = _lines_of(place)  # the last one lacks its end, or there is nothing in it
        damaged += [
            (place, number)
            for number, line in enumerate(whole, 1)
            if not line.endswith(CUT_SHORT) and _row_of(line) is None
        ]
    return damaged


def _places_in(folder: str) -> list[str]:
    """Every file of a folder's ledger, or the place of its segments, which need not be there."""
    if is_remote(folder):
        return [place_of(folder)]
    try:
        names = sorted(filter(_NAMES.fullmatch, os.listdir(folder)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ImageReadError(f"Ledger of '{folder}' cannot be read: {error.strerror}.") from None
    return [os.path.join(folder, name) for name in names]


def _lines_of(place: str) -> list[bytes]:
    """What stands before, between and behind the ends of lines."""
    try:
        data = read_segments(place) if is_remote(place) else Path(place).read_bytes()
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
    texts = (row.input, row.parameters_sha256, row.status, row.finished_utc)
    maybe_texts = (row.input_sha256, row.input_realpath, row.output, row.output_sha256, row.error)
    are_texts = all(isinstance(text, str) for text in texts)
    return row if are_texts and all(text is None or isinstance(text, str) for text in maybe_texts) else None


def done_by_output(rows: Iterable[Row]) -> dict[str, Row]:
    """The last row of each output that was done, by the output's name."""
    return {row.output: row for row in rows if row.status == "done" and row.output is not None}


class Ledger:
    """Appends rows to a file of a ledger; for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
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
    places = _places_in(folder)
    return bool(store_of(folder).names(places[0]) if is_remote(folder) else places)
