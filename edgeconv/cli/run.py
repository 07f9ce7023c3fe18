"""`edgeconv run`: a picture in, its edges and a GFLOPS report out."""

from __future__ import annotations

import sys
from time import thread_time
from typing import TYPE_CHECKING, Annotated

from edgeconv.cli.needless import by_tiles
from edgeconv.cli.printing import say, say_lines, say_rows
from edgeconv.core.option import Positional
from edgeconv.options import (
    PICTURE_HELP,
    Applying,
    MethodChoice,
    MethodOptions,
    Reading,
    RunOutput,
    Sampling,
    Tiling,
)

if TYPE_CHECKING:
    from edgeconv.run.job import Job
    from edgeconv.run.report import RunReport


def run(
    picture: Annotated[str, Positional(f"{PICTURE_HELP}; a Zarr, by tiles.")],
    filtering: Applying,
    choice: MethodChoice,
    method: MethodOptions,
    place: RunOutput,
    sampling: Sampling,
    reading: Reading,
    tiling: Tiling,
) -> int:
    """Filter a picture and report its GFLOPS.

    It is saved as NAME_FILTER_METHOD_sSTRIDE.png with its report beside it as .json. Several --filters give a picture
    each, or all in one file that is named .tiff (a page each) or .npy. For several pictures there is 'edgeconv batch'.

    \b
    edgeconv run photo.jpg
    edgeconv run photo.png --filter canny --blur 5
    edgeconv run photo.png --method cudnn --stride 2
    """
    from edgeconv.core.records import to_json
    from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK, UsageError
    from edgeconv.io.files import is_standard_stream
    from edgeconv.run import report_text
    from edgeconv.run.job import Job
    from edgeconv.run.picture import run_picture

    started = thread_time()  # libraries wake threads of their own, which spin meanwhile
    format, quality = place.encoding()
    job = Job(
        source=picture,
        request=filtering.request(),
        method=choice.method,
        device=choice.device,
        output=place.output,
        overwrite=place.overwrite,
        options=method.options(),
        samples=sampling.samples,
        time_limit_seconds=sampling.time_limit,
        format=format,
        quality=quality,
        check=sampling.check,
        rules=reading.rules(),
        tile=tiling.tile,
        limit_bytes=tiling.limit_bytes,
    )
    aside = place.output is not None and is_standard_stream(place.output)  # which takes the picture then
    if aside and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("Standard output is a terminal, which cannot show a picture's bytes: name a file with -o.")
    start = _by_tiles if by_tiles({"picture": picture, **vars(tiling)}) else run_picture
    record = start(job, started)
    if place.json_only:
        say_lines(to_json(record).decode().rstrip(), err=aside)
    elif not place.quiet:
        say_rows(report_text.table(record) if place.verbose else report_text.summary(record), err=aside)
    if record.check is not None and not record.check.passed:
        say("edgeconv: the output is not what the float64 oracle gives; see 'check' in the report.", err=True)
        return EXIT_DIFFERENT
    return EXIT_OK


def _by_tiles(job: Job, started: float) -> RunReport:
    """`run_by_tiles`, with a line on standard error that says how far it is."""
    from edgeconv.cli.progress import Progress
    from edgeconv.run.tiles import run_by_tiles

    with Progress("tiles") as line:
        return run_by_tiles(job, started, line.update)
