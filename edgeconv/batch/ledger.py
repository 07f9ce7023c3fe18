"""The ledger: the result of every picture, one JSON object per line, append-only.

    {"input", "input_realpath", "input_bytes", "input_sha256", "parameters_sha256", "output", "output_bytes",
     "output_sha256", "status": "done" | "failed", "seconds", "error", "notes", "finished_utc", "run"}

`input` is the path as given, `input_realpath` the absolute path with links resolved; `output` is relative to the
ledger's folder; `notes` lists what decoding dropped or changed. Names that are not UTF-8 are written as in Python, with
an escaped lone surrogate for each invalid byte, so they are read back to the same path. Of several rows for an output
the last one counts. `run` numbers the batches into a folder, and orders rows of several files; within one file their
order counts. `finished_utc` is for people: clocks of several machines differ.

In a folder the ledger is one file, and one more for each share of a job array (`--shard`): on a network file system,
simultaneous appends of two machines to one file may be mixed. A row is one write to a file opened for appending, so a
process that is killed, or a full disk, leaves at most one broken last line. Readers skip it, the next run marks it as
cut short, and a row that was appended right after it is still found (row.py). Any other line that is not a row was
damaged later: `verify` reports it, as the output of that row cannot be checked. In a remote store, whose objects cannot
be appended to, it is a folder of segments (segments.py).
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from threading import Lock
from types import TracebackType
from typing import BinaryIO, Literal

from edgeconv.batch.row import CUT_SHORT, MOST_LINE_BYTES, MOST_RUNS, LedgerRow, in_order, read_line
from edgeconv.batch.segments import SEGMENTS_NAME, SegmentLedger, read_segments
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io import folder_lock
from edgeconv.io.contained_paths import ForeignFileError, foreign_reason, open_regular, regular_descriptor

LEDGER_NAME = "edgeconv-ledger.jsonl"
SHARES_NAME = "edgeconv-ledger.{}-of-{}.jsonl"
_NAMES = re.compile(r"edgeconv-ledger(\.\d+-of-\d+)?\.jsonl")

ALL = (1, 1)
"""The share that is everything."""

AGAIN_SECONDS = 3.0
"""How long `verify` repeats the check of differing outputs while a batch runs, which writes rows after outputs."""


def sha256_of(data: bytes | memoryview) -> str:
    """Hash of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def is_ledger_name(name: str) -> bool:
    """Whether a file or a folder of this name is (part of) a ledger."""
    return name == SEGMENTS_NAME or _NAMES.fullmatch(name) is not None


def place_of(folder: str, share: tuple[int, int] = ALL) -> str:
    """Where the ledger of an output folder is, or what a share of an array of jobs adds to it."""
    name = LEDGER_NAME if share == ALL else SHARES_NAME.format(*share)
    return store_of(folder).join(folder, SEGMENTS_NAME if is_remote(folder) else name)


def open_ledger(folder: str, share: tuple[int, int] = ALL) -> Ledger | SegmentLedger:
    """The ledger of an output folder, for the rows of one more run. Raises ImageWriteError, ImageReadError."""
    place = place_of(folder, share)
    run = min(1 + max((row.run for row in read_rows(folder)), default=0), MOST_RUNS - 1)
    return SegmentLedger(place, run) if is_remote(folder) else Ledger(Path(place), run)


@dataclass(frozen=True)
class Contents:
    """All that a folder's ledger holds."""

    rows: list[LedgerRow]
    """In the order written."""
    foreign: list[LedgerRow]
    """Rows whose output is not the name of something inside the folder."""
    damaged: list[tuple[str, int]]
    """File and line, from 1, of what is not a row and was not left so by a killed run or a full disk."""


def read(folder: Path | str) -> Contents:
    """Read a folder's ledger, which need not be there. Raises ImageReadError."""
    files: list[list[LedgerRow]] = []
    foreign: list[LedgerRow] = []
    damaged: list[tuple[str, int]] = []
    for place in _places_in(str(folder)):
        files.append([])
        for number, line, is_whole in _lines_of(place):
            for reading in read_line(line):
                if reading.kind == "damaged":
                    damaged += [(place, number)] if is_whole else []
                elif reading.row is not None:
                    (files[-1] if reading.kind == "row" else foreign).append(reading.row)
    return Contents(in_order(files), foreign, damaged)


def read_rows(folder: Path | str) -> list[LedgerRow]:
    """The rows of a folder's ledger in the order written, foreign ones left out. Raises ImageReadError."""
    return read(folder).rows


def damaged_lines(folder: Path | str) -> list[tuple[str, int]]:
    """See Contents. Raises ImageReadError."""
    return read(folder).damaged


