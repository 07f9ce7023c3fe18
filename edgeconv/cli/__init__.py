"""The command line: one thin file a command, listed in one table, with one place for errors and exit codes."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Callable
from traceback import extract_tb
from types import FrameType
from typing import NoReturn

import typer

from edgeconv.cli import batch, bench, compare, diff, doctor, filters, report, resize, run, tune, verify, view
from edgeconv.errors import EXIT_OK, EXIT_SIGNAL_BASE, EdgeconvError, MemoryLimitError, UsageError

DEBUG = "EDGECONV_DEBUG"
"""The environment variable that shows where an unexpected error came from."""

COMMANDS: dict[str, Callable[..., None] | typer.Typer] = {
    "run": run.run,
    "batch": batch.batch,
    "verify": verify.verify,
    "compare": compare.compare,
    "view": view.view,
    "diff": diff.diff,
    "bench": bench.app,
    "report": report.report,
    "tune": tune.tune,
    "resize": resize.resize,
    "filters": filters.filters,
    "doctor": doctor.doctor,
}

app = typer.Typer(
    name="edgeconv",
    help="3×3 edge-detection filters on RGB pictures, by interchangeable convolution methods, with honest GFLOPS.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command in COMMANDS.items():
    if isinstance(_command, typer.Typer):
        _own = _command.registered_commands[0].callback  # what the name does that no word follows
        app.add_typer(_command, name=_name, help=inspect.getdoc(_own))
    else:
        app.command(_name)(_command)


def _version(asked: bool) -> None:
    if asked:
        from edgeconv import __version__

        typer.echo(f"edgeconv {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    del version


def main() -> None:
    """Run the command line; every error that edgeconv raises is one line on standard error and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console that cannot show "×" still gets its table
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="edgeconv", standalone_mode=False) or EXIT_OK
        _flush_standard_output()
        sys.exit(code)
    except EdgeconvError as error:
        _fail(str(error), error.exit_code)
    except typer.Abort:
        _fail("stopped.", EXIT_SIGNAL_BASE + signal.SIGINT)
    except MemoryError:
        _fail("Out of memory: use a smaller picture, or lower --workspace-limit.", MemoryLimitError.exit_code)
    except Exception as error:
        if _came_from_printing(error):
            _fail_to_print(error)
        if hasattr(error, "format_message"):  # a wrong word, as Typer's parser puts it
            _fail(f"{error.format_message().rstrip('.')}. See 'edgeconv COMMAND --help'.", UsageError.exit_code)
        if DEBUG in os.environ:
            raise
        what = f"{type(error).__name__}: {error}"
        _fail(f"This should not have happened ({what}). Set {DEBUG}=1 to see where.", EdgeconvError.exit_code)


def _flush_standard_output() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _fail_to_print(error)


def _came_from_printing(error: Exception) -> bool:
    """Whether standard output took no more. What goes to files has words of its own, and a broken pipe is Typer's."""
    return isinstance(error, OSError) and extract_tb(error.__traceback__)[-1].name == typer.echo.__name__


def _fail_to_print(error: Exception) -> NoReturn:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries again at its end and complains
    _fail(f"Standard output cannot be written ({getattr(error, 'strerror', error)}).", EdgeconvError.exit_code)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Leave by SystemExit, so that every half-written temporary file is cleaned up on the way."""
    _fail(f"stopped by {signal.Signals(number).name}.", EXIT_SIGNAL_BASE + number)


def _fail(message: str, exit_code: int) -> NoReturn:
    print(f"edgeconv: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(exit_code)
