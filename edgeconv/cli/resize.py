"""`edgeconv resize`: the same picture in other sizes."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeconv.cli import shared_options
from edgeconv.cli.printing import say


def resize(
    picture: Annotated[str, typer.Argument(help="PNG, JPEG, TIFF, WebP, BMP or NPY; - for standard input.")],
    sizes: Annotated[
        str, typer.Option(help="Longest sides in pixels: '128,256,512', or '128:4096' for every doubling.")
    ] = "128:4096",
    square: Annotated[bool, typer.Option("--square", help="Cut the largest square out of the middle first.")] = False,
    interpolation: Annotated[
        str, typer.Option(help="auto (area downwards, lanczos upwards), area, lanczos, cubic, linear or nearest.")
    ] = "auto",
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A folder (made if missing). Default: the picture's own.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of these names.")] = False,
    max_pixels: shared_options.MaxPixels = shared_options.DEFAULT_MAX_PIXELS,
    max_bytes: shared_options.MaxBytes = shared_options.DEFAULT_MAX_BYTES,
    strict: shared_options.Strict = False,
) -> None:
    """Save one picture in several sizes as NAME_SIZE.png, aspect and type kept: floats as .tiff, float16 as .npy."""
    from edgeconv.cli.options import parse_read_rules
    from edgeconv.io.resize import parse_sizes, resize_file

    resized = resize_file(
        picture,
        parse_sizes(sizes),
        folder=output,
        square=square,
        interpolation=interpolation,
        overwrite=overwrite,
        rules=parse_read_rules(max_pixels, max_bytes, strict),
    )
    if resized.notes:
        say(f"edgeconv: note: {picture}: {', '.join(resized.notes)}", err=True)
    for path in resized.files:
        say(path)