def _places_in(folder: str) -> list[str]:
    """Every file of a folder's ledger, or the place of its segments, which need not be there."""
    if is_remote(folder):
        return [place_of(folder)]
    try:
        names = sorted(filter(_NAMES.fullmatch, os.listdir(folder)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise ImageReadError(f"Ledger of '{folder}' cannot be read: {_reason(error)}.") from None
    return [os.path.join(folder, name) for name in names]


def _lines_of(place: str) -> Iterator[tuple[int, bytes, bool]]:
    """Number from 1, line, and whether it has its end. Of a line that is longer than any row the beginning is given."""
    try:
        with _opened(place) as stream:
            number = 0
            while line := stream.readline(MOST_LINE_BYTES):
                number += 1
                rest = line
                while rest and not rest.endswith(b"\n"):
                    rest = stream.readline(MOST_LINE_BYTES)
                yield number, line.removesuffix(b"\n"), rest.endswith(b"\n")
    except (OSError, ForeignFileError) as error:
        raise ImageReadError(
            f"Ledger '{place}' cannot be read: {_reason(error)}: remove it, or choose another folder."
        ) from None


def _opened(place: str) -> BinaryIO:
    return io.BytesIO(read_segments(place)) if is_remote(place) else open_regular(place)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def done_by_output(rows: Iterable[LedgerRow]) -> dict[str, LedgerRow]:
    """The last row of each output that was done, by the output's name."""
    return {row.output: row for row in rows if row.status == "done" and row.output is not None}


def _failed(rows: Iterable[LedgerRow]) -> int:
    """How many pictures failed when they were last tried."""
    last = {(row.input_realpath, PurePath(row.input).name): row.status for row in rows}
    return sum(status == "failed" for status in last.values())


class Ledger:
    """Appends rows to a file of a ledger; thread-safe, for one process."""

    def __init__(self, path: Path, run: int) -> None:
        self.path, self._run = path, run
        self._lock = Lock()
        self._failure: ImageWriteError | None = None
        try:
            self._descriptor = regular_descriptor(str(path), os.O_RDWR | os.O_APPEND | os.O_CREAT)
        except (OSError, ForeignFileError) as error:
            raise self._unwritable(error) from None
        try:
            if not folder_lock.take(self._descriptor):
                raise ImageWriteError(
                    f"Ledger '{path}' is in use by another batch: wait until it has ended, or choose another folder."
                )
            if self._ends_in_a_broken_line():
                self._write(CUT_SHORT + b"\n")
        except BaseException as error:
            os.close(self._descriptor)
            if isinstance(error, OSError):
                raise self._unwritable(error) from None
            raise

    def append(self, row: LedgerRow) -> None:
        """Write one row and flush it to the system. Raises ImageWriteError where that fails, and from then on.

        A row after a partial one would be lost with it.
        """
        line = row.to_line(self._run)
        with self._lock:
            if self._failure is None:
                try:
                    self._refuse_if_moved()
                    self._write(line)
                except OSError as error:
                    self._failure = self._unwritable(error)
                except ImageWriteError as failure:
                    self._failure = failure
            if self._failure is not None:
                raise self._failure

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._refuse_if_moved()
        finally:
            os.close(self._descriptor)

    def _write(self, line: bytes) -> None:
        if os.write(self._descriptor, line) != len(line):
            raise OSError(28, os.strerror(28))

    def _refuse_if_moved(self) -> None:
        """Raise ImageWriteError where the ledger's name is no longer that of the file that was opened."""
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._descriptor), os.stat(self.path, follow_symlinks=False)):
                return
        raise ImageWriteError(
            f"Ledger '{self.path}' was moved, replaced or removed while the batch was running: put the output folder "
            "back and continue with --resume. Nothing more was filtered."
        )

    def _ends_in_a_broken_line(self) -> bool:
        size = os.fstat(self._descriptor).st_size
        if size == 0:
            return False
        os.lseek(self._descriptor, size - 1, os.SEEK_SET)
        return os.read(self._descriptor, 1) != b"\n"

    def _unwritable(self, error: Exception) -> ImageWriteError:
        return ImageWriteError(f"Ledger '{self.path}' cannot be written: {_reason(error)}. Nothing more was filtered.")


@dataclass(frozen=True)
class Finding:
    """What `verify` found of one output."""

    output: str
    state: Literal["same", "missing", "changed", "foreign"]
    detail: str = ""
    """Why it is foreign: as a phrase after its name."""


@dataclass(frozen=True)
class Verification:
    """What `verify` found of a folder."""

    findings: list[Finding]
    damaged: list[tuple[str, int]]
    """See Contents."""
    failed: int
    """Pictures whose last row says that they failed: they have no output of their own to check."""
    in_progress: bool
    """A batch was running there during the whole verification."""


def verify(folder: Path | str) -> list[Finding]:
    """Hash every output that the ledger calls done and compare; raises ImageReadError where there is no ledger."""
    return look_through(folder).findings


def look_through(folder: Path | str) -> Verification:
    """The same, with damaged lines and whether a batch is running.

    While a batch is running an output may be newer than its row, so differing outputs are checked again.
    """
    folder = str(folder)
    until = time.monotonic() + AGAIN_SECONDS
    known: dict[str, tuple[LedgerRow, Finding]] = {}
    while True:
        in_progress = not is_remote(folder) and folder_lock.is_held(folder)
        contents = read(folder)
        if not (contents.rows or contents.foreign) and not _is_there(folder):
            name = Path(place_of(folder)).name
            raise ImageReadError(f"{folder}: has no {name}: name the output folder of 'edgeconv batch'.")
        for output, row in done_by_output(contents.rows).items():
            before = known.get(output)
            if before is None or before[0] != row or before[1].state != "same":
                known[output] = row, _look_at(folder, output, row)
        findings = [finding for _, finding in known.values()]
        differs = any(finding.state != "same" for finding in findings)
        if not differs or not in_progress or time.monotonic() > until:
            break
        time.sleep(folder_lock.PAUSE_SECONDS)
    foreign = {row.output: foreign_reason(row.output) for row in contents.foreign if row.output is not None}
    findings += [Finding(output, "foreign", reason or "") for output, reason in foreign.items()]
    return Verification(findings, contents.damaged, _failed(contents.rows), in_progress)


def _look_at(folder: str, output: str, row: LedgerRow) -> Finding:
    """Compare one output with its row."""
    try:
        digest = store_of(folder).output_digest(folder, output)
    except ForeignFileError as error:
        return Finding(output, "foreign", str(error))
    except ImageReadError:
        return Finding(output, "missing")
    if digest is None:
        return Finding(output, "missing")
    return Finding(output, "same" if digest == row.output_sha256 else "changed")


def _is_there(folder: str) -> bool:
    places = _places_in(folder)
    return bool(store_of(folder).names(places[0]) if is_remote(folder) else places)
