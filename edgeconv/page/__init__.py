"""Pages that open from disk with no network: one frame, one palette, tables that sort.

A template lies in the package and begins with `{% extends "page/base.html" %}`. Every value is escaped and made visible
(core/text.py), but for what is `Markup`; JSON for a script goes through Jinja's own `tojson`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from edgeconv.core.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

NOTHING = "–"
LONG = 32
GOOD = ("faster", "met", "right", "fastest")
BAD = ("slower", "MISSED", "wrong", "WRONG", "failed", "disqualified")
FIGURE = re.compile(r"[\d.,+-]+(e[+-]?\d+)?( [%×]| [µm]?s)?( [\[(±].*)?")
"""What stands under its like: columns of these are set to the right."""


@dataclass(frozen=True)
class Table:
    """A header and rows of text. Words stand left and figures right."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False
    """Whether a page shows it only when asked."""
    most: ClassVar[int] = 9

    @staticmethod
    def tone(verdict: str) -> Literal["good", "bad", ""]:
        """How a row that begins with it is coloured."""
        return "good" if verdict in GOOD else "bad" if verdict in BAD else ""

    @cached_property
    def kinds(self) -> tuple[Literal["figure", "short", "words"], ...]:
        """What each column holds; words of which none is `LONG` stay in one line."""
        columns = ([row[place] for row in self.rows] for place in range(len(self.header)))
        return tuple(
            "figure" if _holds_figures(cells) else "short" if max(map(len, cells), default=0) < LONG else "words"
            for cells in columns
        )


def _holds_figures(cells: Sequence[str]) -> bool:
    """Whether most cells are figures."""
    given = [cell for cell in cells if cell not in ("", NOTHING)]
    return 2 * sum(FIGURE.fullmatch(cell) is not None for cell in given) > len(given)


def page(template: str, **values: Any) -> bytes:
    """The page of a template, as `export/report.html`, in UTF-8."""
    return _environment().get_template(template).render(values).encode()


def data_address(kind: str, content: bytes) -> str:
    """A file within a page: `data:image/webp;base64,…`."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # loaded when a page is written

    def source(name: str) -> str:
        return files("edgeconv").joinpath(name).read_text(encoding="utf-8")

    return Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _finalized(value: Any) -> Any:
    """Text as by `visible`, but for markup, which is drawn as it stands."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else visible(value)
