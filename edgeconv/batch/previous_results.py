"""Results of previous batches in the output folder: what need not be computed again, and what may be replaced.

An existing output may be replaced without --overwrite only where the last done row for its name says that it holds the
result of this input and these parameters, and where the file still has the recorded hash (see run/outputs.py).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath, PurePosixPath

from edgeconv.batch.ledger import done_by_output, read_rows
from edgeconv.batch.row import LedgerRow
from edgeconv.batch.stores import store_of
from edgeconv.batch.task import Task
from edgeconv.errors import ImageReadError, ImageWriteError
from edgeconv.io.contained_paths import ForeignFileError
from edgeconv.run.outputs import PreviousOutput, reason_to_keep


class PreviousResults:
    """The ledger of an output folder as it was when the batch started."""

    def __init__(self, folder: str, parameters_sha256: str) -> None:
        self._folder, self._parameters = folder, parameters_sha256
        rows = read_rows(folder)
        self._rows_of: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
        """By the input's identity and name: a file may have two names, each with its own output."""
        for row in rows:
            if row.parameters_sha256 == parameters_sha256:
                self._rows_of[row.input_realpath, PurePath(row.input).name].append(row)
        self._by_output = done_by_output(rows)

    def row_of(self, task: Task, input_sha256: str) -> LedgerRow | None:
        """The last row for a task, if it is for the same content and the same parameters."""
        for row in reversed(self._rows_of.get((task.identity, PurePath(task.source).name), [])):
            if row.output is None or PurePosixPath(row.output).parent == task.folder:
                return row if row.input_sha256 == input_sha256 else None
        return None

    def still_stands(self, row: LedgerRow) -> bool:
        """Whether the output of a done row still has the recorded hash, and no later row has its name."""
        if row.output is None or self._by_output.get(row.output) is not row:
            return False
        store = store_of(self._folder)
        try:
            return store.output_digest(self._folder, row.output) == row.output_sha256
        except (ImageReadError, ForeignFileError):
            return False

    def refuse_to_replace(self, name: str, present_sha256: str, task: Task) -> None:
        """Raise ImageWriteError where the output `name`, which has the hash `present_sha256`, must be kept."""
        row = self._by_output.get(name)
        previous = None
        if row is not None:
            previous = PreviousOutput(
                input=row.input,
                same_input=row.input_realpath == task.identity,
                same_settings=row.parameters_sha256 == self._parameters,
                unchanged=row.output_sha256 == present_sha256,
            )
        reason = reason_to_keep(previous, task.source)
        if reason is not None:
            raise ImageWriteError(
                f"{store_of(self._folder).join(self._folder, name)}: {reason}: "
                "pass --overwrite, or choose another folder with -o or names with --name."
            )
