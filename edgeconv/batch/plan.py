"""Which pictures a batch has, in which order, and which of them belong to this share.

Sub-folders are kept: with `--recursive`, photos/a/b.png goes to OUT/a/<name of b>. An obstacle to one picture (a folder
that cannot be listed) becomes that task's problem and does not stop the others.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath

from edgeconv.batch.earlier_outputs import has_its_report, named_by_ledger, named_by_ledgers_within
from edgeconv.batch.ledger import is_ledger_name
from edgeconv.batch.stores import from_the_root, is_remote, plain, store_of
from edgeconv.batch.task import Task
from edgeconv.core.units import counted
from edgeconv.errors import ImageReadError, UsageError
from edgeconv.io.files import is_standard_stream, read_bytes, utf8
from edgeconv.io.formats import NAMES
from edgeconv.io.skipped_files import suffix_counts_text

MOST_LIST_BYTES = 2**30
"""Some millions of paths."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Found:
    """The pictures to filter, and what was found in the folders and skipped."""

    tasks: list[Task]
    earlier_outputs: int = 0
    links_passed_over: tuple[str, ...] = ()
    """Links to folders, which are not searched: they may lead out of the folder, or form a cycle."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Numbers of files without the suffix of a picture format, by suffix, which may be empty."""


def find_tasks(
    places: Iterable[Path | str], recursive: bool, output: Path | str | None = None, listed: Iterable[str] = ()
) -> Found:
    """The pictures in `places`, sorted within each; raises ImageReadError where a place is missing or there is none.

    `listed` are places too, but one of them that is missing is a task with a problem and stops no other.

    A file that is named is taken whatever its suffix. In folders, hidden and temporary files are skipped, as are
    the folder `output`, unless it is itself one of the places, and outputs of earlier runs (earlier_outputs.py). Links
    to files are followed, and two names of one file are two pictures; a picture that is named twice is taken once.
    """
    leave_out = None if output is None else str(output)
    outputs = set() if leave_out is None else named_by_ledger(leave_out)
    tasks: list[Task] = []
    earlier_outputs = 0
    links: list[str] = []
    passed_over: Counter[str] = Counter()

    ledgers: set[PurePosixPath] = set()

    def pass_over(file: PurePosixPath) -> None:
        if _is_of_a_ledger(file):
            ledgers.add(file.parent)
        else:
            passed_over[file.suffix.lower()] += 1

    for place, may_lack in (*((str(place), False) for place in places), *((place, True) for place in listed)):
        place = plain(place)
        store = store_of(place)
        try:
            is_folder = store.is_folder(place)
        except ImageReadError as error:
            if not may_lack:
                raise
            tasks.append(Task(place, PurePosixPath(), from_the_root(place), str(error)))
            continue
        if is_folder:
            beside = leave_out if leave_out is not None and type(store_of(leave_out)) is type(store) else None
            ledgers.clear()
            in_folder = list(store.pictures(place, recursive, beside, links.append, pass_over))
            known = outputs
            if not is_remote(place):
                known = outputs | named_by_ledgers_within(store.join(place, below) for below in ledgers)
            own = [task for task in in_folder if task.identity not in known and not has_its_report(task)]
            earlier_outputs += len(in_folder) - len(own)
            tasks += own
        else:
            tasks.append(Task(place, PurePosixPath(), store.identity(place)))
    unique = {_result_of(task): task for task in reversed(tasks)}
    if not unique:
        raise ImageReadError(
            f"No picture was found: name files, or folders that hold {NAMES}"
            f"{f' ({suffix_counts_text(passed_over)} are there)' if passed_over else ''}."
            if not earlier_outputs
            else f"No picture was found except {counted(earlier_outputs, 'output')} of earlier runs: "
            "choose another folder with -o."
        )
    mine = [task for task in tasks if unique[_result_of(task)] is task]
    return Found(mine, earlier_outputs, tuple(links), passed_over)


def _result_of(task: Task) -> tuple[str, PurePosixPath, str]:
    """Equal for two tasks that would produce the same output from the same picture."""
    return task.identity, task.folder, PurePath(task.source).name


def _is_of_a_ledger(file: PurePosixPath) -> bool:
    return any(is_ledger_name(part) for part in file.parts)


def read_list(path: Path) -> list[str]:
    """Paths from a text file, or from standard input for `-`, one per line; empty lines are skipped.

    Bytes that are not UTF-8 are preserved, as file names may contain them. Raises UsageError.
    """
    try:
        data = read_bytes(path, MOST_LIST_BYTES)
    except ImageReadError as error:
        source = "standard input" if is_standard_stream(path) else f"'{path}'"
        raise UsageError(f"--files-from {source} cannot be used: {error}") from None
    lines = data.removeprefix(BYTE_ORDER_MARK).splitlines()
    return [os.fsdecode(line) for line in lines if line.strip()]


def parse_shard(text: str) -> tuple[int, int]:
    """`i/N` with 1 ≤ i ≤ N: the i-th of N shares of about equal size. Raises UsageError."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard '{text}' is not like 2/8: the second of eight shares.")
    return int(index), int(count)


def shard(tasks: list[Task], index: int, count: int) -> list[Task]:
    """The tasks of the `index`-th of `count` shares: disjoint, together complete, and of about equal size.

    A task's share depends only on its name below its place, so that a picture added or removed between two shares does
    not move any other.
    """
    return [task for task in tasks if _share_of(task, count) == index]


def _share_of(task: Task, count: int) -> int:
    name = (task.folder / PurePath(task.source).name).as_posix()
    return int.from_bytes(hashlib.sha256(utf8(name)).digest()) % count + 1
