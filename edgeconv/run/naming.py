"""Names of the files that a run writes.

name    `default_name`, unless the user names a file; `output_path` says where that goes
bank    a picture for each filter, with the filter's name in the file's (`picture_paths`); a file that the user names
        .tiff or .npy holds all, and so does standard output, as NPY
report  beside the pictures, under the name that they are called after
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from edgeconv.core.chains import Chain
from edgeconv.core.filters import Filter
from edgeconv.core.output import threshold_text
from edgeconv.core.request import Request, usual_channels
from edgeconv.errors import UsageError
from edgeconv.io.atomic import make_folder
from edgeconv.io.encoding import ALL_OF_A_BANK
from edgeconv.io.files import STANDARD_STREAM, is_device, names_a_folder
from edgeconv.io.formats import WRITTEN
from edgeconv.options import DEFAULT_NAME
from edgeconv.run.job import Job

DEFAULT_MODE = "abs"
"""What a name leaves unsaid."""
KERNEL_DIGITS = 6
"""Of the hash in the name of a kernel of one's own: two of a thousand kernels share them once in thirty folders."""


def filter_word(chosen: Filter | Chain) -> str:
    """The filter in a name: `sobel`; with a hash of its values a kernel that is not of the table: `custom-1f0c9a`."""
    if isinstance(chosen, Chain) or chosen.members or chosen.is_of_the_table:
        return chosen.name
    values = np.ascontiguousarray(chosen.kernels, "<f8")
    return f"{chosen.name}-{hashlib.sha256(values.tobytes()).hexdigest()[:KERNEL_DIGITS]}"


def rules_word(request: Request) -> str:
    """Channels, output mode and threshold in a name, where they are not the default: `_mix`, `_luma_t40`."""
    told = (request.channels, usual_channels(request.filter)), (request.output_mode or DEFAULT_MODE, DEFAULT_MODE)
    mask = "" if request.threshold is None else f"_t{threshold_text(request.threshold)}"
    chain = "" if request.chain is None else request.chain.rules_word
    return chain + "".join(f"_{value}" for value, default in told if value != default) + mask


def default_name(job: Job, method: str, output_format: str, filter: str | None = None) -> str:
    """`photo_sobel_sliding_s1.png` for `photo.jpg`; the stem is `stdin` for standard input.

    `filter` is the name of one of a bank.
    """
    return DEFAULT_NAME.format(
        stem="stdin" if job.source == STANDARD_STREAM else Path(job.source).stem,
        filter=filter_word(job.request.filter) if filter is None else filter,
        rules=rules_word(job.request),
        method=method,
        stride=job.request.stride,
        ext=f".{output_format}",
    )


def output_path(job: Job, method: str, output_format: str, folder_formats: tuple[str, ...] = ()) -> Path | None:
    """Where the picture goes, in `output_format` unless the name says otherwise; None for standard output.

    `folder_formats` are suffixes of formats that are folders themselves. A folder that is named is made.
    """
    if job.output == STANDARD_STREAM:
        return None
    if job.output is None:
        return Path(default_name(job, method, output_format))
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
    return path / default_name(job, method, output_format)


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
