"""Records of `edgeconv bench` and reports of `edgeconv run` as files for people and programs: a function per format.

An exporter gives back its files as bytes by the ending of their names; writing is done here, whole files or none.
Exporters read records alone, so that `edgeconv report` makes on any machine what the bench would have made. The one
exception are the pictures of runs, which the page shows where their files are still found (run_pictures.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from edgeconv.errors import UsageError
from edgeconv.io.outputs import Outputs

if TYPE_CHECKING:
    from edgeconv.export.schemas import AnyRecord

Files = dict[str, bytes]
"""Contents by what is put after the stem: `.csv`, `_gflops_1.svg`."""

EXPORTERS = {
    "csv": "rows:export",
    "markdown": "markdown:export",
    "html": "page:export",
    "plot": "page:plots",
}
"""What makes the files of each format: a spreadsheet, tables, a page, and each plot as SVG."""


def find_exporter(name: str) -> Callable[[Sequence[AnyRecord]], Files]:
    """What makes the files of a format."""
    module, _, function = EXPORTERS[name].partition(":")
    export: Callable[[Sequence[AnyRecord]], Files] = getattr(import_module(f"{__name__}.{module}"), function)
    return export


def parse_formats(text: str) -> list[str]:
    """`csv,html`, or all; `json` is the record, which a bench writes anyway. Raises UsageError for an unknown name."""
    names = list(EXPORTERS) if text == "all" else [item.strip() for item in text.split(",")]
    for name in names:
        if name not in ("json", *EXPORTERS):
            raise UsageError(f"Format '{name}' is not one of json, {', '.join(EXPORTERS)}.")
    return [name for name in names if name != "json"]


def export(records: Sequence[AnyRecord], names: Iterable[str], folder: Path, stem: str) -> list[Path]:
    """Write the formats `names` to `folder` (made if missing), all or none; returns the files written."""
    with Outputs(overwrite=True) as outputs:
        for name in names:
            for ending, content in find_exporter(name)(records).items():
                outputs.add(outputs.reserve(f"{stem}{ending}", folder), content)
        return [path for path, _ in outputs.put()]
