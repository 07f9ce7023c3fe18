"""`edgeconv diff`: whether pictures or folders are the same, and where and by how much they are not."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli import comparing, shared_options


def diff(
    inputs: Annotated[list[str], typer.Argument(help="Pictures (the first is the reference), or two folders.")],
    reference: Annotated[str | None, typer.Option(help="Compare every input with this picture instead.")] = None,
    atol: comparing.Atol = 0.0,
    rtol: comparing.Rtol = 0.0,
    ulp: comparing.Ulp = 0,
    max_count: comparing.MaxCount = 0,
    ignore_border: comparing.IgnoreBorder = 0,
    convert: Annotated[
        str | None,
        typer.Option(help="Make layouts agree: rgb or grey, float32 (same values) or unit (0 to 1); comma between."),
    ] = None,
    ssim: comparing.Ssim = False,
    flip: comparing.Flip = False,
    html: comparing.Html = None,
    contact_sheet: comparing.ContactSheet = None,
    pictures: comparing.Pictures = None,
    junit: comparing.Junit = None,
    update: Annotated[
        bool, typer.Option("--update", help="Two folders: make the first like the second; the old files are kept.")
    ] = False,
    page_limit: comparing.PageLimit = comparing.DEFAULT_PAGE_LIMIT,
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
    overwrite: comparing.Overwrite = False,
    json_only: comparing.JsonOnly = False,
) -> None:
    """Compare pictures, or folders by relative name: exact figures first. Differences are other − reference.

    Exit code 0: same; 1: differs; 2: error; 3: sizes, channels or types differ.
    """
    from edgeconv.cli.options import parse_bytes, parse_read_rules
    from edgeconv.diff import results
    from edgeconv.diff.metrics import Allowance
    from edgeconv.diff.request import run_request

    done = run_request(
        inputs,
        reference,
        convert,
        update,
        results.Wanted(
            allowance=Allowance(atol, rtol, ulp, max_count, ignore_border),
            perceptual=comparing.perceptual_names(ssim=ssim, flip=flip),
            html=html,
            junit=junit,
            contact_sheet=contact_sheet,
            pictures=pictures,
            page_limit_bytes=parse_bytes(page_limit, "--page-limit"),
            rules=parse_read_rules(max_pixels, max_bytes, strict),
            overwrite=overwrite,
        ),
    )
    comparing.finish(done, json_only)
