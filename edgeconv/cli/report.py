"""`edgeconv report`: pages, plots and tables from records of `edgeconv bench` and `edgeconv run`, made anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    records: Annotated[list[Path], typer.Argument(help="JSON files that edgeconv bench and edgeconv run wrote.")],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables to this file.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write one line a row to this file.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Write each plot as SVG and PNG into this folder.")] = None,
) -> None:
    """Show records and reports again: a page, tables, a spreadsheet, plots. With none asked for, prints the tables."""
    from edgeconv.export import export, find_exporter
    from edgeconv.export.kinds import read

    loaded = [read(path) for path in records]
    wanted = {"html": html, "markdown": markdown, "csv": csv}
    if not any([*wanted.values(), plots]):
        (text,) = find_exporter("markdown").load()(loaded).values()
        typer.echo(text.decode(), nl=False)
        return
    from edgeconv.files import write_bytes_atomically

    for name, path in wanted.items():
        if path is not None:
            (content,) = find_exporter(name).load()(loaded).values()
            write_bytes_atomically(path, content)
            typer.echo(path)
    if plots is not None:
        for path in export(loaded, ["plot"], plots, "bench"):
            typer.echo(path)
