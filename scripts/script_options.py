"""How scripts read their command line: argparse with the script's docstring as help, and mistakes of one line.

    parser = Arguments(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="What computes.")

Only the standard library is used, as scripts/bootstrap.py runs before anything is installed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

PROJECT = Path(__file__).resolve().parent.parent


class Arguments(argparse.ArgumentParser):
    """A parser for scripts/NAME.py, the file that was started."""

    def __init__(self, doc: str | None) -> None:
        super().__init__(
            prog=f"python3 scripts/{Path(sys.argv[0]).name}",
            description=doc,
            formatter_class=_Help,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """One line that says what is wrong, and where to read on; exit code 2."""
        self.exit(2, f"{Path(sys.argv[0]).stem}: error: {message}. See '{self.prog} --help'.\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """The docstring as it stands, and behind each option what holds where it is not given."""

    def _get_help_string(self, action: argparse.Action) -> str:
        given: Any = action.default
        if isinstance(given, Path) and given.is_relative_to(PROJECT):
            given = given.relative_to(PROJECT)
        shown = isinstance(given, str | int | float | Path) and given not in ("", False, argparse.SUPPRESS)
        return (action.help or "") + (f" [default: {given}]" if shown else "")


def stopped(message: object) -> SystemExit:
    """The end of a script that cannot go on, with one line; exit code 1."""
    return SystemExit(f"{Path(sys.argv[0]).stem}: error: {message}")
