"""`edgeconv diff`: whether pictures or folders are the same, and where and by how much they are not."""

from __future__ import annotations

from typing import Annotated

from edgeconv.cli import comparing
from edgeconv.core.option import Positional
from edgeconv.options import Accepting, DiffInput, Printing, Reading, Replacing, Showing


def diff(
    inputs: Annotated[list[str], Positional("Pictures (the first is the reference), or two folders.")],
    against: DiffInput,
    accepting: Accepting,
    showing: Showing,
    reading: Reading,
    replacing: Replacing,
    printing: Printing,
) -> None:
    """Compare pictures, or folders by relative name.

    Exact figures first; differences are other − reference.
    Exit code 0: same; 1: differs; 2: error; 3: sizes, channels or types differ.
    """
    from edgeconv.difference.request import run_request

    wanted = comparing.wanted(accepting, showing, reading, replacing)
    done = run_request(inputs, against.reference, against.convert, against.update, wanted)
    comparing.finish(done, printing.json_only)
