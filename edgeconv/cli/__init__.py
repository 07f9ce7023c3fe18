"""The command line: one thin file a command, listed in one table, with one place for errors and exit codes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import typer

from edgeconv.cli import batch, bench, compare, diff, doctor, filters, report, resize, run, tune, verify, view
from edgeconv.cli.exits import leave, prepare
from edgeconv.cli.printing import say
from edgeconv.cli.unused_options import RefusingCommand
from edgeconv.errors import EXIT_OK, EdgeconvError, MemoryLimitError, UsageError

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
        app.command(_name, cls=RefusingCommand)(_command)


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
    prepare()
    leave(_run)


def _run() -> int:
    """Run the command that was asked for; its exit code. Raises what `leave` has a line for."""
    try:
        return app(sys.argv[1:] or ["--help"], prog_name="edgeconv", standalone_mode=False) or EXIT_OK
    except (EdgeconvError, OSError):
        raise
    except typer.Abort:
        raise KeyboardInterrupt from None
    except MemoryError:
        raise MemoryLimitError("Out of memory: use a smaller picture, or lower --workspace-limit.") from None
    except Exception as error:
        if hasattr(error, "format_message"):  # a wrong word, as Typer's parser puts it
            raise UsageError(f"{error.format_message().rstrip('.')}. See 'edgeconv COMMAND --help'.") from None
        raise
