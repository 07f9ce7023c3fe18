"""Pages that open from disk with no network: one frame, one palette, tables that sort.

A template lies in the package and begins with `{% extends "page/base.html" %}`. Every value is escaped and made visible
(core/safe_text.py), but for what is `Markup`; JSON for a script goes through Jinja's own `tojson`.
"""

from __future__ import annotations

import base64
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from edgeconv.core.safe_text import visible

if TYPE_CHECKING:
    from jinja2 import Environment


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
