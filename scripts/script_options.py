"""How scripts read their command line: help and mistakes in the style of edgeconv's commands, by the standard library.

    parser = Arguments(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="What computes: {choices}.")

Every argument has one short sentence; types, choices and defaults are filled in. Only the standard library is used, as
scripts/bootstrap.py runs before anything is installed.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

SUPPRESS = argparse.SUPPRESS
"""As the help of what only the script itself uses."""
PROJECT = Path(__file__).resolve().parent.parent
MOST_COLUMNS, LEAST_COLUMNS = 120, 50
WIDEST_NAME = 30
"""A longer option has its sentence on the next line. These three are what Click does."""
TYPES = {int: "int", float: "float", Path: "path"}
NUMBERS = {"int": "integer", "float": "float"}


class Arguments(argparse.ArgumentParser):
    """A parser that looks like those of the commands."""

    def __init__(self, doc: str | None) -> None:
        self._name = Path(sys.argv[0]).stem
        super().__init__(
            prog=f"python3 scripts/{self._name}.py", description=doc or "", allow_abbrev=False, add_help=False
        )
        self.add_argument("-h", "--help", action="help", help="Show this message and exit.")

    def format_help(self) -> str:
        columns = max(min(shutil.get_terminal_size().columns, MOST_COLUMNS) - 2, LEAST_COLUMNS)
        shown = [action for action in self._actions if action.help != SUPPRESS]
        shown.sort(key=lambda action: action.dest == "help")
        places = [action for action in shown if not action.option_strings]
        options = [action for action in shown if action.option_strings]
        names = "".join(f" {_place(action)}" for action in places)
        parts = [
            f"{textwrap.fill(f'Usage: {self.prog} [OPTIONS]{names}', columns)}\n",
            _described(self.description, columns),
        ]
        for heading, actions in (("Arguments", places), ("Options", options)):
            if actions:
                parts.append(f"{heading}:\n{_listed([(_name_of(each), _text_of(each)) for each in actions], columns)}")
        return "\n".join(parts)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See argparse.ArgumentParser.parse_args; an option that is not known is named before one that is missing."""
        words = sys.argv[1:] if args is None else list(args)
        for word in words[: words.index("--")] if "--" in words else words:
            if word.startswith("--") and word.partition("=")[0] not in self._option_string_actions:
                self.error(f"unrecognized arguments: {word}")
        return super().parse_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """One line that says what is wrong, what was probably meant, and where to read on; exit code 2."""
        said = self._explained(message)
        self.exit(2, f"{self._name}: error: {said} See '{self.prog} --help'.\n")

    def _explained(self, message: str) -> str:
        """A message of argparse in the words of the commands."""
        known = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        if unknown := re.fullmatch(r"unrecognized arguments: (\S+).*", message, re.DOTALL):
            if not unknown[1].startswith("-"):
                return f"Got unexpected extra argument ({unknown[1]})."
            flag = unknown[1].partition("=")[0]
            return f"No such option: {flag}.{_did_you_mean(flag, known)}"
        if missing := re.fullmatch(r"the following arguments are required: (.*)", message):
            name = missing[1].partition(",")[0]
            return f"Missing {'option' if name.startswith('-') else 'argument'} '{name}'."
        named = re.fullmatch(r"argument (\S+): (.*)", message, re.DOTALL)
        if named is None:
            return f"{message[0].upper()}{message[1:].rstrip('.')}."
        flag, problem = named[1].rpartition("/")[2], named[2]
        if problem.startswith("expected"):
            return f"Option '{flag}' requires an argument."
        if value := re.fullmatch(r"invalid (\w+) value: (.*)", problem):
            return f"Invalid value for '{flag}': {value[2]} is not a valid {NUMBERS.get(value[1], 'value')}."
        if value := re.match(r"invalid choice: '(.*)' \(", problem):
            action = next(each for each in self._actions if flag in (*each.option_strings, each.dest))
            choices = list(map(str, action.choices or ()))
            return f"{flag} '{value[1]}' is not one of {', '.join(choices)}.{_did_you_mean(value[1], choices)}"
        return f"Invalid value for '{flag}': {problem.rstrip('.')}."


def stopped(message: object) -> SystemExit:
    """The end of a script that cannot go on, with one line in the style of the commands; exit code 1."""
    return SystemExit(f"{Path(sys.argv[0]).stem}: error: {message}")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word.lower(), list(known), 1)
    return f" Did you mean '{near[0]}'?" if near else ""


def _described(doc: str | None, columns: int) -> str:
    """Paragraphs filled to the width; what is indented or stands in columns stays as it is."""
    blocks = []
    for block in textwrap.dedent(doc or "").strip().split("\n\n"):
        drawn = block.startswith("    ") or any("  " in line.strip() for line in block.splitlines())
        blocks.append(textwrap.indent(block, "  ") if drawn else _filled(" ".join(block.split()), columns, "  "))
    return "\n\n".join(blocks) + "\n"


def _filled(text: str, columns: int, indent: str) -> str:
    return textwrap.fill(text, columns, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _place(action: argparse.Action) -> str:
    """`{folder}`, `[output]`."""
    return f"[{action.dest}]" if action.nargs == "?" else f"{{{action.dest}}}"


def _name_of(action: argparse.Action) -> str:
    """`-o, --output <path>`."""
    kind: Any = action.type
    takes = "" if action.nargs == 0 else f" <{TYPES.get(kind, 'str')}>"
    several = "..." if action.nargs in ("+", "*") or isinstance(action, argparse._AppendAction) else ""
    return f"{', '.join(sorted(action.option_strings, key=len)) or action.dest}{takes}{several}"


def _text_of(action: argparse.Action) -> str:
    """The sentence, with the choices, and what holds where nothing is given."""
    choices = list(map(str, action.choices or ()))
    text = (action.help or "").replace("{choices}", " or ".join(filter(None, [", ".join(choices[:-1]), *choices[-1:]])))
    if action.required and action.nargs != "?":
        return f"{text}  [required]"
    given = action.default
    if given in (None, "", SUPPRESS) or given is False or isinstance(given, list | tuple):
        return text
    if isinstance(given, Path) and given.is_relative_to(PROJECT):
        given = given.relative_to(PROJECT).as_posix()
    return f"{text}  [default: {given}]"


def _listed(rows: list[tuple[str, str]], columns: int) -> str:
    """Two columns, as Click draws them."""
    first = min(max(len(name) for name, _ in rows), WIDEST_NAME) + 2
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(columns - first - 2, 10), fix_sentence_endings=False, break_on_hyphens=False)
        if len(name) <= first - 2:
            lines.append(f"  {name:<{first}}{wrapped[0]}".rstrip())
            wrapped = wrapped[1:]
        else:
            lines.append(f"  {name}")
        lines += [" " * (first + 2) + line for line in wrapped]
    return "\n".join(lines) + "\n"
