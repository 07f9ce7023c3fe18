"""`edgeconv run`: a picture in, its edges and a GFLOPS report out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgeconv.cli import shared_options
from edgeconv.cli.printing import say, say_lines

if TYPE_CHECKING:
    from edgeconv.run.job import Job
    from edgeconv.run.report import RunReport


def run(
    picture: Annotated[
        str, typer.Argument(help="PNG, JPEG, TIFF, WebP, BMP or NPY; - for standard input; a Zarr, by tiles.")
    ],
    filter_name: shared_options.FilterName = shared_options.DEFAULT_FILTER,
    kernel: shared_options.KernelText = None,
    kernel_file: shared_options.KernelFile = None,
    method: shared_options.MethodName = "auto",
    device: shared_options.DeviceWord = "auto",
    stride: shared_options.Stride = 1,
    padding: shared_options.Padding = "same",
    border: shared_options.BorderWord = "zero",
    channels: shared_options.ChannelsWord = "mix",
    luma: shared_options.LumaWord = "bt601",
    output_mode: shared_options.OutputModeWord = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A file, a folder (made if missing), or - for standard output.")
    ] = None,
    overwrite: shared_options.Overwrite = False,
    threads: shared_options.Threads = None,
    workspace_limit: shared_options.WorkspaceLimit = shared_options.DEFAULT_WORKSPACE_LIMIT,
    math: shared_options.MathWord = "fma",
    gemm: shared_options.GemmWord = "own",
    cudnn_find: shared_options.CudnnFind = False,
    block: shared_options.BlockSide = shared_options.DEFAULT_BLOCK,
    samples: Annotated[int, typer.Option(help="Most timed runs after the first; 0 for none.")] = 200,
    time_limit: Annotated[float, typer.Option(help="Seconds that the timed runs may take.")] = 0.15,
    check: Annotated[str, typer.Option(help="Compare with the float64 oracle: sample, full or none.")] = "sample",
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
    tile: shared_options.TileSide = None,
    memory_limit: shared_options.MemoryLimit = None,
    verify_tiles: shared_options.VerifyTiles = False,
    json_only: Annotated[bool, typer.Option("--json", help="Print the report as JSON in place of the table.")] = False,
) -> None:
    """Filter one picture; save it as NAME_FILTER_METHOD_sSTRIDE.png with its report beside it as .json."""
    from edgeconv.cli.options import check_sampling, chosen_filter, parse_options, parse_read_rules
    from edgeconv.core.request import make_request
    from edgeconv.errors import EXIT_DIFFERENT
    from edgeconv.hardware.process import seconds_since_process_start
    from edgeconv.io.files import is_standard_stream
    from edgeconv.run import report, report_text, whole
    from edgeconv.run.job import Job
    from edgeconv.run.tiled.sources.zarr import is_zarr

    started = seconds_since_process_start()
    check_sampling(samples, time_limit)
    request = make_request(
        chosen_filter(filter_name, kernel, kernel_file),
        channels=channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    work = Job(
        source=picture,
        request=request,
        method=method,
        device=device,
        output=output,
        overwrite=overwrite,
        options=parse_options(workspace_limit, threads, math, gemm, cudnn_find, block),
        samples=samples,
        time_limit_seconds=time_limit,
        check=check,
        rules=parse_read_rules(max_pixels, max_bytes, strict),
    )
    if tile is not None or memory_limit is not None or verify_tiles or is_zarr(Path(picture)):
        record = _by_tiles(work, tile, memory_limit, verify_tiles, started)
    else:
        record = whole.run(work, started)
    to_standard_error = output is not None and is_standard_stream(output)
    text = report.to_json(record).decode().rstrip() if json_only else report_text.table(record)
    say_lines(text, err=to_standard_error)
    if record.check is not None and not record.check.passed:
        say("edgeconv: the output is not what the float64 oracle gives; see 'check' in the report.", err=True)
        raise typer.Exit(EXIT_DIFFERENT)
    proof = None if record.tiles is None else record.tiles.proof
    if proof is not None and not proof.passed:
        say(f"edgeconv: the output is not that of {proof.against}; see 'proof' in the report.", err=True)
        raise typer.Exit(EXIT_DIFFERENT)


def _by_tiles(work: Job, side: int | None, memory_limit: str | None, verify: bool, started: float | None) -> RunReport:
    """`whole.run` by tiles, with a line on standard error that says how far it is."""
    from edgeconv.cli.options import parse_bytes
    from edgeconv.run.progress import Progress
    from edgeconv.run.tiled import filtering

    limit_bytes = None if memory_limit is None else parse_bytes(memory_limit, "--memory-limit")
    options = filtering.TileOptions(side, limit_bytes, verify)
    shown: list[Progress] = []

    def progress(done: int, total: int, what: str) -> None:
        if not shown:
            shown.append(Progress(total, "tiles"))
        shown[0].update(done, what)

    try:
        return filtering.run(work, options, started, progress)
    finally:
        for line in shown:
            line.close()
