"""The tables of the documents about forms, the lot and the survey of the CPU engine; docs_tables.py puts them there."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import committed

from edgeconv.bench.record import read_record
from edgeconv.core.forms import FORMS
from edgeconv.core.units import seconds_text
from edgeconv.export import surface
from edgeconv.export.tables import lines_of

STAND_OUT = 0.6
WORST_ROWS = 8


def forms() -> str:
    """The table of forms."""
    rows = [(form.name, form.computes, form.condition, form.error) for form in FORMS]
    return lines_of(("form", "computes", "where", "error"), rows)


def shipped(*names: str) -> str:
    """What CUDA `sliding` takes at several sizes and borders: records of scripts/sweep_cuda_sliding.py --shipped."""
    rows = []
    for result in (result for name in names for result in committed.record(name)["results"]):
        (best,) = result["best"]
        share = f"{best['share_of_floor']:.2f}"
        rows.append((result["work"], result["size"], result["border"], seconds_text(best["seconds"]), share))
    return lines_of(("case", "size", "border", "median", "a copy's time over it"), rows)


def cuda_forms(name: str) -> str:
    """What the arithmetic of CUDA `sliding` takes: a record of scripts/sweep_cuda_sliding.py --shipped."""
    rows = []
    for result in committed.record(name)["results"]:
        (best,) = result["best"]
        choice = best["tile"]
        share = f"{best['share_of_floor']:.2f}"
        rows.append((result["work"], choice["arithmetic"], choice["forms"], seconds_text(best["seconds"]), share))
    return lines_of(("case", "arithmetic", "forms", "median", "of the floor"), rows)


def checkouts(name: str) -> str:
    """A record of scripts/compare_checkouts.py."""
    record = committed.record(name)
    rows = []
    for row in record["rows"]:
        case = row["case"]
        rows.append(
            (
                f"{case['dtype']} {case['filter']} {case['channels']}",
                str(case["stride"]),
                str(case["side"]),
                *(
                    f"{seconds_text(row[side]['least_seconds'])} / {seconds_text(row[side]['median_seconds'])}"
                    for side in ("before", "after")
                ),
                f"{row['ratio_of_least']:.2f} / {row['ratio_of_medians']:.2f}",
                "yes" if row["same_bytes"] else "within the bound",
            )
        )
    header = ("case", "stride", "side", "before, least / median", "after", "times faster", "same bytes")
    return lines_of(header, rows)


def lot(machine: str, number: int) -> str:
    """A table of a record of the grid `surface`: 0 is the distribution, 1 the worst cases."""
    table = surface.tables_of(read_record(committed.RESULTS / "bench" / machine / "surface.json.xz"))[number]
    return lines_of(table.header, table.rows)


def survey(name: str) -> str:
    """How many rows of scripts/survey_cpu.py have which share of their best sibling, by type."""
    rows = committed.record(name)["rows"]
    steps = (0.0, 0.4, 0.5, STAND_OUT, 0.7, 0.8, 1.01)
    lines = []
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        shares = [row["share"] for row in rows if row["dtype"] == dtype]
        counted = [sum(low <= share < high for share in shares) for low, high in pairwise(steps)]
        lines.append((dtype, str(len(shares)), *map(str, counted)))
    spans = [f"{low:g} to {min(high, 1.0):g}" for low, high in pairwise(steps)]
    return lines_of(("type", "rows", *spans), lines)


def survey_kinds(name: str) -> str:
    """The kinds of rows below STAND_OUT: type, filter, channels, the axis they are behind on, and how many they are."""
    rows = [row for row in committed.record(name)["rows"] if row["share"] < STAND_OUT]
    kinds = Counter((row["dtype"], row["filter"], row["worst_axis"]) for row in rows)
    lines = []
    for (dtype, chosen, axis), count in sorted(kinds.items(), key=lambda item: -item[1])[:WORST_ROWS]:
        of_kind = [row for row in rows if (row["dtype"], row["filter"], row["worst_axis"]) == (dtype, chosen, axis)]
        least = min(row["share"] for row in of_kind)
        strides = sorted({row["stride"] for row in of_kind})
        lines.append((f"{dtype} {chosen}", axis, ", ".join(map(str, strides)), str(count), f"{least:.2f}"))
    return lines_of(("rows", "behind those of another", "strides", "number", "smallest share"), lines)
