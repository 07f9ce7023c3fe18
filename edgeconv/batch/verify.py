"""Are the outputs of a batch still what they were? Each is compared with its row of the ledger."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from edgeconv.batch.ledger import LEDGER_NAME, LedgerRow, done_by_output, ledger_folder, read
from edgeconv.batch.stores import store_of
from edgeconv.errors import ImageReadError
from edgeconv.io import folder_lock
from edgeconv.io.contained_paths import ForeignFileError


@dataclass(frozen=True)
class Finding:
    """What was found of one output."""

    output: str
    state: Literal["same", "missing", "changed", "foreign"]
    detail: str = ""
    """Why it is foreign: as a phrase after its name."""


@dataclass(frozen=True)
class Verification:
    """What was found of a folder."""

    findings: list[Finding]
    damaged: list[tuple[str, int]]
    """File and line of what is not a row: see `ledger.Contents`."""
    failed: int
    """Pictures whose last row says that they failed: they have no output of their own to check."""
    in_progress: bool
    """A batch was running there, which writes rows after outputs: an output may have been newer than its row."""


def verify(folder: Path | str, ledger: str | None = None) -> Verification:
    """Hash every output that the ledger calls done; raises ImageReadError where there is no ledger."""
    folder = str(folder)
    place = ledger_folder(folder, ledger)
    in_progress = folder_lock.is_held(place)
    contents = read(place)
    if not contents.files:
        way_out = "name the output folder of 'edgeconv batch', and its ledger with --ledger"
        raise ImageReadError(f"{folder}: there is no {os.path.join(place, LEDGER_NAME)}: {way_out}.")
    findings = [check_output(folder, output, row) for output, row in done_by_output(contents.rows).items()]
    last = {(row.input_realpath, PurePath(row.input).name): row.status for row in contents.rows}
    failed = sum(status == "failed" for status in last.values())
    return Verification(findings, contents.damaged, failed, in_progress)


def check_output(folder: str, output: str, row: LedgerRow) -> Finding:
    """Compare one output with its row."""
    try:
        digest = store_of(folder).output_digest(folder, output)
    except ForeignFileError as error:
        return Finding(output, "foreign", str(error))
    except ImageReadError:
        digest = None
    if digest is None:
        return Finding(output, "missing")
    return Finding(output, "same" if digest == row.output_sha256 else "changed")
