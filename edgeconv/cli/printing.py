"""The one door through which commands print: nothing that a terminal would obey passes it."""

from __future__ import annotations

import typer

from edgeconv.core.safe_text import visible, visible_lines


def say(line: object, *, err: bool = False) -> None:
    """Print a line on standard output, or on standard error."""
    typer.echo(visible(line), err=err)


def say_lines(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print text of several lines; whoever built it has made the names in it `visible`, line breaks included."""
    typer.echo(visible_lines(text), err=err, nl=nl)
