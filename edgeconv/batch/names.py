"""Names of outputs: made from a template, with collisions detected before the first is written.

    {stem}_{filter}{rules}_{method}_s{stride}{ext}     also {width} and {height}, known once the picture is decoded
    {stem}{source_ext}_edges{ext}                      with the input's suffix, where a.png lies beside a.jpg

A template ends in {ext}, or in the suffix of a format. Names are compared ignoring case and the encoding of accents, as
many file systems do, and with `*` for fields that are known late. Collisions of the complete name with another output
or an input are checked again when it is written; where several processes write, none sees all names, so there the
template must separate the late fields from the rest (`refuse_late_collisions`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from edgeconv.batch.stores import store_of
from edgeconv.batch.task import Task
from edgeconv.batch.windows_filenames import refuse_on_windows
from edgeconv.core.request import Request
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io.files import as_compared
from edgeconv.io.formats import FORMAT_OF_DTYPE, WRITTEN
from edgeconv.run.outputs import filter_word, rules_word

NAME_FIELDS = ("stem", "source_ext", "filter", "rules", "method", "stride", "width", "height", "ext")
LATE_FIELDS = ("width", "height")
"""Fields that are known only once a picture is decoded."""
LATE = "*"
PLAIN_NUMBER = re.compile(r"(0\d+)?d?")
"""Format specifications that produce digits only."""


@dataclass(frozen=True)
class Names:
    """Makes output names from a template such as `{stem}_{filter}_{width}x{height}{ext}`."""

    template: str
    filter: str
    method: str
    stride: int
    rules: str = ""
    """Channels, output mode and threshold where they are not the default (run/outputs.py)."""

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
            raise UsageError(f"--name '{self.template}' lacks {{stem}}, so all outputs would have the same name.")
        self.name("stem", ".src", ".ext", 1, 1)  # whether each format specification fits its field
        if "/" in self.template or "\\" in self.template:
            raise UsageError(f"--name '{self.template}' has a folder in it: name the folder with -o.")

    @classmethod
    def of(cls, template: str, request: Request, method: str) -> Names:
        """Names for what a request does by a method."""
        return cls(template, filter_word(request.filter), method, request.stride, rules_word(request))

    def name(self, stem: str, source_ext: str, ext: str, width: int | str, height: int | str) -> str:
        """The file name of one output; `source_ext` and `ext` have their dots."""
        return refuse_on_windows(self._filled(self.template, stem, source_ext, ext, width, height))

    def _filled(self, template: str, stem: str, source_ext: str, ext: str, width: int | str, height: int | str) -> str:
        try:
            return template.format(
                stem=stem,
                source_ext=source_ext,
                ext=ext,
                width=width,
                height=height,
                filter=self.filter,
                rules=self.rules,
                method=self.method,
                stride=self.stride,
            )
        except (ValueError, IndexError, KeyError) as error:
            raise UsageError(f"--name '{self.template}' is not a template: {error}.") from None

    def early(self, task: Task, ext: str) -> str:
        """The name as far as it is known before the picture is decoded."""
        return self._filled(self._early_template, task.stem, task.source_ext, ext, *(LATE for _ in LATE_FIELDS))

    def way_out(self, one: Task, other: Task) -> str:
        """What to do about two pictures whose outputs have the same name, as part of a message."""
        template = self.template.replace("{stem}", "{stem}{source_ext}", 1)
        differ = as_compared(one.source_ext) != as_compared(other.source_ext)
        if differ and template != self.template and "{source_ext" not in self.template:
            return f"pass --name '{template}', rename one, or filter them into different folders"
        return "rename one, or filter them into different folders"

    @cached_property
    def _early_template(self) -> str:
        """The template without the format specifications of late fields, which apply to numbers only."""
        parts = []
        for literal, field, form, conversion in string.Formatter().parse(self.template):
            parts.append(literal.replace("{", "{{").replace("}", "}}"))
            if field is not None and field in LATE_FIELDS:
                parts.append(f"{{{field}}}")
            elif field is not None:
                parts.append(f"{{{field}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}}}")
        return "".join(parts)

    def refuse_other_suffix(self, format: str | None) -> None:
        """Raise UsageError where names would not end in the suffix of a format, or in another than `format`."""
        if self.template.endswith("{ext}"):
            return
        suffix = PurePosixPath(self.template).suffix.lower()
        if suffix not in WRITTEN:
            raise UsageError(
                f"--name '{self.template}' does not end in the suffix of a format: use {{ext}}, .png, .tiff or similar."
            )
        if format is not None and WRITTEN[suffix] is not WRITTEN[f".{format}"]:
            raise UsageError(f"--name '{self.template}' ends in {suffix}, and --format is {format}: end it in {{ext}}.")

    def refuse_late_collisions(self) -> None:
        """Raise UsageError where two pictures with different stems could get the same name because of their sizes.

        They cannot where a character other than a digit separates each late field from the stem: then equal names
        have equal stems, which `refuse_collisions` has compared. Stem and suffix of the input side by side count as
        one text, its name; apart, a part of one could be read as a part of the other.
        """
        values = {
            "filter": self.filter,
            "rules": self.rules,
            "method": self.method,
            "stride": str(self.stride),
            "ext": ".",
        }
        values |= {"stem": "\0", "source_ext": "\2"} | dict.fromkeys(LATE_FIELDS, "\1")
        shape, plain = "", True
        for literal, field, form, conversion in string.Formatter().parse(self.template):
            shape += literal + values.get(field or "", "")
            if field in LATE_FIELDS:
                plain = plain and not conversion and PLAIN_NUMBER.fullmatch(form or "") is not None
        shape = shape.replace("\0\2", "\0")
        if "\1" in shape and "\2" in shape:
            raise UsageError(
                f"--name '{self.template}' has {{source_ext}} apart from {{stem}} and uses {{width}} or {{height}}, so "
                "that outputs of several processes could have the same name: put it right behind {stem}."
            )
        if not plain or re.search("\0\\d*\1|\1\\d*\0", shape):
            raise UsageError(
                f"--name '{self.template}' runs {{width}} or {{height}} into {{stem}}, so that outputs of several "
                "processes could have the same name: put a letter or _ between them."
            )


def refuse_collisions(tasks: Collection[Task], output: str, names: Names, format: str | None) -> None:
    """Raise ImageWriteError where two outputs would have the same name, or one that of an input.

    `tasks` are those of all shares.
    """
    store = store_of(output)
    inputs = {as_compared(task.identity) for task in tasks}
    places = Places(output, names, format)
    taken: dict[tuple[str, str], Task] = {}
    for task in tasks:
        if task.problem is not None:
            continue
        name = names.early(task, "")
        first = taken.setdefault((as_compared(task.folder.as_posix()), as_compared(name)), task)
        if first is not task:
            raise ImageWriteError(
                f"{task.source} and {first.source} would both be written to "
                f"{store.join(output, task.folder / name)}: {names.way_out(task, first)}."
            )
        for target, identity in places.of(task):
            if as_compared(identity) in inputs:
                raise ImageWriteError(
                    f"{task.source} would be written to {store.join(output, task.folder / target)}, "
                    "which is one of the inputs: choose another folder with -o, or other names with --name."
                )


def split_off_outputs(
    tasks: Collection[Task], output: str, names: Names, format: str | None
) -> tuple[list[Task], list[Task]]:
    """The tasks to filter, and those whose file lies where the output of another task goes.

    Such a file is left where a run that wrote into its input folder was killed between an output and its row. Whether
    it holds that output is checked when the output is computed: nothing else replaces it.
    """
    places = Places(output, names, format)
    made_by: dict[str, set[Task]] = {}
    for task in tasks:
        for _, identity in places.of(task) if task.problem is None else ():
            made_by.setdefault(identity, set()).add(task)
    outputs = [task for task in tasks if made_by.get(task.identity, set()) - {task}]
    left_out = set(outputs)
    return [task for task in tasks if task not in left_out], outputs


class Places:
    """Where outputs may go, as far as that is known before the pictures are decoded."""

    def __init__(self, output: str, names: Names, format: str | None) -> None:
        self._output, self._names, self._store = output, names, store_of(output)
        self._suffixes = sorted({f".{suffix}" for suffix in ([format] if format else FORMAT_OF_DTYPE.values())})
        self._folders: dict[PurePosixPath, str] = {}

    def of(self, task: Task) -> Iterator[tuple[str, str]]:
        """Name and identity of each file that may be the output of a task."""
        if task.folder not in self._folders:
            self._folders[task.folder] = self._store.identity(self._store.join(self._output, task.folder))
        for suffix in self._suffixes:
            target = self._names.early(task, suffix)
            yield target, self._store.identity(self._store.join(self._folders[task.folder], target))
