"""What `edgeconv diff` and `edgeconv compare` do alike with their options and their result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from edgeconv.cli.printing import say_lines

if TYPE_CHECKING:
    from edgeconv.difference.results import DiffOutcome, Wanted
    from edgeconv.options import Accepting, Reading, Replacing, Showing


def wanted(accepting: Accepting, showing: Showing, reading: Reading, replacing: Replacing) -> Wanted:
    """What is judged, and what is made of it. Raises UsageError."""
    from edgeconv.core.units import parse_bytes
    from edgeconv.difference import results
    from edgeconv.difference.figures import Allowance
    from edgeconv.difference.ignored import NO_REGIONS, read_ignored

    return results.Wanted(
        allowance=Allowance(
            accepting.atol or 0.0, accepting.rtol, accepting.ulp, accepting.max_count, accepting.ignore_border
        ),
        ssim=showing.ssim,
        html=showing.html,
        junit=showing.junit,
        pictures=showing.pictures,
        page_limit_bytes=parse_bytes(showing.page_limit, "--page-limit"),
        rules=reading.rules(),
        overwrite=replacing.overwrite,
        ignored=NO_REGIONS if accepting.ignore is None else read_ignored(accepting.ignore),
    )


def finish(done: DiffOutcome, json_only: bool) -> None:
    """Print what was found and written, and leave with the exit code that it calls for."""
    from edgeconv.difference import results

    say_lines(results.to_json(done) if json_only else done.text)
    if done.written:
        say_lines(results.ending(done), err=json_only)
    raise typer.Exit(done.exit_code)
