"""What earlier runs left in the output folder: what need not be done again, and what may be replaced.

An output is ours to replace only where the last done row for its name says that it holds the result of this very
input and these very parameters, and where nobody has changed it since. A result of another picture, of other
parameters or of another program is somebody's work.
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


class Earlier:
    """The ledger of an output folder as it was when the batch began."""

    def __init__(self, folder: str, parameters_sha256: str) -> None:
        self._folder, self._parameters = folder, parameters_sha256
        rows = read_rows(folder)
        self._rows_of: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
        """By the input's identity and name: a file may have two names, each with an output of its own."""
        for row in rows:
            if row.parameters_sha256 == parameters_sha256:
                self._rows_of[row.source, PurePath(row.input).name].append(row)
        self._by_output = done_by_output(rows)

    def row_of(self, task: Task, input_sha256: str) -> LedgerRow | None:
        """The last row for a task, if it tells of the same content and the same parameters."""
        for row in reversed(self._rows_of.get((task.identity, PurePath(task.source).name), [])):
            if row.output is None or PurePosixPath(row.output).parent == task.folder:
                return row if row.input_sha256 == input_sha256 else None
        return None

    def still_stands(self, row: LedgerRow) -> bool:
        """Whether the output of a done row is there byte for byte, and no later row took its name."""
        if row.output is None or self._by_output.get(row.output) is not row:
            return False
        store = store_of(self._folder)
        try:
            return store.output_digest(self._folder, row.output) == row.output_sha256
        except (ImageReadError, ForeignFileError):
            return False

    def refuse_unless_ours(self, name: str, present_sha256: str, identity: str) -> None:
        """Raise ImageWriteError where the output `name`, which holds `present_sha256`, is not ours to replace."""
        row = self._by_output.get(name)
        if row is None or row.output_sha256 != present_sha256:
            reason = "exists and is not ours"
        elif row.source != identity:
            reason = f"holds the result of another picture, {row.input}"
        elif row.parameters_sha256 != self._parameters:
            reason = "holds a result with other parameters"
        else:
            return
        raise ImageWriteError(
            f"{store_of(self._folder).join(self._folder, name)}: {reason}: "
            "pass --overwrite, or choose another folder with -o or names with --name."
        )
