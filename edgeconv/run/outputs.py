"""Output files of `run`, of `run` by tiles and of `batch`: names, ownership and overwriting.

    name       `default_name`, unless the user names a file; `output_path` says where that goes
    bank       a picture for each filter, with the filter's name in the file's (`picture_paths`); a file that the user
               names .tiff or .npy holds all, and so does standard output, as NPY. Rules below hold for each file
    input      no output ever replaces what is read: the picture, the kernel file (`refuse_inputs`)
    existing   is replaced with --overwrite, or where a record shows that it is an earlier result of the same picture
               and settings that nobody has changed since (`reason_to_keep`); the record is the report beside the
               picture, or the row of a batch's ledger (batch/ledger.py)
    new        pictures and report appear together or not at all (`OutputFiles.publish`)

Several runs may write to one place: what exists is looked at before any work, and again just before it is replaced; a
name that was free then is taken in a step that fails if it is not free any more.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edgeconv.core.chains import Chain
from edgeconv.core.filters import FILTERS, Filter
from edgeconv.core.output import threshold_text
from edgeconv.core.records import to_json
from edgeconv.core.request import Request
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.io import temporary_files
from edgeconv.io.contained_paths import ForeignFileError, open_regular
from edgeconv.io.file_identity import file_identity
from edgeconv.io.files import (
    STANDARD_STREAM,
    as_compared,
    is_device,
    is_same_file,
    make_folder,
    names_a_folder,
    parse_json,
    refuse_overwrite,
    write_bytes_atomically,
)
from edgeconv.io.formats import WRITTEN
from edgeconv.io.image import ALL_OF_A_BANK
from edgeconv.options import DEFAULT_NAME
from edgeconv.run import report
from edgeconv.run.job import Job

MOST_REPORT_BYTES = 2**26
"""Of a file that may be the report of an earlier run: thousands of times what one takes."""

Json = dict[str, Any]


# --- names --------------------------------------------------------------------------------------------------------


DEFAULT_CHANNELS, DEFAULT_MODE = Request().channels, "abs"
"""What a name leaves unsaid."""
KERNEL_DIGITS = 6
"""Of the hash in the name of a kernel of one's own: two of a thousand kernels share them once in thirty folders."""


def filter_word(chosen: Filter | Chain) -> str:
    """The filter in a name: `sobel`; with a hash of its values a kernel that is not of the table: `custom-1f0c9a`."""
    if isinstance(chosen, Chain) or chosen.members or any(chosen is entry for entry in FILTERS):
        return chosen.name
    values = np.ascontiguousarray(chosen.kernels, "<f8")
    return f"{chosen.name}-{hashlib.sha256(values.tobytes()).hexdigest()[:KERNEL_DIGITS]}"


def rules_word(request: Request) -> str:
    """Channels, output mode and threshold in a name, where they are not the default: `_each`, `_luma_t40`."""
    told = (request.channels, DEFAULT_CHANNELS), (request.output_mode or DEFAULT_MODE, DEFAULT_MODE)
    mask = "" if request.threshold is None else f"_t{threshold_text(request.threshold)}"
    chain = "" if request.chain is None else request.chain.rules_word
    return chain + "".join(f"_{value}" for value, default in told if value != default) + mask


def default_name(job: Job, method: str, output_format: str, filter: str | None = None) -> str:
    """`photo_sobel_sliding_s1.png` for `photo.jpg`; the stem is `stdin` for standard input.

    `filter` is the name of one of a bank.
    """
    return DEFAULT_NAME.format(
        stem=_stem(job.source),
        filter=filter_word(job.request.filter) if filter is None else filter,
        rules=rules_word(job.request),
        method=method,
        stride=job.request.stride,
        ext=f".{output_format}",
    )


def refuse_shared_output(sources: list[str], output: str | None) -> None:
    """Raise UsageError where several pictures would be written to one file."""
    if len(sources) < 2:
        return
    if output is not None and (output == STANDARD_STREAM or is_device(output) or not names_a_folder(output)):
        raise UsageError(
            f"-o '{output}' takes one picture, and there are {len(sources)}: name a folder, such as -o out/."
        )
    first: dict[str, str] = {}
    for source in sources:
        other = first.setdefault(as_compared(_stem(source)), source)
        if other is not source:
            what = f"'{source}' is named twice" if other == source else f"'{other}' and '{source}' have one output name"
            raise UsageError(f"{what}: filter them one at a time, or into different folders.")


def _stem(source: str) -> str:
    return "stdin" if source == STANDARD_STREAM else Path(source).stem


