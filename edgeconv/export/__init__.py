"""Records of `edgeconv bench` and reports of `edgeconv run` as files for people and programs: one module per format.

An exporter gives back its files as bytes by the ending of their names; writing is done here, whole files or none.
Exporters read records alone, so that `edgeconv report` makes on any machine what the bench would have made. The one
exception are the pictures of runs, which the page shows where their files are still found (run_pictures.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from edgeconv.core.optional import import_problem, install
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.io.files import make_folder, write_bytes_atomically

if TYPE_CHECKING:
    from edgeconv.export.kinds import AnyRecord

Files = dict[str, bytes]
"""Contents by what is put after the stem: `.csv`, `_roofline_cpu.svg`."""


@dataclass(frozen=True)
class Exporter:
    """One format."""

    name: str
    location: str
    summary: str
    needs: str | None = None
    """A module that must be there, and that `edgeconv[plot]` brings."""

    def unavailable_reason(self) -> str | None:
        """Why it cannot be made here, or None."""
        problem = None if self.needs is None else import_problem(self.needs)
        return None if problem is None else f"{problem} ({install('plot')})"

    def load(self) -> Callable[[Sequence[AnyRecord]], Files]:
        """The function that makes the files."""
        module, _, name = self.location.partition(":")
        export: Callable[[Sequence[AnyRecord]], Files] = getattr(import_module(module), name)
        return export


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("json", "edgeconv.export:as_json", "the record itself, every sample in it"),
    Exporter("csv", "edgeconv.export.csv:export", "one line per row, for a spreadsheet"),
    Exporter("markdown", "edgeconv.export.markdown:export", "tables to read and to commit"),
    Exporter("html", "edgeconv.export.page:export", "one page with plots and tables, no network"),
    Exporter("plot", "edgeconv.export.plot:export", "each plot as SVG and PNG", "matplotlib"),
)


def as_json(records: Sequence[AnyRecord]) -> Files:
    """The records themselves; of several one file each, numbered."""
    from edgeconv.bench.record import to_json

    if len(records) == 1:
        return {".json": to_json(records[0])}
    return {f"_{number}.json": to_json(record) for number, record in enumerate(records, 1)}


def exporter_names() -> tuple[str, ...]:
    """In the table's order."""
    return tuple(exporter.name for exporter in EXPORTERS)


def find_exporter(name: str) -> Exporter:
    """Look one up; raises UsageError for an unknown name, UnavailableError where it cannot be made."""
    for exporter in EXPORTERS:
        if exporter.name == name:
            reason = exporter.unavailable_reason()
            if reason is not None:
                raise UnavailableError(f"Format '{name}' cannot be made: {reason}.")
            return exporter
    raise UsageError(f"Format '{name}' is not one of {', '.join(exporter_names())}.")


def export(records: Sequence[AnyRecord], names: Iterable[str], folder: Path, stem: str) -> list[Path]:
    """Write the formats `names` to `folder` (made if missing) and return the files written."""
    exporters = [find_exporter(name) for name in names]
    make_folder(folder)
    written = []
    for exporter in exporters:
        for ending, content in exporter.load()(records).items():
            path = folder / f"{stem}{ending}"
            write_bytes_atomically(path, content)
            written.append(path)
    return written
