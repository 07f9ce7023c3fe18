"""What a record of drawn cases says (edgeconv/bench/surface.py), as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeconv.bench.intervals import mean_of_cases
from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import median
from edgeconv.bench.surface import Share, shares, worst
from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.export.tables import NOTHING, Table

PERCENTILES = (5, 25, 50)
LEADS = ("lead over the fastest peer, geometric mean", "cases with a peer", "of them, peer faster")
HEADER = ("device", "cases", *(f"p{percentile}" for percentile in PERCENTILES), *LEADS)
WORST = ("of the limit", "device", "bound by", "case", "shape", "border, mode, padding", "time", "arithmetic", "forms")


def tables_of(record: BenchRecord) -> list[Table]:
    """The distribution of shares, and the worst cases of each device; none for a grid that lists its cases."""
    draw, rows, low = record.grid.draw, [], []
    if draw is None:
        return []
    for device in record.roofs:
        found = shares(record, device)
        low += [_cells(device, share) for share in worst(found)]
        rows += [_distribution(device, found)] if found else []
    title = f"Share of the limit, {draw.cases} cases drawn from seed {draw.seed}"
    return [Table(title, HEADER, tuple(rows)), Table("The smallest shares", WORST, tuple(low))]


def _distribution(device: str, found: Sequence[Share]) -> tuple[str, ...]:
    percentiles = np.percentile([share.share for share in found], PERCENTILES)
    leads = [share.lead for share in found if share.lead is not None]
    mean, behind = str(mean_of_cases(leads)) if leads else NOTHING, sum(lead < 1 for lead in leads)
    cells = (digits_text(float(value), 2) for value in percentiles)
    return (device, str(len(found)), *cells, mean, str(len(leads)), str(behind))


def _cells(device: str, share: Share) -> tuple[str, ...]:
    case, choice = share.row.case, share.row.choice
    what = f"{case.dtype} {case.filter} {case.channels} s{case.stride}"
    shape, rules = f"{case.height}×{case.width}", f"{case.border}, {case.output_mode}, {case.padding}"
    how = (str(choice.get("arithmetic", NOTHING)), str(choice.get("forms", NOTHING)))
    return (share_text(share.share), device, share.bound_by, what, shape, rules, seconds_text(median(share.row)), *how)
