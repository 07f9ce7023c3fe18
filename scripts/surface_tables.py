"""The tables of the documents about forms, the lot and the survey of the CPU engine; docs_tables.py puts them there."""

from __future__ import annotations

from typing import Any

import committed

from edgeconv.bench.record import read_record
from edgeconv.bench.surface import MEGAPIXEL, PERCENTILES
from edgeconv.bench.surface import shares as surface_shares
from edgeconv.core.forms import FORMS
from edgeconv.core.geometry import KERNEL_SIZE
from edgeconv.core.timing import percentile
from edgeconv.core.units import seconds_text
from edgeconv.export import surface
from edgeconv.export.tables import lines_of

WORTH_A_LINE = 1.08


def forms() -> str:
    """The table of forms."""
    rows = [(form.name, form.computes, form.condition, form.error) for form in FORMS]
    return lines_of(("form", "computes", "where", "error"), rows)


def shipped(name: str) -> str:
    """What CUDA `sliding` takes at several sizes and borders: a record of scripts/sweep_cuda_sliding.py --shipped."""
    rows = []
    for result in committed.record(name)["results"]:
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
    """A record of two checkouts that ran by turns."""
    record = committed.record(name)
    rows = []
    for row in record["rows"]:
        case = row["case"]
        rows.append(
            (
                f"{case.get('method', 'sliding')}: {case['dtype']} {case['filter']} {case['channels']}",
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


def lot(machine: str, number: int, name: str = "surface") -> str:
    """A table of a record of the grid `surface`: 0 is the distribution, 1 the worst cases."""
    table = surface.tables_of(read_record(committed.RESULTS / "bench" / machine / f"{name}.json.xz"))[number]
    return lines_of(table.header, table.rows)


def lot_parts(machine: str, device: str) -> str:
    """The cases of at least one megapixel of such a record, by sample type and by stride."""
    found = surface_shares(read_record(committed.RESULTS / "bench" / machine / "surface.json.xz"), device)
    large = [share for share in found if share.pixels >= MEGAPIXEL]
    parts: dict[str, list[float]] = {}
    for share in large:
        case = share.row.case
        span = "strides 4 to 6" if case.stride > KERNEL_SIZE else f"stride {case.stride}"
        for part in (case.dtype, span):
            parts.setdefault(part, []).append(share.share)
    rows = []
    for name in sorted(parts, key=lambda part: (part.startswith("stride"), part)):
        ordered = sorted(parts[name])
        values = [f"{percentile(ordered, percent / 100):.2f}" for percent in PERCENTILES]
        rows.append((name, str(len(ordered)), *values))
    return lines_of(("cases", "number", *(f"{percent} %" for percent in PERCENTILES)), rows)


def fitted(name: str) -> str:
    """Strips of so many warps as the table has beside as many as fit the width, each timed twice by turns."""
    rows = []
    for row in committed.record(name)["fitted"]:
        shares = [" / ".join(f"{value:.2f}" for value in row[side]) for side in ("share_before", "share_after")]
        if row["warps_before"] != row["warps_after"]:
            rows.append((row["work"], row["size"], str(row["warps_before"]), str(row["warps_after"]), *shares))
    return lines_of(("case", "size", "warps", "fitted", "a copy's time over it", "fitted"), rows)


def sweep_gains(name: str) -> str:
    """The tile that a sweep found best beside what was taken before."""
    rows = []
    for row in committed.record(name)["results"]:
        best, before = row["best"][0], row["before"]
        if best["share_of_copy"] < WORTH_A_LINE * before["share_of_copy"]:
            continue
        times = [seconds_text(one["microseconds"] / 1e6) for one in (before, best)]
        rows.append(
            (row["work"], row["size"], *times, f"{before['share_of_copy']:.2f}", f"{best['share_of_copy']:.2f}")
        )
    return lines_of(("case", "size", "before", "best tile", "a copy's time over it", "best tile"), rows)


def strides(name: str) -> str:
    """Large strides with a step ahead, and the best tile without one."""
    rows = []
    for row in committed.record(name)["strides"]:
        if "by_steps_ahead" not in row:  # one thread per pixel
            continue
        dtype, filter_name, channels, stride, height, width = row["case"]
        best = next(tile for tile in row["tiles"] if tile["tile"] == row["by_steps_ahead"]["0"]["tile"])
        rows.append(
            (
                f"{dtype} {filter_name} {channels}",
                str(stride),
                f"{height}x{width}",
                *(f"{side['microseconds']:.1f} µs, {side['share_of_floor']:.2f}" for side in (row["before"], best)),
            )
        )
    return lines_of(("case", "stride", "size", "before, share of the floor", "no step ahead"), rows)


def banks(name: str) -> str:
    """The fastest shape of each bank of a sweep."""
    best: dict[tuple[int, ...], dict[str, Any]] = {}
    for row in committed.record(name)["rows"]:
        best.setdefault((row["channels"], row["stride"], row["filters"]), row)
    rows = [
        (str(channels), str(stride), str(filters), f"{row['microseconds']:.1f} µs", f"{row['share_of_floor']:.2f}")
        for (channels, stride, filters), row in sorted(best.items())
    ]
    return lines_of(("channels", "stride", "filters", "`sliding`", "a copy's time over it"), rows)
