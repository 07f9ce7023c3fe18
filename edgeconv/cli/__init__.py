"""The command line: one thin file per command, listed in one table, with one place for errors and exit codes."""

from __future__ import annotations

import sys

import typer

from edgeconv.cli.commands import COMMANDS
from edgeconv.cli.ending import leave
from edgeconv.cli.parser import SETTINGS, Commands, explained
from edgeconv.cli.printing import say
from edgeconv.errors import EXIT_OK, UsageError

__all__ = ["COMMANDS", "app", "main"]

app = typer.Typer(
    name="edgeconv",
    cls=Commands,
    help="Edges of RGB and grey pictures by 3×3 filters and Canny, by interchangeable methods, with honest figures.",
    **SETTINGS,
)


def _version(asked: bool) -> None:
    if asked:
        from edgeconv import __version__

        say(f"edgeconv {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    del version


def main() -> None:
    """Run the command line; every error that edgeconv raises is one line on standard error and its exit code."""
    leave(_run)


def _run() -> int:
    """Run the command that was asked for; its exit code. Raises what `leave` has a line for."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        return app(arguments, prog_name="edgeconv", standalone_mode=False) or EXIT_OK
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # Typer takes any for a reader that has gone away
            raise error.__context__ from None
        raise
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if hasattr(error, "format_message"):
            raise UsageError(explained(error, arguments)) from None
        raise
