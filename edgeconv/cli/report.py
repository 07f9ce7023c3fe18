"""`edgeconv report`: pages, plots and tables from records of `edgeconv bench` and `edgeconv run`, made anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgeconv.cli import comparing

PLOT_STEM = "bench"


def report(
    records: Annotated[list[Path], typer.Argument(help="JSON files that edgeconv bench and edgeconv run wrote.")],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to this file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write one line a row to this file.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Write each plot as SVG and PNG into this folder.")] = None,
    overwrite: comparing.Overwrite = False,
) -> None:
    """Show records and reports again: a page, tables, a spreadsheet, plots. With none asked for, prints the tables."""
    from edgeconv.diff.outputs import Outputs
    from edgeconv.export import find_exporter
    from edgeconv.export.kinds import read

    loaded = [read(path) for path in records]
    wanted = {"html": html, "markdown": markdown, "csv": csv}
    if not any([*wanted.values(), plots]):
        (text,) = find_exporter("markdown").load()(loaded).values()
        typer.echo(text.decode(), nl=False)
        return
    outputs = Outputs(map(str, records), overwrite)
    named = {name: outputs.reserve_file(path) for name, path in wanted.items() if path is not None}
    for name, path in named.items():
        (content,) = find_exporter(name).load()(loaded).values()
        outputs.add(path, content)
    if plots is not None:
        for ending, content in find_exporter("plot").load()(loaded).items():
            outputs.add(outputs.reserve(plots / f"{PLOT_STEM}{ending}"), content)
    for path, _ in outputs.write():
        typer.echo(path)
