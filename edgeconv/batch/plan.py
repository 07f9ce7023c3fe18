"""Which pictures go where, settled before the first is written.

A folder keeps its shape: with `--recursive`, photos/a/b.png goes to OUT/a/<name of b>. Two pictures that would take
the same name are found here, and so is one that would be written over an input, as far as names tell before a picture
is decoded. What is in the way of one picture (a folder that cannot be listed) becomes that task's problem and stops no
other.
"""

from __future__ import annotations

import os
import stat
import string
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from edgeconv.batch.ledger import done_by_output, read_rows
from edgeconv.errors import ImageReadError, ImageWriteError, UsageError
from edgeconv.files import is_standard_stream, read_bytes
from edgeconv.formats import SUFFIXES
from edgeconv.image import QUALITY_FLAGS
from edgeconv.job import FORMAT_OF_DTYPE

DEFAULT_NAME = "{stem}_{filter}_{method}_s{stride}{ext}"
NAME_FIELDS = ("stem", "filter", "method", "stride", "width", "height", "ext")
LATE_FIELDS = ("width", "height")
"""Known only once a picture is decoded; names are compared without them."""


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Task:
    """One picture: `source` as given, `folder` where its output goes, relative to the output folder."""

    source: Path
    folder: Path
    problem: str | None = None
    """Why there is nothing to filter, where that is known before it is read: then the task fails with these words."""


@dataclass(frozen=True)
class Found:
    """What is to be filtered, and how many earlier outputs in the same folders are not."""

    tasks: list[Task]
    earlier_outputs: int = 0


def find_tasks(places: Iterable[Path], recursive: bool, output: Path | None = None) -> Found:
    """The pictures in `places`, sorted within each; raises ImageReadError where a place is missing or there is none.

    A file that is named is taken whatever its suffix. In folders, hidden files (our temporary ones too) are passed
    over, and so are the folder `output`, unless it is itself one of the places, and the files that its ledger calls
    outputs of earlier runs.
    """
    outputs: set[str] = set()
    if output is not None:
        outputs = {os.path.realpath(output / name) for name in done_by_output(read_rows(output))}
    tasks: list[Task] = []
    earlier_outputs = 0
    for place in places:
        if _is_folder(place):
            in_folder = _in_folder(place, recursive, output)
            own = [task for task in in_folder if os.path.realpath(task.source) not in outputs]
            earlier_outputs += len(in_folder) - len(own)
            tasks += own
        else:
            tasks.append(Task(place, Path()))
    unique = {os.path.realpath(task.source): task for task in reversed(tasks)}
    if not unique:
        raise ImageReadError(
            "No picture was found: name files, or folders that hold PNG, JPEG, TIFF, WebP, BMP or NPY."
            if not earlier_outputs
            else f"No picture was found but {earlier_outputs} outputs of earlier runs: choose another folder with -o."
        )
    return Found([task for task in tasks if unique[os.path.realpath(task.source)] is task], earlier_outputs)


def real_paths(tasks: Iterable[Task]) -> frozenset[str]:
    """The inputs from the root, links followed: what no output may ever replace."""
    return frozenset(os.path.realpath(task.source) for task in tasks)


def _is_folder(place: Path) -> bool:
    """Raises ImageReadError for what is not there; a file that cannot be looked at fails when it is read."""
    try:
        return stat.S_ISDIR(place.stat().st_mode)
    except (FileNotFoundError, ValueError):  # ValueError: a NUL byte, which no name has
        raise ImageReadError(f"{place}: there is no such file or folder: check the name.") from None
    except OSError:
        return False


def _in_folder(top: Path, recursive: bool, leave_out: Path | None) -> list[Task]:
    found: list[Task] = []
    hidden = None if leave_out is None else os.path.realpath(leave_out)

    def unlistable(error: OSError) -> None:
        folder = Path(error.filename)
        words = f"{folder}: the folder cannot be listed ({error.strerror}): check its permissions."
        found.append(Task(folder, folder.relative_to(top), words))

    for folder, below, names in os.walk(top, onerror=unlistable):
        below[:] = sorted(
            name
            for name in below
            if recursive and not name.startswith(".") and os.path.realpath(Path(folder) / name) != hidden
        )
        for name in sorted(names):
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                found.append(Task(Path(folder) / name, Path(folder).relative_to(top)))
    return found