def output_path(job: Job, method: str, output_format: str, folder_formats: tuple[str, ...] = ()) -> Path | None:
    """Where the picture goes, in `output_format` unless the name says otherwise; None for standard output.

    `folder_formats` are suffixes of formats that are folders themselves. A folder that is named is made.
    """
    if job.output == STANDARD_STREAM:
        return None
    name = default_name(job, method, output_format)
    if job.output is None:
        return Path(name)
    path = Path(job.output)
    if is_device(path) or path.suffix.lower() in folder_formats:
        return path
    if not names_a_folder(job.output):
        if path.suffix.lower() == ".json":
            raise UsageError(f"Output '{path}' ends in .json, the suffix of the report: name a picture.")
        named = WRITTEN.get(path.suffix.lower())
        if job.format is not None and named is not WRITTEN[f".{job.format}"]:
            raise UsageError(f"--format {job.format} and the name '{path}' disagree: leave one of the two out.")
        return path
    make_folder(path)
    return path / name


def picture_paths(job: Job, target: Path | None, method: str) -> tuple[Path, ...]:
    """The files where `target` is the output: itself, or one for each filter of a bank; none of a stream."""
    if target is None:
        return ()
    labels = job.request.filter.labels
    named = job.output is not None and Path(job.output) == target
    if not labels or is_device(target) or (named and holds_all(target)):
        return (target,)
    if named:
        return tuple(target.with_name(f"{target.stem}_{label}{target.suffix}") for label in labels)
    ending = target.suffix.removeprefix(".")
    return tuple(target.with_name(default_name(job, method, ending, label)) for label in labels)


def holds_all(path: Path) -> bool:
    """Whether a file of that suffix holds all that a filter bank gives."""
    entry = WRITTEN.get(path.suffix.lower())
    return entry is not None and entry.name in ALL_OF_A_BANK


# --- ownership ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PreviousOutput:
    """What a record says of an existing output, compared with the picture and settings that would replace it."""

    input: str
    same_input: bool
    same_settings: bool
    unchanged: bool
    """The file holds what the record says, or was removed."""


def reason_to_keep(previous: PreviousOutput | None, source: str) -> str | None:
    """Why an existing file is not replaced without being asked, as a phrase after its name; None where it may be.

    `previous` is None where no record describes the file; `source` is the input of the output to be written.
    """
    if previous is None:
        return "exists"
    if not previous.unchanged:
        return "exists and was changed since edgeconv wrote it"
    if not previous.same_settings:
        return "holds a result with other settings"
    if not previous.same_input:
        is_source = previous.input == source
        return f"holds the result of {'an earlier version of' if is_source else 'another picture,'} {previous.input}"
    return None


@dataclass(frozen=True)
class Provenance:
    """What an output is made from, as its report states it."""

    problem: Json
    in_channels: int
    """1 where a grey picture is filtered as such, 3 where it is read as RGB."""
    method: str
    is_same_input: Callable[[Json], bool]
    """Whether the part `input` of a report describes the same picture."""


def refuse_inputs(job: Job, *outputs: Path) -> None:
    """Raise ImageWriteError where an output would replace what the job reads."""
    kernel = job.request.filter.file
    for path in outputs:
        refuse_overwrite(job.source, path)
        if kernel is not None and is_same_file(kernel, path):
            raise ImageWriteError(f"{path}: is the kernel file: choose another name or folder for the output.")


def read_report(path: Path) -> Any:
    """What stands where a report goes, as JSON. Raises OSError, ValueError: anybody may have put anything there.

    A link is never taken for a report: whoever made it must not choose what is replaced unasked.
    """
    try:
        with open_regular(path) as stream:
            return parse_json(stream.read(MOST_REPORT_BYTES).decode("utf-8"))
    except (RecursionError, ForeignFileError) as error:
        raise ValueError(str(error)) from None


def is_unchanged(path: Path, recorded: Json) -> bool:
    """Whether a file, or a folder that is one picture, still has the recorded length and hash; a link never has.

    Raises OSError, ValueError.
    """
    if path.is_dir() and not path.is_symlink():
        return all(recorded[name] == value for name, value in file_identity(path).items())
    try:
        with open_regular(path) as stream:
            if os.fstat(stream.fileno()).st_size != recorded["file_bytes"]:
                return False
            return bool(hashlib.file_digest(stream, "sha256").hexdigest() == recorded["file_sha256"])
    except ForeignFileError as error:
        raise ValueError(str(error)) from None


# --- picture and report of one run --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replaceable:
    """Which of the files may replace what exists; a file that is new must find its name free."""

    pictures: tuple[bool, ...]
    report: bool
    report_is_new: bool

    @property
    def picture(self) -> bool:
        """Of a run with one picture."""
        (alone,) = self.pictures
        return alone


