"""Names of outputs: made from a template, with collisions detected before the first is written.

    {stem}_{filter}{rules}_{method}_s{stride}{ext}     also {width} and {height}, known once the picture is decoded
    {stem}{source_ext}_edges{ext}                      with the input's suffix, where a.png lies beside a.jpg

A template ends in {ext}, or in the suffix of a format. Names are compared ignoring case and the encoding of accents, as
many file systems do, and with `*` for the fields that are known late. The complete name is compared again when an
output is written; what another process has written by then is not replaced.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import Task, join, store_of
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io.files import as_compared
from edgeconv.io.formats import FORMAT_OF_DTYPE, WRITTEN
from edgeconv.run.naming import filter_word, rules_word

NAME_FIELDS = ("stem", "source_ext", "filter", "rules", "method", "stride", "width", "height", "ext")
LATE_FIELDS = ("width", "height")
"""Fields that are known only once a picture is decoded."""
DEVICE_NAME = re.compile(r"(CON|PRN|AUX|NUL|(COM|LPT)[0-9])(\.|$)", re.IGNORECASE)
"""Names of devices on Windows, with any suffix. Source: Microsoft, Naming Files, Paths, and Namespaces."""


def refuse_device_name(name: str) -> None:
    """Raise ImageWriteError for a name that no file can have on Windows, as outputs travel."""
    if DEVICE_NAME.match(name):
        raise ImageWriteError(
            f"Output '{name}' cannot be made: Windows reserves that name for a device, with any suffix. Rename the "
            "input, or put more than {stem} into --name."
        )


class _Late(str):
    """Stands for a number that is not known yet, whatever its format."""

    def __format__(self, form: str) -> str:
        return self


LATE = _Late("*")


class Names:
    """Makes output names from a template such as `{stem}_{filter}_{width}x{height}{ext}`."""

    def __init__(self, settings: Settings) -> None:
        """Raises UsageError for a bad template, also where its names would end in another format's suffix."""
        self._settings, request = settings, settings.request
        self._of_all = {
            "filter": filter_word(request.filter),
            "rules": rules_word(request),
            "method": settings.method,
            "stride": request.stride,
        }
        asked = f"--name '{settings.name}'"
        try:
            fields = {field for _, field, _, _ in string.Formatter().parse(settings.name) if field is not None}
        except ValueError as error:
            raise UsageError(f"{asked} is not a template: {error}.") from None
        unknown = sorted(fields - set(NAME_FIELDS))
        if unknown:
            known = ", ".join(f"{{{field}}}" for field in NAME_FIELDS)
            raise UsageError(f"{asked} has {{{unknown[0]}}}, which is not one of {known}.")
        if "stem" not in fields:
            raise UsageError(f"{asked} lacks {{stem}}, so all outputs would have the same name.")
        self.sized = not fields.isdisjoint(LATE_FIELDS)
        """Whether the complete names are known only once the pictures are decoded."""
        self.name(Task("stem.src", PurePosixPath(), ""), ".ext", 1, 1)  # whether each format fits its field
        if "/" in settings.name or "\\" in settings.name:
            raise UsageError(f"{asked} has a folder in it: name the folder with -o.")
        suffix = PurePosixPath(settings.name).suffix.lower()
        if settings.name.endswith("{ext}"):
            return
        if suffix not in WRITTEN:
            raise UsageError(f"{asked} does not end in the suffix of a format: use {{ext}}, .png, .tiff or similar.")
        if settings.format is not None and WRITTEN[suffix] is not WRITTEN[f".{settings.format}"]:
            raise UsageError(f"{asked} ends in {suffix}, and --format is {settings.format}: end it in {{ext}}.")

    def name(self, task: Task, ext: str, width: object = LATE, height: object = LATE) -> str:
        """The file name of one output; `ext` has its dot. Raises UsageError where a format does not fit its field."""
        own = {"stem": task.path.stem, "source_ext": task.path.suffix, "ext": ext, "width": width, "height": height}
        try:
            return self._settings.name.format(**own, **self._of_all)
        except (ValueError, IndexError, KeyError) as error:
            raise UsageError(f"--name '{self._settings.name}' is not a template: {error}.") from None

    def refuse_collisions(self, tasks: Collection[Task]) -> None:
        """Raise ImageWriteError where two outputs would have the same name, or one that of an input.

        `tasks` are those of all shares.
        """
        store, template = store_of(self._settings.output), self._settings.name
        inputs = {as_compared(task.identity) for task in tasks}
        taken: dict[tuple[str, str], Task] = {}
        for task, place in self._places(tasks):
            name = self.name(task, "")
            first = taken.setdefault((as_compared(task.folder.as_posix()), as_compared(name)), task)
            if first is not task:
                way_out, extended = "rename one", template.replace("{stem}", "{stem}{source_ext}", 1)
                differ = as_compared(task.path.suffix) != as_compared(first.path.suffix)
                if differ and extended != template and "{source_ext" not in template:
                    way_out = f"pass --name '{extended}', rename one"
                where = join(self._settings.output, task.folder / name)
                raise ImageWriteError(
                    f"{task.source} and {first.source} would both be written to {where}: "
                    f"{way_out}, or filter them into different folders."
                )
            if as_compared(store.identity(place)) in inputs:
                raise ImageWriteError(
                    f"{task.source} would be written to {place}, which is one of the inputs: "
                    "choose another folder with -o, or other names with --name."
                )

    def without_outputs(self, tasks: Collection[Task]) -> list[Task]:
        """The tasks but for those whose file lies where the output of another task goes.

        Such a file is left where a run that wrote into its input folder was killed between an output and its row.
        Whether it holds that output is checked when the output is computed: nothing else replaces it.
        """
        store, made_by = store_of(self._settings.output), defaultdict[str, set[Task]](set)
        for task, place in self._places(tasks):
            made_by[store.identity(place)].add(task)
        return [task for task in tasks if made_by.get(task.identity, set()) <= {task}]

    def _places(self, tasks: Collection[Task]) -> Iterator[tuple[Task, str]]:
        """Each task, with each place that its output may have, as far as that is known early."""
        known = self._settings.format
        for task in tasks:
            for format in [known] if known else sorted(set(FORMAT_OF_DTYPE.values())):
                if task.problem is None:
                    yield task, join(self._settings.output, task.folder / self.name(task, f".{format}"))
