"""`edgeconv compare`: do the methods agree, and where not?"""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli import comparing


def compare(
    picture: Annotated[str, typer.Argument(help="PNG, JPEG, TIFF, WebP, BMP or NPY; - for standard input.")],
    filter_name: Annotated[str, typer.Option("--filter", "-f", help="See 'edgeconv filters'.")] = "laplacian8",
    kernel: Annotated[str | None, typer.Option(help="A 3×3 kernel in place of --filter: '0,1,0;1,-4,1;0,1,0'.")] = None,
    kernel_file: Annotated[
        str | None, typer.Option(help="A kernel from .json or .csv: 3×3, or 3×3×3×3 (out, in, row, column).")
    ] = None,
    stride: Annotated[int, typer.Option("--stride", "-s", help="Pixels between neighbouring outputs.")] = 1,
    padding: Annotated[str, typer.Option(help="same (1 pixel), valid (0), or pixels on every side.")] = "same",
    border: Annotated[str, typer.Option(help="zero, replicate, reflect or reflect101.")] = "zero",
    channels: Annotated[str, typer.Option(help="mix, each or luma.")] = "mix",
    luma: Annotated[str, typer.Option(help="bt601 or bt709, for --channels luma.")] = "bt601",
    output_mode: Annotated[
        str | None, typer.Option(help="abs, clip, normalize or raw. Default: abs; raw for float pictures.")
    ] = None,
    crop: Annotated[int | None, typer.Option(help="Use only the middle square of this side.")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads. Default: what this process may use.")] = None,
    workspace_limit: Annotated[
        str, typer.Option(help="Most memory for a method beside the pictures: bytes, or with K, M or G.")
    ] = "512M",
    math: Annotated[str, typer.Option(help="CUDA arithmetic: fma (true float32), tf32 or half.")] = "fma",
    gemm: Annotated[str, typer.Option(help="CUDA im2col: own or cublas.")] = "own",
    atol: Annotated[
        float | None, typer.Option(help="Accept |difference| up to this. Default: what rounding explains.")
    ] = None,
    rtol: comparing.Rtol = 0.0,
    ulp: comparing.Ulp = 0,
    max_count: comparing.MaxCount = 0,
    ignore_border: comparing.IgnoreBorder = 0,
    ssim: comparing.Ssim = False,
    flip: comparing.Flip = False,
    html: comparing.Html = None,
    contact_sheet: comparing.ContactSheet = None,
    pictures: comparing.Pictures = None,
    junit: comparing.Junit = None,
    page_limit: comparing.PageLimit = "256M",
    overwrite: comparing.Overwrite = False,
    json_only: comparing.JsonOnly = False,
) -> None:
    """Filter a picture with every method that works here and compare the results with the float64 reference.

    Unless told otherwise, whole numbers may differ by one level (a rounding tie), floats by the reports' tolerance.
    Exit code 0: all agree; 1: one does not; 2 to 5: errors.
    """
    from edgeconv.cli.options import chosen_filter, parse_bytes, parse_options
    from edgeconv.diff import job, methods
    from edgeconv.diff.metrics import Allowance
    from edgeconv.request import make_request

    request = make_request(
        chosen_filter(filter_name, kernel, kernel_file),
        channels=channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    wanted = job.Wanted(
        allowance=Allowance(atol or 0.0, rtol, ulp, max_count, ignore_border),
        perceptual=comparing.perceptual_names(ssim=ssim, flip=flip),
        html=html,
        junit=junit,
        contact_sheet=contact_sheet,
        pictures=pictures,
        page_limit_bytes=parse_bytes(page_limit),
        overwrite=overwrite,
    )
    options = parse_options(workspace_limit, threads, math, gemm, cudnn_find=False)
    done = methods.run(picture, request, options, wanted, crop=crop, by_rule=atol is None)
    comparing.finish(done, json_only)
