"""The tables about Canny, from records of scripts/benchmark_canny_peers.py and _passes.py."""

from __future__ import annotations

from functools import cache
from typing import Any

import committed

from edgeconv.export.tables import lines_of


@cache
def record(name: str) -> dict[str, Any]:
    """A record, read once."""
    return committed.record(name)


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


OF_EDGECONV = ("copy", "edgeconv", "edgeconv, end to end")
"""Candidates of scripts/benchmark_canny_peers.py that are no peers."""


def peers(machines: dict[str, str]) -> str:
    """Medians by case and side, of peers with how many times edgeconv's that is; one block for each record there is."""
    blocks = []
    for name, machine in machines.items():
        if not committed.is_there(name):  # a machine that was not measured yet
            continue
        rows = committed.record(name)["rows"]
        timed = [row for row in rows if "median_us" in row]
        candidates = list(dict.fromkeys(row["candidate"] for row in timed))
        table = []
        for case, size in dict.fromkeys((row["case"], row["size"]) for row in timed):
            cells = {row["candidate"]: row for row in timed if (row["case"], row["size"]) == (case, size)}
            table.append([case, str(size), *(_peer_cell(cells, candidate) for candidate in candidates)])
        caption = f"{committed.link(name, machine)}:"
        blocks.append(f"{caption}\n\n{lines_of(('picture', 'side', *candidates), table)}")
    return "\n".join(blocks)


def _peer_cell(cells: dict[str, dict[str, Any]], candidate: str) -> str:
    """`420 µs`; of a peer `8,736 µs (20.8 ×), 2.2 % elsewhere`; – where it was left out."""
    row = cells.get(candidate)
    if row is None:
        return "–"
    took = row["median_us"]
    text = f"{took:,.0f} µs" if took >= 100 else f"{took:.1f} µs"
    if candidate in OF_EDGECONV:
        return text
    other = cells["edgeconv, end to end" if candidate == "opencv on the host" else "edgeconv"]["median_us"]
    elsewhere = row.get("elsewhere", 0.0)
    return f"{text} ({took / other:.3g} ×)" + (f", {elsewhere:.1%} elsewhere" if elsewhere else "")


def passes(name: str) -> str:
    """Each pass on a GPU, and all beside a copy of the picture."""
    table = []
    for row in record(name)["rows"]:
        times = [f"{row[f'{which}_us']:,.1f}" for which in ("copy", "first_pass", "label", "join", "expand", "whole")]
        shares = [f"{row[f'{which}_us'] / row['copy_us']:.1f}" for which in ("first_pass", "whole")]
        table.append([row["case"], str(row["size"]), *times, *shares])
    header = ("copy", "first pass", "label", "join", "expand", "whole", "first pass / copy", "whole / copy")
    return lines_of(("picture", "side", *header), table)