def read_list(path: Path) -> list[Path]:
    """Paths from a text file, or from standard input for `-`, one a line; empty lines are passed over.

    Bytes that are not UTF-8 stay what they are, as names of files may hold them. Raises UsageError.
    """
    try:
        data = read_bytes(path)
    except ImageReadError as error:
        source = "standard input" if is_standard_stream(path) else f"'{path}'"
        raise UsageError(f"--files-from {source} gives no list: {error}") from None
    lines = data.removeprefix(BYTE_ORDER_MARK).splitlines()
    return [Path(os.fsdecode(line)) for line in lines if line.strip()]


def parse_format(text: str | None) -> str | None:
    """A suffix of the table of formats, with or without its dot, as a suffix without. Raises UsageError."""
    if text is None:
        return None
    suffix = "." + text.lower().lstrip(".")
    if suffix not in SUFFIXES:
        known = ", ".join(sorted(known.lstrip(".") for known in SUFFIXES))
        raise UsageError(f"--format '{text}' is not one of {known}.")
    return suffix.lstrip(".")


def parse_quality(quality: int | None, format: str | None) -> int | None:
    """1 to 100, for a format that can lose something. Raises UsageError."""
    if quality is None:
        return None
    able = sorted(suffix.lstrip(".") for suffix, entry in SUFFIXES.items() if entry.name in QUALITY_FLAGS)
    if format not in able:
        raise UsageError(f"--quality says how much is lost, so it needs --format {' or '.join(able)}.")
    if not 1 <= quality <= 100:
        raise UsageError(f"--quality {quality} is not a whole number from 1 to 100.")
    return quality


def parse_shard(text: str) -> tuple[int, int]:
    """`i/N` with 1 ≤ i ≤ N: the i-th of N equal shares. Raises UsageError."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard '{text}' is not like 2/8: the second of eight shares.")
    return int(index), int(count)


def shard(tasks: list[Task], index: int, count: int) -> list[Task]:
    """Every `count`-th task from the `index`-th on, so that shares are disjoint and together complete."""
    return tasks[index - 1 :: count]


@dataclass(frozen=True)
class Names:
    """Makes output names from a template such as `{stem}_{filter}_{width}x{height}{ext}`."""

    template: str
    filter: str
    method: str
    stride: int

    def __post_init__(self) -> None:
        try:
            fields = {field for _, field, _, _ in string.Formatter().parse(self.template) if field is not None}
        except ValueError as error:
            raise UsageError(f"--name '{self.template}' is not a template: {error}.") from None
        unknown = sorted(fields - set(NAME_FIELDS))
        if unknown:
            known = ", ".join(f"{{{field}}}" for field in NAME_FIELDS)
            raise UsageError(f"--name '{self.template}' has {{{unknown[0]}}}, which is not one of {known}.")
        if "stem" not in fields:
            raise UsageError(f"--name '{self.template}' lacks {{stem}}, so all pictures would take one name.")
        if "/" in self.template or "\\" in self.template:
            raise UsageError(f"--name '{self.template}' has a folder in it: name the folder with -o.")

    def name(self, stem: str, ext: str, width: int | str, height: int | str) -> str:
        """The file name of one output; `ext` has its dot."""
        try:
            return self.template.format(
                stem=stem,
                ext=ext,
                width=width,
                height=height,
                filter=self.filter,
                method=self.method,
                stride=self.stride,
            )
        except (ValueError, IndexError, KeyError) as error:
            raise UsageError(f"--name '{self.template}' is not a template: {error}.") from None


def refuse_collisions(tasks: Collection[Task], output: Path, names: Names, format: str | None) -> None:
    """Raise ImageWriteError where two outputs would take one name, or one that of an input.

    `tasks` are those of all shares. Names are compared without regard to case, as many file systems do, and with `*`
    for what is known only later; whether such an output is an input is looked at again when it is written.
    """
    inputs = {path.lower() for path in real_paths(tasks)}
    suffixes = sorted({f".{suffix}" for suffix in ([format] if format else FORMAT_OF_DTYPE.values())})
    taken: dict[tuple[Path, str], Path] = {}
    for task in tasks:
        if task.problem is not None:
            continue
        name = names.name(task.source.stem, "", *("*" for _ in LATE_FIELDS))
        first = taken.setdefault((task.folder, name.lower()), task.source)
        if first is not task.source:
            raise ImageWriteError(
                f"{task.source} and {first} would both be written to {output / task.folder / name}: "
                "rename one, or filter them into different folders."
            )
        folder = os.path.realpath(output / task.folder)
        for suffix in suffixes:
            target = names.name(task.source.stem, suffix, *("*" for _ in LATE_FIELDS))
            if os.path.realpath(os.path.join(folder, target)).lower() in inputs:
                raise ImageWriteError(
                    f"{task.source} would be written to {output / task.folder / target}, which is one of the inputs: "
                    "choose another folder with -o, or other names with --name."
                )
