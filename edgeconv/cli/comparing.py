"""Options that `edgeconv diff` and `edgeconv compare` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edgeconv.cli.printing import say_lines

if TYPE_CHECKING:
    from edgeconv.diff.results import DiffOutcome

Atol = Annotated[float, typer.Option(help="Accept |difference| up to this, in sample units.")]
Rtol = Annotated[float, typer.Option(help="... and up to this times |reference| more.")]
Ulp = Annotated[int, typer.Option(help="Floats: also accept up to so many representable numbers apart.")]
MaxCount = Annotated[int, typer.Option(help="Accept up to so many differing samples.")]
IgnoreBorder = Annotated[int, typer.Option(help="Do not judge this many pixels along each side.")]
Ssim = Annotated[bool, typer.Option("--ssim", help="Add SSIM (scikit-image, extra 'diff').")]
Flip = Annotated[bool, typer.Option("--flip", help="Add the mean FLIP error (flip-evaluator, extra 'diff').")]
Html = Annotated[str | None, typer.Option(help="Write one self-contained page to look at.")]
ContactSheet = Annotated[str | None, typer.Option(help="Write one PNG with every input and its heat map, labelled.")]
Pictures = Annotated[
    str | None,
    typer.Option(help="Write heat, signed, side-by-side and overlay PNGs to this folder (made if missing)."),
]
Junit = Annotated[str | None, typer.Option(help="Write JUnit XML for CI.")]
PageLimit = Annotated[str, typer.Option(help="Largest page to write: bytes, or with K, M or G.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files of these names.")]
DEFAULT_PAGE_LIMIT = "256M"
"""A browser opens a page of this size in about a second."""
JsonOnly = Annotated[bool, typer.Option("--json", help="Print the figures as JSON in place of text.")]


def perceptual_names(**asked: bool) -> tuple[str, ...]:
    """The names of those that were asked for."""
    return tuple(name for name, wanted in asked.items() if wanted)


def finish(done: DiffOutcome, json_only: bool) -> None:
    """Print what was found and written, and leave with the exit code that it calls for."""
    from edgeconv.diff import results

    say_lines(results.to_json(done) if json_only else done.text)
    if done.written:
        say_lines(results.ending(done), err=json_only)
    raise typer.Exit(done.exit_code)
