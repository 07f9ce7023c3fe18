"""`edgeconv run`: a picture in, its edges and a GFLOPS report out; or a few pictures, one after another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edgeconv.cli.printing import say, say_error, say_lines, say_rows
from edgeconv.core.option import AUTO, Positional
from edgeconv.options import (
    PICTURE_HELP,
    Bank,
    Chaining,
    Filtering,
    Masking,
    MethodChoice,
    MethodOptions,
    Overwriting,
    Reading,
    RunOutput,
    RunPrinting,
    Sampling,
    Tiling,
)

if TYPE_CHECKING:
    from edgeconv.run.job import Job
    from edgeconv.run.report import RunReport


def run(
    pictures: Annotated[list[str], Positional(f"{PICTURE_HELP}; a Zarr, by tiles.")],
    filtering: Filtering,
    masking: Masking,
    bank: Bank,
    chaining: Chaining,
    choice: MethodChoice,
    method: MethodOptions,
    place: RunOutput,
    overwriting: Overwriting,
    sampling: Sampling,
    reading: Reading,
    tiling: Tiling,
    printing: RunPrinting,
) -> int:
    """Filter a picture and report its GFLOPS.

    It is saved as NAME_FILTER_METHOD_sSTRIDE.png with its report beside it as .json. Several --filters give a picture
    each, or all in one file that is named .tiff (a page each) or .npy. Of several pictures each has its own, and one
    that fails stops no other: the exit code is that of the first that failed.
    """
    from edgeconv.api.auto import choose
    from edgeconv.core.records import to_json
    from edgeconv.errors import EXIT_DIFFERENT, EXIT_OK, EdgeconvError
    from edgeconv.hardware.system_files import seconds_since_process_start
    from edgeconv.io.files import is_standard_stream
    from edgeconv.methods import require
    from edgeconv.run import report_text
    from edgeconv.run.job import Job
    from edgeconv.run.naming import refuse_shared_output
    from edgeconv.run.picture import Roofs, run_picture
    from edgeconv.run.sources.zarr import is_zarr

    started = seconds_since_process_start()
    format, quality = place.encoding()
    refuse_shared_output(pictures, place.output)
    several = Job(
        source="",
        request=filtering.request(bank.filters, masking.threshold, chaining),
        method=choice.method,
        device=choice.device,
        output=place.output,
        overwrite=overwriting.overwrite,
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
    if len(pictures) > 1 and choice.method != AUTO:  # what is wrong for all of them is said once
        found = choose(choice.method, choice.device)
        require(found.method, found.device, several.options)
    aside = place.output is not None and is_standard_stream(place.output)  # which takes the picture then
    roofs: Roofs = {}
    records: list[RunReport] = []
    exit_code = EXIT_OK
    for picture in pictures:
        job, since = replace(several, source=picture), started if picture is pictures[0] else None
        try:
            by_tiles = tiling.asked or is_zarr(Path(picture))
            record = _by_tiles(job, since) if by_tiles else run_picture(job, since, roofs)
        except EdgeconvError as error:
            if len(pictures) == 1:
                raise
            say_error(error, picture)
            exit_code = exit_code or error.exit_code
            continue
        records.append(record)
        if not (printing.json_only or printing.quiet):
            if printing.verbose and len(records) > 1:
                say("", err=aside)
            say_rows(report_text.table(record) if printing.verbose else report_text.summary(record), err=aside)
        if record.check is not None and not record.check.passed:
            say("edgeconv: the output is not what the float64 oracle gives; see 'check' in the report.", err=True)
            exit_code = exit_code or EXIT_DIFFERENT
    if printing.json_only and records:
        texts = [to_json(record).decode().rstrip() for record in records]
        say_lines(texts[0] if len(pictures) == 1 else f"[{', '.join(texts)}]", err=aside)
    return exit_code


def _by_tiles(job: Job, started: float | None) -> RunReport:
    """`run_by_tiles`, with a line on standard error that says how far it is."""
    from edgeconv.cli.progress import Progress
    from edgeconv.run.tiles import run_by_tiles

    with Progress("tiles") as line:
        return run_by_tiles(job, started, line.update)
