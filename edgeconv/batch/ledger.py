"""The ledger: the result of every picture, one JSON object per line, append-only.

    edgeconv-ledger.jsonl            of a batch, in its output folder or in the folder that --ledger names
    edgeconv-ledger.2-of-8.jsonl     of a share (--shard 2/8): simultaneous appends of two machines could be mixed

Each line is a `LedgerRow`. Names that are not UTF-8 are written as in Python, with an escaped lone surrogate for each
invalid byte, so they are read back to the same path. Of several rows for an output the last one counts. `run` numbers
the batches into a folder and orders the rows of several files, as clocks of several machines differ; `finished_utc` is
for people.

A row is one write to a file opened for appending, so a process that is killed, or a full disk, leaves at most one
broken last line. Readers skip it, and the next run marks it as cut short. Any other line that is not a row was damaged
later: `verify` reports it, as the output of that row cannot be checked. Nothing in a ledger is trusted: the type of
every field is checked, and a row that names something outside the output folder leads to nothing (contained_paths.py).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath, PurePosixPath
from threading import Lock
from typing import Annotated, Literal

from edgeconv.batch.settings import ALL, Settings
from edgeconv.batch.stores import Task, is_remote, join, store_of
from edgeconv.core.choices import DeviceName
from edgeconv.core.records import Meta, Struct, as_type, fields_of
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io.contained_paths import ForeignFileError, foreign_reason, open_regular, regular_descriptor
from edgeconv.run.ownership import NO_RECORD, reason_to_keep

LEDGER_NAME = "edgeconv-ledger.jsonl"
OWN_FILES = "edgeconv-ledger"
"""What the names of ledgers and of their locks begin with."""
LEDGER_NAMES = re.compile(r"edgeconv-ledger(\.\d+-of-\d+)?\.jsonl")

CUT_SHORT = b" (cut short)"
"""Put behind the broken last line of a run that was killed."""
MAX_LINE_BYTES = 2**20
"""No row comes near it: two paths, some notes and an error."""
MAX_RUNS = 2**53
"""Integers up to here are the same in every reader of JSON."""


class LedgerRow(Struct, forbid_unknown_fields=True):
    """What became of one picture."""

    input: str
    """The path or URL as given."""
    input_realpath: str
    """The absolute path with links resolved."""
    parameters_sha256: str
    """See `Settings.parameters_sha256`."""
    method: str
    device: DeviceName
    status: Literal["done", "failed"]
    seconds: float
    input_bytes: int | None = None
    input_sha256: str | None = None
    output: str | None = None
    """Relative to the output folder."""
    output_bytes: int | None = None
    output_sha256: str | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    """What decoding dropped or changed."""
    finished_utc: str = ""
    run: Annotated[int, Meta(ge=0, lt=MAX_RUNS)] = 0

    def to_line(self, run: int) -> bytes:
        """The row as it is written, finished now."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return json.dumps(fields_of(self) | {"finished_utc": now, "run": run}).encode("ascii") + b"\n"


def sha256_of(data: bytes | memoryview) -> str:
    """Hash of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def ledger_folder(output: str, named: str | None = None) -> str:
    """Where the ledger of an output folder is: where --ledger says, or in that folder.

    Nothing can be appended to an object, so the ledger of a URL is on this machine, among this user's data.
    """
    if named is not None or not is_remote(output):
        return named or output
    top = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    identity = store_of(output).identity(output).rstrip("/")
    shown = re.sub(r"[^0-9A-Za-z.-]+", "_", identity)[-60:]
    return os.path.join(top, "edgeconv", "ledgers", f"{shown}-{sha256_of(os.fsencode(identity))[:8]}")


# --- reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contents:
    """All that a folder's ledger holds."""

    files: list[str]
    rows: list[LedgerRow]
    """In the order written."""
    damaged: list[tuple[str, int]]
    """File and line, from 1, of what is not a row and was not left so by a killed run or a full disk."""


def read(folder: Path | str) -> Contents:
    """Read the ledger that is in a folder, if there is one. Raises ImageReadError."""
    try:
        files = [os.path.join(folder, name) for name in sorted(filter(LEDGER_NAMES.fullmatch, os.listdir(folder)))]
    except (FileNotFoundError, NotADirectoryError):
        files = []
    except (OSError, ValueError) as error:
        raise ImageReadError(f"Ledger of '{folder}' cannot be read: {_reason(error)}.") from None
    rows: list[LedgerRow] = []
    damaged: list[tuple[str, int]] = []
    for file in files:
        number, begins = 1, True
        try:
            with open_regular(file) as stream:
                while part := stream.readline(MAX_LINE_BYTES):  # a whole line, or a part of a longer one
                    ends, empty = part.endswith(b"\n"), begins and part == b"\n"
                    if (row := _parsed(part)) is not None:
                        rows.append(row)
                    elif ends and not empty and not part.endswith(CUT_SHORT + b"\n"):
                        damaged.append((file, number))
                    number, begins = number + ends, ends
        except (OSError, ForeignFileError) as error:
            way_out = "remove it, or choose another folder"
            raise ImageReadError(f"Ledger '{file}' cannot be read: {_reason(error)}: {way_out}.") from None
    return Contents(files, sorted(rows, key=lambda row: row.run), damaged)


