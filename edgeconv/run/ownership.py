"""May an existing output be replaced, and why not.

What exists is replaced with --overwrite, or where a record shows that it is an unmodified earlier output of the same
picture and settings. The record is the report beside the picture, or the row of a batch's ledger. An input is never
replaced. `Outputs` (io/outputs.py) asks before any work, and again when the finished files get their names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeconv.api.figures import ProblemPart
from edgeconv.core.records import plain
from edgeconv.errors import ImageWriteError
from edgeconv.io.contained_paths import ForeignFileError, file_identity, open_regular
from edgeconv.io.files import STANDARD_STREAM, is_device, parse_json
from edgeconv.io.outputs import Outputs
from edgeconv.run.job import Job

MAX_REPORT_BYTES = 2**26
"""Of a file that may be the report of an earlier run: thousands of times what one takes."""


NO_RECORD = "exists"
"""Why a file is not replaced unasked that no record describes, as a phrase after its name."""


def reason_to_keep(
    source: str, recorded_input: str, *, same_input: bool, same_settings: bool, unchanged: bool
) -> str | None:
    """Why an output that a record describes is not replaced unasked, as such a phrase; None where it may be.

    `source` is the input of the output to be written, `recorded_input` that of the record. `unchanged`: the file holds
    what the record says, or was removed.
    """
    if not unchanged:
        return "exists and was changed since edgeconv wrote it"
    if not same_settings:
        return "holds a result with other settings"
    if not same_input:
        earlier = "an earlier version of" if recorded_input == source else "another picture,"
        return f"holds the result of {earlier} {recorded_input}"
    return None


@dataclass(frozen=True)
class Made:
    """What the outputs of a run are made from, as its report states it."""

    problem: ProblemPart
    in_channels: int
    """1 where a grey picture is filtered as such, 3 where it is read as RGB."""
    method: str
    input_sha256: Callable[[], str]
    """Of the input's file; asked only where an earlier output has the same settings."""


def reserve(
    job: Job,
    made: Made,
    pictures: tuple[Path, ...],
    report: Path | None,
    is_own_folder: Callable[[Path], bool] = lambda path: False,
) -> Outputs:
    """The outputs of a run, each of which may be written; raises ImageWriteError.

    `report` is None for a stream or a device, which have nothing beside them. It gets its name first: a run that is
    killed leaves no picture without its report.
    """

    def keep(path: Path) -> str | None:
        """The `reason_to_keep` of an output, by what the report says of it, where anybody may have put anything."""
        if path == report and any(map(os.path.lexists, pictures)):
            return None  # the answer is that for the pictures
        assert report is not None
        try:
            with open_regular(report) as stream:  # a link never: whoever made it must not choose what is replaced
                found = parse_json(stream.read(MAX_REPORT_BYTES).decode("utf-8"))
            recorded = found["output"].get("files") or [found["output"]]
            same_settings = (
                found["problem"] == plain(made.problem)
                and found["input"]["channels"] == made.in_channels
                and found["method"]["name"] == made.method
                and len(recorded) == len(pictures)
            )
            # A run that was killed between the report and the pictures leaves some of them out.
            unchanged = all(
                _is_unchanged(picture, file)
                for picture, file in zip(pictures, recorded, strict=False)
                if picture == path and os.path.lexists(picture)
            )
            same_input = not same_settings or found["input"]["file_sha256"] == made.input_sha256()
            recorded_input = str(found["input"]["file"])
        except (ForeignFileError, OSError, ValueError, KeyError, TypeError, AttributeError):
            return NO_RECORD  # it is not a report, or cannot be read
        return reason_to_keep(
            job.source, recorded_input, same_input=same_input, same_settings=same_settings, unchanged=unchanged
        )

    if report is not None and is_device(report):
        raise ImageWriteError(f"Output '{report}' exists and is a pipe or a device: choose another name with -o.")
    kernel = job.request.filter.file
    inputs: list[Path | str] = [job.source] if kernel is None else [job.source, kernel]
    outputs = Outputs(inputs, job.overwrite, keep, is_own_folder)
    for path in (*([] if report is None else [report]), *(pictures or (Path(STANDARD_STREAM),))):
        outputs.reserve(path)
    return outputs


def report_path(target: Path | None) -> Path | None:
    """Where the report of an output goes, if it has one."""
    return None if target is None or is_device(target) else target.with_suffix(".json")


def _is_unchanged(path: Path, recorded: dict[str, Any]) -> bool:
    """Whether a file, or a folder that is one picture, still has the recorded length and hash.

    Raises OSError, and ValueError for a link.
    """
    if path.is_symlink():
        raise ValueError("is a link")
    return all(recorded[name] == value for name, value in file_identity(path).items())