class OutputFiles:
    """The pictures that a run writes, one unless of a bank, and the report beside them."""

    def __init__(
        self,
        job: Job,
        target: Path | None,
        provenance: Provenance,
        may_replace_folder: Callable[[Path], bool] | None = None,
        pictures: tuple[Path, ...] | None = None,
    ) -> None:
        """`target` is None for standard output; `may_replace_folder` tells whether a folder is a picture (a Zarr).

        `pictures` are the files, where they are not those of `picture_paths`.
        """
        self._job, self._provenance, self._may_replace_folder = job, provenance, may_replace_folder
        self.target = target
        """The one picture, or the name that those of a bank and the report are called after."""
        self.pictures = picture_paths(job, target, provenance.method) if pictures is None else pictures
        self.report = None if target is None or is_device(target) else target.with_suffix(".json")
        """None for a stream or a device, which have nothing beside them."""

    def refuse_to_replace(self) -> None:
        """Raise ImageWriteError where a picture or report would replace an input, a folder, or what must be kept."""
        report_path = self.report
        if report_path is None:
            return
        refuse_inputs(self._job, *self.pictures, report_path)
        for picture in self.pictures:
            self._refuse_nested(picture)
            self._refuse_folder(picture)
        if report_path.is_dir():
            raise ImageWriteError(f"{report_path}: is a folder where the report goes: choose another name with -o.")
        taken = [path for path in (*self.pictures, report_path) if os.path.lexists(path)]
        if self._job.overwrite or not taken:
            return
        reason = reason_to_keep(self._previous(report_path), self._job.source)
        if reason is not None:
            way_out = "pass --overwrite to replace it, or -o for another place"
            raise ImageWriteError(f"Output '{taken[0]}' {reason}: {way_out}.")

    def _refuse_folder(self, picture: Path) -> None:
        """Raise ImageWriteError where a folder that is not a picture is in the way."""
        if picture.is_dir():
            if self._may_replace_folder is None:
                raise ImageWriteError(f"{picture}: is a folder: name a file in it.")
            if not self._may_replace_folder(picture):
                raise ImageWriteError(
                    f"{picture}: is a folder and not a Zarr that could be replaced: choose another name."
                )

    def _refuse_nested(self, picture: Path) -> None:
        """Raise ImageWriteError where output or input, one of them a folder, lies inside the other."""
        source, target = os.path.realpath(self._job.source), os.path.realpath(picture)
        if os.path.isdir(source) and target.startswith(source + os.sep):
            raise ImageWriteError(f"{picture}: lies inside the input: choose another place with -o.")
        if source.startswith(target + os.sep):
            raise ImageWriteError(f"{picture}: the input lies inside it: choose another place with -o.")

    def _previous(self, report_path: Path) -> PreviousOutput | None:
        """What the report beside the pictures says; None where it is no report, or cannot be read."""
        try:
            found, provenance = read_report(report_path), self._provenance
            recorded = found["output"].get("files") or [found["output"]]
            files = [{name: each[name] for name in ("file_bytes", "file_sha256")} for each in recorded]
            same_settings = (
                found["problem"] == provenance.problem
                and found["input"]["channels"] == provenance.in_channels
                and found["method"]["name"] == provenance.method
                and len(files) == len(self.pictures)
            )
            return PreviousOutput(
                input=str(found["input"]["file"]),
                same_input=not same_settings or provenance.is_same_input(found["input"]),  # the input may be large
                same_settings=same_settings,
                # a run that was killed between the report and the pictures leaves some of them out
                unchanged=all(
                    not os.path.lexists(path) or is_unchanged(path, file)
                    for path, file in zip(self.pictures, files, strict=False)
                ),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def remove_left_overs(self) -> None:
        """Remove what killed runs left half-written in the folder of the output."""
        if self.report is not None:
            for folder in {Path(os.path.realpath(picture)).parent for picture in self.pictures}:
                temporary_files.remove_left_over_in(folder)

    def replaceable(self) -> Replaceable:
        """Look again, as another run may have written there meanwhile. Raises as `refuse_to_replace`."""
        exist = tuple(os.path.lexists(picture) for picture in self.pictures)
        report_exists = self.report is not None and os.path.lexists(self.report)
        self.refuse_to_replace()
        overwrite = self._job.overwrite
        pictures = tuple(overwrite or there for there in exist) or (overwrite,)  # of a stream
        return Replaceable(pictures, overwrite or report_exists, not report_exists)

    def publish(self, record: report.RunReport, replaceable: Replaceable, put_pictures: Callable[[], None]) -> None:
        """Write the report, then let `put_pictures` move the finished pictures into place.

        Where that fails, a new report is removed again; one that replaced an earlier report stays, as that is gone.
        """
        if self.report is None:
            put_pictures()
            return
        write_bytes_atomically(self.report, to_json(record), replace=replaceable.report)
        try:
            put_pictures()
        except BaseException:  # Ctrl-C too
            if replaceable.report_is_new:
                self.report.unlink(missing_ok=True)
            raise
