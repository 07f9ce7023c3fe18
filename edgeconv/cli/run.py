"""`edgeconv run`: a picture in, its edges and a GFLOPS report out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeconv.cli.printing import say, say_lines
from edgeconv.core.option import Positional
from edgeconv.options import (
    Bank,
    Filtering,
    MethodChoice,
    MethodOptions,
    Overwriting,
    Printing,
    Reading,
    RunOutput,
    Sampling,
    Tiling,
)

if TYPE_CHECKING:
    from edgeconv.run.job import Job
    from edgeconv.run.report import RunReport


def run(
    picture: Annotated[str, Positional("PNG, JPEG, TIFF, WebP, BMP or NPY; - for standard input; a Zarr, by tiles.")],
    filtering: Filtering,
    bank: Bank,
    choice: MethodChoice,
    method: MethodOptions,
    place: RunOutput,
    overwriting: Overwriting,
    sampling: Sampling,
    reading: Reading,
    tiling: Tiling,
    printing: Printing,
) -> None:
    """Filter one picture and report its GFLOPS.

    It is saved as NAME_FILTER_METHOD_sSTRIDE.png with its report beside it as .json. Several --filters give a picture
    each, or all in one file that is named .tiff (a page each) or .npy.
    """
    from edgeconv.errors import EXIT_DIFFERENT
    from edgeconv.hardware.process import seconds_since_process_start
    from edgeconv.io.files import is_standard_stream
    from edgeconv.run import report, report_text, whole
    from edgeconv.run.job import Job
    from edgeconv.run.tiled.sources.zarr import is_zarr

    started = seconds_since_process_start()
    sampling.refuse_impossible()
    job = Job(
        source=picture,
        request=filtering.request(bank.filters),
        method=choice.method,
        device=choice.device,
        output=place.output,
        overwrite=overwriting.overwrite,
        options=method.options(),
        samples=sampling.samples,
        time_limit_seconds=sampling.time_limit,
        check=sampling.check,
        rules=reading.rules(),
    )
    record = _by_tiles(job, tiling, started) if tiling.asked or is_zarr(Path(picture)) else whole.run(job, started)
    to_standard_error = place.output is not None and is_standard_stream(place.output)
    text = report.to_json(record).decode().rstrip() if printing.json_only else report_text.table(record)
    say_lines(text, err=to_standard_error)
    if record.check is not None and not record.check.passed:
        say("edgeconv: the output is not what the float64 oracle gives; see 'check' in the report.", err=True)
        raise typer.Exit(EXIT_DIFFERENT)
    proof = None if record.tiles is None else record.tiles.proof
    if proof is not None and not proof.passed:
        say(f"edgeconv: the output is not that of {proof.against}; see 'proof' in the report.", err=True)
        raise typer.Exit(EXIT_DIFFERENT)


def _by_tiles(job: Job, tiling: Tiling, started: float | None) -> RunReport:
    """`whole.run` by tiles, with a line on standard error that says how far it is."""
    from edgeconv.core.units import parse_bytes
    from edgeconv.run.progress import Progress
    from edgeconv.run.tiled import filtering

    limit_bytes = None if tiling.memory_limit is None else parse_bytes(tiling.memory_limit, "--memory-limit")
    options = filtering.TileOptions(tiling.tile, limit_bytes, tiling.verify_tiles)
    shown: list[Progress] = []

    def progress(done: int, total: int, what: str) -> None:
        if not shown:
            shown.append(Progress(total, "tiles"))
        shown[0].update(done, what)

    try:
        return filtering.run(job, options, started, progress)
    finally:
        for line in shown:
            line.close()
