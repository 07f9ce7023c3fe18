"""Names of outputs: made from a template, and found to collide before the first is written.

    {stem}_{filter}_{method}_s{stride}{ext}     also {width} and {height}, which only the decoded picture tells

Names are compared without regard to case, as many file systems do, and with `*` for what is known only late. Whether a
late name meets another or an input is looked at again when it is written; where several processes write, nobody sees
all names, so there a template must keep the late fields from running into the rest (`refuse_late_meetings`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from edgeconv.batch.stores import store_of
from edgeconv.batch.task import Task
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.job import FORMAT_OF_DTYPE

DEFAULT_NAME = "{stem}_{filter}_{method}_s{stride}{ext}"
NAME_FIELDS = ("stem", "filter", "method", "stride", "width", "height", "ext")
LATE_FIELDS = ("width", "height")
"""Known only once a picture is decoded."""
LATE = "*"
PLAIN_NUMBER = re.compile(r"(0\d+)?d?")
"""Format specifications that give digits and nothing else."""


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

    def early(self, stem: str, ext: str) -> str:
        """The name as far as it is known before the picture is."""
        return self.name(stem, ext, *(LATE for _ in LATE_FIELDS))

    def refuse_late_meetings(self) -> None:
        """Raise UsageError where two pictures of different stems might get one name for their sizes alone.

        They cannot where whatever is not a digit stands between a late field and the stem: then two equal names
        have equal stems, which `refuse_collisions` has looked at.
        """
        values = {"filter": self.filter, "method": self.method, "stride": str(self.stride), "ext": "."}
        values |= {"stem": "\0"} | dict.fromkeys(LATE_FIELDS, "\1")
        shape, plain = "", True
        for literal, field, form, conversion in string.Formatter().parse(self.template):
            shape += literal + values.get(field or "", "")
            if field in LATE_FIELDS:
                plain = plain and not conversion and PLAIN_NUMBER.fullmatch(form or "") is not None
        if not plain or re.search("\0\\d*\1|\1\\d*\0", shape):
            raise UsageError(
                f"--name '{self.template}' runs {{width}} or {{height}} into {{stem}}, so that two pictures could take "
                "one name unseen by several processes: put a letter or _ between them."
            )


def refuse_collisions(tasks: Collection[Task], output: str, names: Names, format: str | None) -> None:
    """Raise ImageWriteError where two outputs would take one name, or one that of an input.

    `tasks` are those of all shares.
    """
    store = store_of(output)
    inputs = {task.identity.lower() for task in tasks}
    suffixes = sorted({f".{suffix}" for suffix in ([format] if format else FORMAT_OF_DTYPE.values())})
    taken: dict[tuple[PurePosixPath, str], str] = {}
    folders: dict[PurePosixPath, str] = {}
    for task in tasks:
        if task.problem is not None:
            continue
        name = names.early(task.stem, "")
        first = taken.setdefault((task.folder, name.lower()), task.source)
        if first is not task.source:
            raise ImageWriteError(
                f"{task.source} and {first} would both be written to {store.join(output, task.folder / name)}: "
                "rename one, or filter them into different folders."
            )
        if task.folder not in folders:
            folders[task.folder] = store.identity(store.join(output, task.folder))
        for suffix in suffixes:
            target = names.early(task.stem, suffix)
            if store.identity(store.join(folders[task.folder], target)).lower() in inputs:
                raise ImageWriteError(
                    f"{task.source} would be written to {store.join(output, task.folder / target)}, "
                    "which is one of the inputs: choose another folder with -o, or other names with --name."
                )
