"""Which pictures go where, settled before the first is written.

A folder keeps its shape: with `--recursive`, photos/a/b.png goes to OUT/a/<name of b>. Two pictures that would take
the same name are found here, and so is one that would be written over an input.
"""

from __future__ import annotations

import os
import string
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgeconv.errors import ImageReadError, ImageWriteError, UsageError
from edgeconv.formats import SUFFIXES

DEFAULT_NAME = "{stem}_{filter}_{method}_s{stride}{ext}"
NAME_FIELDS = ("stem", "filter", "method", "stride", "width", "height", "ext")
LATE_FIELDS = ("width", "height")
"""Known only once a picture is decoded; names are compared without them."""


@dataclass(frozen=True)
class Task:
    """One picture: `source` as given, `folder` where its output goes, relative to the output folder."""

    source: Path
    folder: Path


def find_tasks(places: Iterable[Path], recursive: bool, leave_out: Path | None = None) -> list[Task]:
    """The pictures in `places`, sorted within each; raises ImageReadError where a place is missing or there is none.

    A file that is named is taken whatever its suffix. In folders, hidden files (our temporary ones too) are passed
    over, and so is the folder `leave_out`, where the outputs go, unless it is itself one of the places.
    """
    tasks: list[Task] = []
    for place in places:
        if place.is_dir():
            tasks += _in_folder(place, recursive, leave_out)
        elif place.exists():
            tasks.append(Task(place, Path()))
        else:
            raise ImageReadError(f"{place}: there is no such file or folder: check the name.")
    unique = {os.path.realpath(task.source): task for task in reversed(tasks)}
    if not unique:
        raise ImageReadError(
            "No picture was found: name files, or folders that hold PNG, JPEG, TIFF, WebP, BMP or NPY."
        )
    return [task for task in tasks if unique[os.path.realpath(task.source)] is task]


def _in_folder(top: Path, recursive: bool, leave_out: Path | None) -> list[Task]:
    found: list[Task] = []
    hidden = None if leave_out is None else os.path.realpath(leave_out)
    for folder, below, names in os.walk(top):
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
    """Paths from a text file, one a line; empty lines are passed over. Raises UsageError."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"--files-from '{path}' cannot be read: {reason}.") from None
    return [Path(line) for line in lines if line.strip()]


def parse_format(text: str | None) -> str | None:
    """A suffix of the table of formats, with or without its dot, as a suffix without. Raises UsageError."""
    if text is None:
        return None
    suffix = "." + text.lower().lstrip(".")
    if suffix not in SUFFIXES:
        known = ", ".join(sorted(known.lstrip(".") for known in SUFFIXES))
        raise UsageError(f"--format '{text}' is not one of {known}.")
    return suffix.lstrip(".")


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


def refuse_collisions(tasks: Iterable[Task], output: Path, names: Names) -> None:
    """Raise ImageWriteError where two outputs would take one name, or an output may be one of the inputs.

    Names are compared without regard to case, as many file systems do, and with `*` for what is known only later.
    """
    taken: dict[tuple[Path, str], Path] = {}
    for task in tasks:
        name = names.name(task.source.stem, "", *("*" for _ in LATE_FIELDS))
        first = taken.setdefault((task.folder, name.lower()), task.source)
        if first is not task.source:
            raise ImageWriteError(
                f"{task.source} and {first} would both be written to {output / task.folder / name}: "
                "rename one, or filter them into different folders."
            )