def done_by_output(rows: Iterable[LedgerRow]) -> dict[str, LedgerRow]:
    """The last row of each output that was done, by the output's name."""
    return {row.output: row for row in rows if row.status == "done" and row.output is not None}


def _parsed(line: bytes) -> LedgerRow | None:
    """The row that a line holds, if every field of it is of its type and its names are names."""
    try:
        row = as_type(json.loads(line), LedgerRow)
        if b"\0" in os.fsencode(row.input + row.input_realpath):
            return None
    except (ValueError, RecursionError):
        return None
    return row


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


# --- what a later run may pass over or replace --------------------------------------------------------------------


class PreviousResults:
    """The rows of an output folder's ledger as they were when the batch started; pickled for other processes.

    An existing output may be replaced without --overwrite only where the last done row for its name says that it holds
    the result of this input and these settings, and where the file still has the recorded hash.
    """

    def __init__(self, rows: Collection[LedgerRow], settings: Settings) -> None:
        self._settings = settings
        self._wanted = settings.parameters_sha256(), settings.method, settings.device
        self._rows_of: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
        """By the input's identity and name: a file may have two names, each with its own output."""
        for row in rows:
            if self._has_wanted_settings(row) and (row.output is None or foreign_reason(row.output) is None):
                self._rows_of[row.input_realpath, PurePath(row.input).name].append(row)
        self._by_output = done_by_output(rows)

    def _has_wanted_settings(self, row: LedgerRow) -> bool:
        return (row.parameters_sha256, row.method, row.device) == self._wanted

    def still_holding(self, task: Task, input_sha256: str) -> LedgerRow | None:
        """With --resume, the last row for a task, if it has the same content and settings and still holds.

        A failure holds unless it is to be tried again; a done row where its output has the recorded hash and no later
        row has its name.
        """
        settings = self._settings
        rows = self._rows_of.get((task.identity, task.path.name), []) if settings.resume else []
        here = (row for row in reversed(rows) if row.output is None or PurePosixPath(row.output).parent == task.folder)
        row = next(here, None)
        if row is None or row.input_sha256 != input_sha256:
            return None
        if row.status == "failed":
            return None if settings.retry_failed or settings.overwrite else row
        if row.output is None or self._by_output.get(row.output) is not row:
            return None
        with suppress(ImageReadError, ForeignFileError):
            if store_of(settings.output).output_digest(settings.output, row.output) == row.output_sha256:
                return row
        return None

    def refuse_to_replace(self, name: str, present_sha256: str, task: Task) -> None:
        """Raise ImageWriteError where the output `name`, which has the hash `present_sha256`, must be kept."""
        row = self._by_output.get(name)
        reason: str | None = NO_RECORD
        if row is not None:
            reason = reason_to_keep(
                task.source,
                row.input,
                same_input=row.input_realpath == task.identity,
                same_settings=self._has_wanted_settings(row),
                unchanged=row.output_sha256 == present_sha256,
            )
        if reason is not None:
            raise ImageWriteError(
                f"{join(self._settings.output, name)}: {reason}: "
                "pass --overwrite, or choose another folder with -o or names with --name."
            )


# --- appending ----------------------------------------------------------------------------------------------------


class Ledger:
    """Appends the rows of a batch, or of a share of it, to its file; thread-safe, for the one process with the lock."""

    def __init__(self, folder: Path | str, share: tuple[int, int] = ALL, rows: Collection[LedgerRow] = ()) -> None:
        """`rows` are those of the whole ledger so far. Raises ImageWriteError."""
        self.path = Path(folder, LEDGER_NAME if share == ALL else "edgeconv-ledger.{}-of-{}.jsonl".format(*share))
        self._run = min(1 + max((row.run for row in rows), default=0), MAX_RUNS - 1)
        self._lock = Lock()
        self._failure: ImageWriteError | None = None
        try:
            self._descriptor = regular_descriptor(str(self.path), os.O_RDWR | os.O_APPEND | os.O_CREAT)
            size = os.fstat(self._descriptor).st_size
            whole = size == 0 or os.pread(self._descriptor, 1, size - 1) == b"\n"
        except (OSError, ForeignFileError) as error:
            raise self._unwritable(error) from None
        try:
            if not whole:
                self._write(CUT_SHORT + b"\n")
        except ImageWriteError:
            self.close()
            raise

    def append(self, row: LedgerRow) -> None:
        """Write one row and flush it to the system. Raises ImageWriteError where that fails, and from then on.

        A row after a partial one would be lost with it.
        """
        line = row.to_line(self._run)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                self.refuse_if_moved()
                self._write(line)
            except ImageWriteError as failure:
                self._failure = failure
                raise

    def refuse_if_moved(self) -> None:
        """Raise ImageWriteError where the ledger's name is no longer that of the file that was opened."""
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._descriptor), os.stat(self.path, follow_symlinks=False)):
                return
        raise ImageWriteError(
            f"Ledger '{self.path}' was moved, replaced or removed while the batch was running: put the output folder "
            "back and continue with --resume. Nothing more was filtered."
        )

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _write(self, line: bytes) -> None:
        try:
            if os.write(self._descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: Exception) -> ImageWriteError:
        return ImageWriteError(f"Ledger '{self.path}' cannot be written: {_reason(error)}. Nothing more was filtered.")
