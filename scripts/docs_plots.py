"""Draw the plots of docs/ from committed bench records; `--check` says which are not of their record.

    python3 scripts/docs_plots.py            docs/results/bench/MACHINE/GRID.json → …/plots/GRID_NAME.svg
    python3 scripts/docs_plots.py --check    writes nothing; exit 1 where a plot is missing or of another record

Drawing needs matplotlib, whose versions draw in other bytes; so each plot carries the hash of its record, and that
is what --check compares.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "docs" / "results" / "bench"
MARK = "<!-- drawn from {name}, sha256 {digest} -->"
PLOT = ".svg"


def mark_of(path: Path) -> str:
    """The line that a plot of the record at `path` ends with."""
    return MARK.format(name=path.name, digest=hashlib.sha256(path.read_bytes()).hexdigest())


def stale(results: Path) -> list[Path]:
    """Records without plots, and plots that are not of the record of their name."""
    found = []
    for record in sorted(results.glob("*/*.json")):
        plots = sorted((record.parent / "plots").glob(f"{record.stem}_*{PLOT}"))
        if not plots:
            found.append(record)
        mark = mark_of(record)
        found += [plot for plot in plots if not plot.read_text(encoding="utf-8").rstrip().endswith(mark)]
    return found


def draw(results: Path) -> list[Path]:
    """Draw every record anew and return the plots."""
    from edgeconv.bench.record import read_record
    from edgeconv.export.plot import export

    written = []
    for record in sorted(results.glob("*/*.json")):
        folder = record.parent / "plots"
        folder.mkdir(exist_ok=True)
        for old in folder.glob(f"{record.stem}_*{PLOT}"):
            old.unlink()
        for ending, content in export([read_record(record)]).items():
            if ending.endswith(PLOT):
                path = folder / f"{record.stem}{ending}"
                path.write_bytes(content + mark_of(record).encode() + b"\n")
                written.append(path)
    return written


def main() -> int:
    """Draw, or with --check name what is out of date and exit 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a plot is out of date")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.check:
        for path in stale(arguments.results):
            print(f"Out of date: {path}. Run python3 scripts/docs_plots.py.", file=sys.stderr)
        return 1 if stale(arguments.results) else 0
    for path in draw(arguments.results):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
