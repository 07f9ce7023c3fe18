"""Draw the plots that README.md and docs/*.md show from committed bench records; `--check` says which are out of date.

    python3 scripts/docs_plots.py            docs/results/bench/MACHINE/GRID.json.xz → …/plots/GRID_NAME.svg
                                             docs/results/bench_conv_GPU.json.xz → …/plots/bench_conv_GPU_NAME.svg
    python3 scripts/docs_plots.py --check    writes nothing; exit 1 where a plot is missing or of another record

Only plots that a page links to are drawn and kept; `edgeconv report RECORD --plots FOLDER` draws all. Drawing needs
matplotlib, whose versions draw in other bytes; so each plot carries the hash of its record, and that is what --check
compares.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from script_options import PROJECT, Arguments, stopped

PAGES = (PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md")))
MARK = "<!-- drawn from {name}, sha256 {digest} -->"
LINKED_PLOT = re.compile(r"\(([^()\s]*plots/[\w-]+\.svg)\)")


def shown_plots(pages: Iterable[Path]) -> dict[Path, list[Path]]:
    """The plots that pages link to, by the record that each is drawn from."""
    found: dict[Path, set[Path]] = defaultdict(set)
    for page in pages:
        for link in LINKED_PLOT.findall(page.read_text(encoding="utf-8")):
            plot = (page.parent / link).resolve()
            found[_record_of(plot)].add(plot)
    return {record: sorted(plots) for record, plots in sorted(found.items())}


def _record_of(plot: Path) -> Path:
    """The record beside the folder of plots whose name the plot's begins with, or one of its first word."""
    folder = plot.parent.parent
    records = [path for path in folder.glob("*.json*") if plot.name.startswith(f"{path.name.partition('.')[0]}_")]
    return max(records, key=lambda path: len(path.name), default=folder / f"{plot.name.partition('_')[0]}.json.xz")


def mark_of(record: Path) -> str:
    """The line that a plot of the record ends with."""
    return MARK.format(name=record.name, digest=hashlib.sha256(record.read_bytes()).hexdigest())


def stale(pages: Iterable[Path]) -> list[Path]:
    """Plots that are missing, or not of the record of their name, or that stand beside those and no page shows."""
    found = []
    for record, plots in shown_plots(pages).items():
        mark = mark_of(record)
        found += [
            plot for plot in plots if not plot.exists() or not plot.read_text(encoding="utf-8").endswith(mark + "\n")
        ]
        found += sorted({*plots[0].parent.glob(f"{record.name.partition('.')[0]}_*.svg")} - {*plots})
    return found


def draw(pages: Iterable[Path]) -> list[Path]:
    """Draw what pages show anew, remove what they no longer show, and return the plots."""
    from edgeconv.export.kinds import read
    from edgeconv.export.plot import export

    written = []
    for record, plots in shown_plots(pages).items():
        stem = record.name.partition(".")[0]
        drawings = {f"{stem}{ending}": content for ending, content in export([read(record)]).items()}
        for plot in {*plots[0].parent.glob(f"{stem}_*.svg")} - {*plots}:
            plot.unlink()
        missing = [plot for plot in plots if plot.name not in drawings]
        if missing:
            raise stopped(f"{record} has no plot {missing[0].name}: {', '.join(drawings)}.")
        for plot in plots:
            plot.parent.mkdir(exist_ok=True)
            plot.write_bytes(drawings[plot.name] + mark_of(record).encode() + b"\n")
            written.append(plot)
    return written


def main() -> int:
    """Draw, or with --check name what is out of date and exit 1."""
    parser = Arguments(__doc__)
    parser.add_argument("--check", action="store_true", help="Write nothing; end with 1 where a plot is out of date.")
    parser.add_argument(
        "--pages", type=Path, nargs="+", default=PAGES, help="Markdown files that show plots. Default: all."
    )
    arguments = parser.parse_args()
    if arguments.check:
        found = stale(arguments.pages)
        for path in found:
            print(f"Out of date: {path}. Run python3 scripts/docs_plots.py.", file=sys.stderr)
        return 1 if found else 0
    for path in draw(arguments.pages):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
