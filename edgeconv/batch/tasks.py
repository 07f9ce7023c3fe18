"""Which pictures a batch has, in which order, and which of them belong to a share.

Sub-folders are kept: with `--recursive`, photos/a/b.png goes to OUT/a/<name of b>. An obstacle to one picture (a folder
that cannot be listed) becomes that task's problem and does not stop the others.

Outputs of earlier batches in the searched folders are not filtered again, so that `edgeconv batch .` may be repeated:
the ledgers name them, that of this batch and those in the folders that are searched. Of stores of objects only the
ledger of this batch is asked. Files that a person names are always taken.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from edgeconv.batch.ledger import LEDGER_NAMES, OWN_FILES, LedgerRow, done_by_output, read
from edgeconv.batch.stores import Task, from_the_root, is_remote, join, plain, store_of
from edgeconv.core.text import counted
from edgeconv.errors import ImageReadError, UsageError
from edgeconv.io.contained_paths import foreign_reason
from edgeconv.io.files import is_standard_stream, read_bytes, suffix_counts_text, utf8
from edgeconv.io.formats import NAMES, SUFFIXES

MAX_LIST_BYTES = 2**30
"""Some millions of paths."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Inputs:
    """Where pictures are looked for."""

    places: Sequence[Path | str]
    """Files, folders and URLs; one that is missing stops the batch."""
    listed: Sequence[str] = ()
    """The same from a list; one that is missing fails alone."""
    recursive: bool = False


@dataclass(frozen=True)
class Found:
    """The pictures to filter, and what was found in the folders and skipped."""

    tasks: list[Task] = field(default_factory=list)
    earlier_outputs: int = 0
    links: list[str] = field(default_factory=list)
    """Links to folders, which are not searched: they may lead out of the folder, or form a cycle."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Numbers of files without the suffix of a picture format, by suffix, which may be empty."""


def find(inputs: Inputs, output: str, rows: Collection[LedgerRow] = ()) -> Found:
    """The pictures of `inputs`, sorted within each place; `rows` are those of the ledger of `output`.

    A file that is named is taken whatever its suffix. In folders, hidden and temporary files are skipped, as are
    the folder `output`, unless it is itself one of the places, and outputs of earlier runs. Links to files are
    followed, and two names of one file are two pictures; a picture that is named twice is taken once. Raises
    ImageReadError where a place is missing or there is no picture.
    """
    tasks: list[Task] = []
    links: list[str] = []
    passed_over: Counter[str] = Counter()
    own_folder = store_of(output).identity(output)
    own_outputs = outputs_of(output, rows)
    earlier_outputs = 0
    for number, place in enumerate(map(plain, (*map(str, inputs.places), *inputs.listed))):
        store = store_of(place)
        try:
            if not store.is_folder(place):
                tasks.append(Task(place, PurePosixPath(), store.identity(place)))
                continue
        except ImageReadError as error:
            if number < len(inputs.places):
                raise
            tasks.append(Task(place, PurePosixPath(), from_the_root(place), str(error)))
            continue
        pictures: list[Task] = []
        ledgers: set[PurePosixPath] = set()
        for task in store.files(place, inputs.recursive, own_folder, links):
            if LEDGER_NAMES.fullmatch(task.path.name):
                ledgers.add(task.folder)
            elif task.path.suffix.lower() in SUFFIXES or task.problem is not None:
                pictures.append(task)
            elif not task.path.name.startswith(OWN_FILES):
                passed_over[task.path.suffix.lower()] += 1
        known = own_outputs.union(*(_outputs_within(join(place, below), own_folder) for below in sorted(ledgers)))
        own = [task for task in pictures if task.identity not in known]
        earlier_outputs += len(pictures) - len(own)
        tasks += own
    unique: dict[tuple[str, PurePosixPath, str], Task] = {}
    for task in tasks:  # two that would produce the same output from the same picture are one
        unique.setdefault((task.identity, task.folder, task.path.name), task)
    if not unique and earlier_outputs:
        outputs = counted(earlier_outputs, "output")
        raise ImageReadError(f"No picture was found except {outputs} of earlier runs: choose another folder with -o.")
    if not unique:
        others = f" ({suffix_counts_text(passed_over)} are there)" if passed_over else ""
        raise ImageReadError(f"No picture was found: name files, or folders that hold {NAMES}{others}.")
    return Found(list(unique.values()), earlier_outputs, links, passed_over)


def outputs_of(folder: str, rows: Collection[LedgerRow]) -> set[str]:
    """Identities of what the rows of a folder's ledger call done, as far as it lies in that folder."""
    store = store_of(folder)
    top = os.path.join(store.identity(folder), "")
    plain_names = (name for name in done_by_output(rows) if foreign_reason(name) is None)
    found = {store.identity(join(folder, name)) for name in plain_names}
    return {identity for identity in found if identity.startswith(top)}


def _outputs_within(folder: str, own_folder: str) -> set[str]:
    """The outputs of another batch; a ledger that cannot be read hides nothing."""
    with suppress(ImageReadError):
        if not is_remote(folder) and os.path.realpath(folder) != own_folder:
            return outputs_of(folder, read(folder).rows)
    return set()


def read_list(path: Path) -> list[str]:
    """Paths from a text file, or from standard input for `-`, one per line; empty lines are skipped.

    Bytes that are not UTF-8 are preserved, as file names may contain them. Raises UsageError.
    """
    try:
        data = read_bytes(path, MAX_LIST_BYTES)
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

    def share_of(task: Task) -> int:
        name = (task.folder / task.path.name).as_posix()
        return int.from_bytes(hashlib.sha256(utf8(name)).digest()) % count + 1

    return [task for task in tasks if share_of(task) == index]
