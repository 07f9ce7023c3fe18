"""`edgeconv diff`: are pictures or folders the same, and where not? `edgeconv compare`: do all methods agree?"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from edgeconv.cli.printing import say, say_lines, say_rows
from edgeconv.core.option import Positional
from edgeconv.errors import UsageError
from edgeconv.options import PICTURE_HELP, Accepting, Bank, DiffInput, MethodOptions, Reading, Showing

if TYPE_CHECKING:
    from edgeconv.difference.results import DiffOutcome, Wanted


def diff(
    inputs: Annotated[list[str], Positional("Pictures (the first is the reference), or two folders.")],
    asked: DiffInput,
    showing: Showing,
    reading: Reading,
) -> int:
    """Compare pictures, or folders by relative name.

    Exact figures first; differences are other − reference.
    Exit code 0: same; 1: differs; 2: error; 3: sizes, channels or types differ.
    """
    from edgeconv.difference import folders, results
    from edgeconv.difference.inputs import FileInput

    wanted = replace(_wanted(asked, showing, reading), convert=asked.convert)
    if any(map(os.path.isdir, inputs)):
        if len(inputs) != 2 or not all(map(os.path.isdir, inputs)):
            raise UsageError("A folder is compared with one other folder: name two that are there.")
        done = folders.run(Path(inputs[0]), Path(inputs[1]), wanted, asked.update)
    else:
        if asked.update:
            raise UsageError("--update is for two folders: name a baseline folder and a new one.")
        if len(inputs) < 2:
            raise UsageError("One picture alone cannot be compared: name another.")
        if inputs.count("-") > 1:
            raise UsageError("Standard input can be only one of the pictures: name a file for the others.")
        first, *others = (FileInput(name, asked.convert, wanted.rules) for name in inputs)
        done = results.run(first, others, wanted)
    return _finish(done, showing.json_only, asked.quiet)


def compare(
    picture: Annotated[str, Positional(f"{PICTURE_HELP}.")],
    filtering: Bank,
    method: MethodOptions,
    accepting: Accepting,
    showing: Showing,
    reading: Reading,
) -> int:
    """Compare every method with the float64 reference.

    Those that work here filter the picture. Unless told otherwise, outputs of exact methods must be equal, others
    agree within their error bounds. Exit code 0: all agree; 1: one does not; 2 to 5: errors.
    """
    from edgeconv.difference import methods

    wanted = _wanted(accepting, showing, reading)
    done = methods.run(picture, filtering.request(), method.options(), wanted, by_rule=accepting.atol is None)
    return _finish(done, showing.json_only)


def _wanted(accepting: Accepting, showing: Showing, reading: Reading) -> Wanted:
    """What is judged, and what is made of it. Raises UsageError."""
    from edgeconv.core.text import parse_bytes
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
        overwrite=showing.overwrite,
        ignored=NO_REGIONS if accepting.ignore is None else read_ignored(accepting.ignore),
    )


def _finish(done: DiffOutcome, json_only: bool, quiet: bool = False) -> int:
    """Print what was found and written, and return the exit code that it calls for."""
    from edgeconv.difference.compare import to_json

    if quiet:
        return done.exit_code
    if json_only:
        say_lines(to_json(done.record))
    else:
        for number, paragraph in enumerate(done.shown):
            if number:
                say("")
            say_rows(paragraph)
    if done.written:
        say_lines(done.ending, err=json_only)
    return done.exit_code
