"""`edgeconv report`: pages, plots and tables from records of `edgeconv bench` and `edgeconv run`, made anywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

from edgeconv.cli.printing import columns, has_colours, say, say_drawn, say_lines
from edgeconv.core.option import Positional
from edgeconv.options import Reporting

PLOT_STEM = "bench"


def report(
    reporting: Reporting,
    records: Annotated[list[Path] | None, Positional("JSON files that edgeconv bench and edgeconv run wrote.")] = None,
) -> None:
    """Show records and reports again.

    As a page, tables, a spreadsheet, plots. With none asked for, prints the tables: drawn on a terminal, as Markdown
    into a pipe.
    """
    from edgeconv.core.records import to_json
    from edgeconv.errors import UsageError
    from edgeconv.export import find_exporter, markdown, terminal
    from edgeconv.export.schemas import read, schema
    from edgeconv.io.outputs import Outputs

    if reporting.schema is not None:
        say_lines(to_json(schema(reporting.schema)).decode(), nl=False)
        return
    if not records:
        raise UsageError("Name records to show: edgeconv report results/bench.json, or --schema bench.")
    loaded = list(map(read, records))
    wanted = {"html": reporting.html, "markdown": reporting.markdown, "csv": reporting.csv}
    plots, width = reporting.plots, columns(sys.stdout)
    if not any([*wanted.values(), plots]):
        if width is None:
            (text,) = markdown.export(loaded).values()
            say_lines(text.decode(), nl=False)
        else:
            say_drawn(terminal.drawn(loaded, width, has_colours(sys.stdout)))
        return
    with Outputs(records, reporting.overwrite) as outputs:
        named = {name: outputs.reserve(path) for name, path in wanted.items() if path is not None}
        for name, path in named.items():
            make: Callable[..., dict[str, bytes]] = find_exporter(name)
            if name == "html":  # pictures of a run lie beside its report
                make = partial(make, folders=[place.parent for place in records])
            (content,) = make(loaded).values()
            outputs.add(path, content)
        if plots is not None:
            drawn = find_exporter("plot")(loaded)
            if not drawn:
                raise UsageError(
                    "These records have no plots: their figures are in the tables of --html and --markdown."
                )
            for ending, content in drawn.items():
                outputs.add(outputs.reserve(f"{PLOT_STEM}{ending}", plots), content)
        for path, _ in outputs.put():
            say(path)
