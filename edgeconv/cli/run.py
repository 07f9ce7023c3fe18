"""`edgeconv run`: a picture in, its edges and a GFLOPS report out."""

from __future__ import annotations

from typing import Annotated

import typer


def run(
    picture: Annotated[str, typer.Argument(help="PNG, JPEG, TIFF, WebP, BMP or NPY; - for standard input.")],
    filter_name: Annotated[str, typer.Option("--filter", "-f", help="See 'edgeconv filters'.")] = "laplacian8",
    kernel: Annotated[str | None, typer.Option(help="A 3×3 kernel in place of --filter: '0,1,0;1,-4,1;0,1,0'.")] = None,
    kernel_file: Annotated[
        str | None, typer.Option(help="A kernel from .json or .csv: 3×3, or 3×3×3×3 (out, in, row, column).")
    ] = None,
    method: Annotated[str, typer.Option("--method", "-m", help="auto, or one of 'edgeconv doctor'.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    stride: Annotated[int, typer.Option("--stride", "-s", help="Pixels between neighbouring outputs.")] = 1,
    padding: Annotated[str, typer.Option(help="same (1 pixel), valid (0), or pixels on every side.")] = "same",
    border: Annotated[str, typer.Option(help="zero, replicate, reflect or reflect101.")] = "zero",
    channels: Annotated[
        str, typer.Option(help="mix (3→3, each output sums all three), each (by itself) or luma (one).")
    ] = "mix",
    luma: Annotated[str, typer.Option(help="bt601 or bt709, for --channels luma.")] = "bt601",
    output_mode: Annotated[
        str | None, typer.Option(help="abs, clip, normalize or raw. Default: abs; raw for float pictures.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A file, a folder (made if missing), or - for standard output.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an output that edgeconv did not write.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="CPU threads. Default: what this process may use.")] = None,
    workspace_limit: Annotated[
        str, typer.Option(help="Most memory for a method beside the pictures: bytes, or with K, M or G.")
    ] = "512M",
    math: Annotated[str, typer.Option(help="CUDA arithmetic: fma (true float32), tf32 or half.")] = "fma",
    gemm: Annotated[str, typer.Option(help="CUDA im2col: own or cublas.")] = "own",
    cudnn_find: Annotated[bool, typer.Option("--cudnn-find", help="cudnn: also measure every algorithm.")] = False,
    samples: Annotated[int, typer.Option(help="Most timed runs after the first; 0 for none.")] = 200,
    time_limit: Annotated[float, typer.Option(help="Seconds that the timed runs may take.")] = 0.15,
    check: Annotated[str, typer.Option(help="Compare with the float64 oracle: sample, full or none.")] = "sample",
    max_pixels: Annotated[int, typer.Option(help="Refuse a larger picture before it is decoded.")] = 2**28,
    json_only: Annotated[bool, typer.Option("--json", help="Print the report as JSON in place of the table.")] = False,
) -> None:
    """Filter one picture; save it as NAME_FILTER_METHOD_sSTRIDE.png with its report beside it as .json."""
    from edgeconv import job, report
    from edgeconv.cli.options import chosen_filter, parse_options
    from edgeconv.errors import EXIT_DIFFERENT
    from edgeconv.request import make_request

    started = job.seconds_since_process_start()
    request = make_request(
        chosen_filter(filter_name, kernel, kernel_file),
        channels=channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    record = job.run(
        job.Job(
            source=picture,
            request=request,
            method=method,
            device=device,
            output=output,
            overwrite=overwrite,
            options=parse_options(workspace_limit, threads, math, gemm, cudnn_find),
            samples=samples,
            time_limit_seconds=time_limit,
            check=check,
            max_pixels=max_pixels,
        ),
        started,
    )
    to_standard_error = output == job.STREAM
    text = report.to_json(record).decode().rstrip() if json_only else report.table(record)
    typer.echo(text, err=to_standard_error)
    if record["check"] is not None and not record["check"]["passed"]:
        typer.echo("edgeconv: the output is not what the float64 oracle gives; see 'check' in the report.", err=True)
        raise typer.Exit(EXIT_DIFFERENT)
