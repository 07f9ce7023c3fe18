"""Which pictures in a folder are outputs of earlier runs: `edgeconv batch .` must not filter edges once more.

    a ledger    names what a batch wrote: that of this batch's own folder, and of every folder that is searched
    a report    beside a picture, of that name and size: `edgeconv run` wrote both

Files that a person names are always taken. Of stores of objects only the ledger of the batch's own folder is asked: to
look for a report beside each picture costs a request each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from edgeconv.batch.ledger import done_by_output, read_rows
from edgeconv.batch.stores import is_remote, store_of
from edgeconv.batch.task import Task
from edgeconv.errors import ImageReadError
from edgeconv.run.outputs import read_report
from edgeconv.run.report import KIND


def named_by_ledger(folder: str) -> set[str]:
    """Identities of what the ledger of a folder calls done. Raises ImageReadError."""
    home = store_of(folder)
    return {home.identity(home.join(folder, name)) for name in done_by_output(read_rows(folder))}


def named_by_ledgers_within(folders: Iterable[str]) -> set[str]:
    """The same of folders that are searched: a ledger that cannot be read, or names files elsewhere, hides nothing."""
    found: set[str] = set()
    for folder in folders:
        with suppress(ImageReadError):
            top = os.path.join(os.path.realpath(folder), "")
            found |= {identity for identity in named_by_ledger(folder) if identity.startswith(top)}
    return found


def has_its_report(task: Task) -> bool:
    """Whether the file beside a picture is the report of the run that wrote it."""
    if is_remote(task.source) or task.problem is not None:
        return False
    picture = Path(task.source)
    try:
        if not (beside := picture.with_suffix(".json")).exists():
            return False
        report = read_report(beside)
        written = report["output"]
        is_own = report["kind"] == KIND and Path(written["file"]).name == picture.name
        return bool(is_own and written["file_bytes"] == picture.stat().st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return False
