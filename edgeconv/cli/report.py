"""`edgeconv report`: pages, plots and tables from records of `edgeconv bench` and `edgeconv run`, made anywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from edgeconv.cli.printing import columns, has_colours, say, say_drawn, say_lines
from edgeconv.core.option import Positional
from edgeconv.options import Replacing, Reporting

if TYPE_CHECKING:
    from edgeconv.export.schemas import AnyRecord

    Loaded = Sequence[tuple[Path, AnyRecord]]

Made = TypeVar("Made")

PLOT_STEM = "bench"

DAMAGE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""What exporters raise where a record does not hold what its kind and version promise."""


def report(
    reporting: Reporting,
    replacing: Replacing,
    records: Annotated[list[Path] | None, Positional("JSON files that edgeconv bench and edgeconv run wrote.")] = None,
) -> None:
    """Show records and reports again.

    As a page, tables, a spreadsheet, plots. With none asked for, prints the tables: drawn on a terminal, as Markdown
    into a pipe.
    """
    from edgeconv.core.records import to_json
    from edgeconv.errors import UsageError
    from edgeconv.export import find_exporter
    from edgeconv.export.schemas import read, schema
    from edgeconv.io.outputs import Outputs

    if reporting.schema is not None:
        say_lines(to_json(schema(reporting.schema)).decode(), nl=False)
        return
    if not records:
        raise UsageError("Name records to show: edgeconv report results/bench.json, or --schema bench.")
    loaded = [(path, read(path)) for path in records]
    wanted = {"html": reporting.html, "markdown": reporting.markdown, "csv": reporting.csv}
    plots = reporting.plots
    if not any([*wanted.values(), plots]):
        _show(loaded)
        return
    with Outputs(records, replacing.overwrite) as outputs:
        named = {name: outputs.reserve(path) for name, path in wanted.items() if path is not None}
        for name, path in named.items():
            make: Callable[..., dict[str, bytes]] = find_exporter(name)
            if name == "html":  # pictures of a run lie beside its report
                make = partial(make, folders=[place.parent for place in records])
            (content,) = _made(make, loaded).values()
            outputs.add(path, content)
        if plots is not None:
            drawn = _made(find_exporter("plot"), loaded)
            if not drawn:
                raise UsageError(
                    "These records have no plots: their figures are in the tables of --html and --markdown."
                )
            for ending, content in drawn.items():
                outputs.add(outputs.reserve_in(plots, f"{PLOT_STEM}{ending}"), content)
        for path, _ in outputs.put():
            say(path)


def _show(loaded: Loaded) -> None:
    """Tables for a person where standard output is a terminal, and as Markdown for whatever else reads it."""
    from edgeconv.export import markdown, terminal

    width = columns(sys.stdout)
    if width is None:
        (text,) = _made(markdown.export, loaded).values()
        say_lines(text.decode(), nl=False)
    else:
        say_drawn(_made(lambda records: terminal.drawn(records, width, has_colours(sys.stdout)), loaded))


def _made(make: Callable[[Sequence[AnyRecord]], Made], loaded: Loaded) -> Made:
    """What is made of the records; raises UsageError that names a record of which nothing can be made.

    A record is of the right kind and version here, so what an exporter stumbles over is damage: a value that is
    missing or of another type.
    """
    from edgeconv.errors import EdgeconvError, UsageError

    try:
        return make([record for _, record in loaded])
    except EdgeconvError:
        raise
    except DAMAGE as error:
        if len(loaded) > 1:
            for one in loaded:
                _made(make, [one])  # to learn which it is
        paths = ", ".join(f"'{path}'" for path, _ in loaded)
        what = f"{type(error).__name__}: {error}"
        raise UsageError(f"Record {paths} is damaged ({what}): copy it once more from where it was made.") from error
