"""`edgeconv compare`: do the methods agree, and where not?"""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli import comparing, shared_options


def compare(
    picture: Annotated[str, typer.Argument(help="PNG, JPEG, TIFF, WebP, BMP or NPY; - for standard input.")],
    filter_name: shared_options.FilterName = shared_options.DEFAULT_FILTER,
    kernel: shared_options.KernelText = None,
    kernel_file: shared_options.KernelFile = None,
    stride: shared_options.Stride = 1,
    padding: shared_options.Padding = "same",
    border: shared_options.BorderWord = "zero",
    channels: shared_options.ChannelsWord = "mix",
    luma: shared_options.LumaWord = "bt601",
    output_mode: shared_options.OutputModeWord = None,
    crop: Annotated[int | None, typer.Option(help="Use only the middle square of this side.")] = None,
    threads: shared_options.Threads = None,
    workspace_limit: shared_options.WorkspaceLimit = shared_options.DEFAULT_WORKSPACE_LIMIT,
    math: shared_options.MathWord = "fma",
    gemm: shared_options.GemmWord = "own",
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
    page_limit: comparing.PageLimit = comparing.DEFAULT_PAGE_LIMIT,
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
    overwrite: comparing.Overwrite = False,
    json_only: comparing.JsonOnly = False,
) -> None:
    """Filter a picture with every method that works here and compare the results with the float64 reference.

    Unless told otherwise, outputs of exact methods must be equal, others agree within their error bounds.
    Exit code 0: all agree; 1: one does not; 2 to 5: errors.
    """
    from edgeconv.cli.options import chosen_filter, parse_bytes, parse_options, parse_read_rules
    from edgeconv.core.request import make_request
    from edgeconv.diff import methods, results
    from edgeconv.diff.metrics import Allowance

    request = make_request(
        chosen_filter(filter_name, kernel, kernel_file),
        channels=channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        output_mode=output_mode,
    )
    wanted = results.Wanted(
        allowance=Allowance(atol or 0.0, rtol, ulp, max_count, ignore_border),
        perceptual=comparing.perceptual_names(ssim=ssim, flip=flip),
        html=html,
        junit=junit,
        contact_sheet=contact_sheet,
        pictures=pictures,
        page_limit_bytes=parse_bytes(page_limit, "--page-limit"),
        overwrite=overwrite,
    )
    options = parse_options(workspace_limit, threads, math, gemm, cudnn_find=False)
    rules = parse_read_rules(max_pixels, max_bytes, strict)
    done = methods.run(picture, request, options, wanted, crop=crop, by_rule=atol is None, rules=rules)
    comparing.finish(done, json_only)
