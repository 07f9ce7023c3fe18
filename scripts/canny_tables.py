"""The tables of docs/cpu-engine.md about Canny, from records of scripts/benchmark_canny.py."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

from edgeconv.export.tables import lines_of

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"


@cache
def record(name: str) -> dict[str, Any]:
    """A record of scripts/benchmark_canny.py."""
    found: dict[str, Any] = json.loads(lzma.decompress((RESULTS / f"{name}.json.xz").read_bytes()))
    return found


def against_opencv(name: str) -> str:
    """Median and p90 of both, and how many times faster the engine is."""
    table = []
    for row in record(name)["rows"]:
        mine, theirs = row["edgeconv_microseconds"], row["opencv_microseconds"]
        table.append(
            [
                row["case"],
                str(row["size"]),
                f"{row['edge_share']:.1%}",
                f"{mine['median']:,.0f} / {mine['p90']:,.0f}",
                f"{theirs['median']:,.0f} / {theirs['p90']:,.0f}",
                f"{theirs['median'] / mine['median']:.1f}",
            ]
        )
    header = ("picture", "side", "edge pixels", "edgeconv, µs, median / p90", "OpenCV", "times faster")
    return lines_of(header, table)


def by_threads(name: str) -> str:
    """The engine by its number of threads, and how many times faster than by one."""
    rows = record(name)["threads"]
    alone = rows[0]["edgeconv_microseconds"]["median"]
    table = []
    for row in rows:
        found = row["edgeconv_microseconds"]
        times = f"{found['median']:,.0f} / {found['p90']:,.0f}"
        table.append([str(row["threads"]), times, f"{alone / found['median']:.1f}"])
    return lines_of(("threads", "µs, median / p90", "times faster than one"), table)
