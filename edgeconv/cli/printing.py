"""The one door through which commands print: nothing that a terminal would obey passes it.

Whoever builds text of several lines makes names `visible` by himself, as a line break in a name could not be told from
one of the text here.
"""

from __future__ import annotations

import typer

from edgeconv.escapes import visible_lines


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text on standard output, or on standard error."""
    typer.echo(visible_lines(text), err=err, nl=nl)
