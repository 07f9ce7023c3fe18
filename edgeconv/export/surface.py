"""What a record of drawn cases says (edgeconv/bench/surface.py), as tables."""

from __future__ import annotations

from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import median
from edgeconv.bench.surface import PERCENTILES, Share, distributions, shares, worst
from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.export.tables import NOTHING, Table, shown

MEAN_LEAD = "lead over the fastest peer, geometric mean"
HEADER = (
    *("device", "cases", "number", *(f"p{percentile}" for percentile in PERCENTILES)),
    *(MEAN_LEAD, "cases with a peer", "of them, peer faster"),
)
WORST = ("of the limit", "device", "bound by", "case", "shape", "border, mode, padding", "time", "arithmetic", "forms")


def tables_of(record: BenchRecord) -> list[Table]:
    """The distribution of shares, and the worst cases of each device; none for a grid that lists its cases."""
    draw, rows, low = record.grid.draw, [], []
    if draw is None:
        return []
    for device in record.roofs:
        found = shares(record, device)
        low += [_cells(device, share) for share in worst(found)]
        for part in distributions(found):
            percentiles = (digits_text(value, 2) for value in part.percentiles)
            leads = (shown(part.mean_lead), str(len(part.leads)), str(part.behind))
            rows.append((device, part.what, str(part.cases), *percentiles, *leads))
    title = f"Share of the limit, {draw.cases} cases drawn from seed {draw.seed}"
    return [Table(title, HEADER, tuple(rows)), Table("The smallest shares", WORST, tuple(low))]


def _cells(device: str, share: Share) -> tuple[str, ...]:
    case, choice = share.row.case, share.row.choice
    what = f"{case.dtype} {case.filter} {case.channels} s{case.stride}"
    shape, rules = f"{case.height}×{case.width}", f"{case.border}, {case.output_mode}, {case.padding}"
    how = (str(choice.get("arithmetic", NOTHING)), str(choice.get("forms", NOTHING)))
    return (share_text(share.share), device, share.bound_by, what, shape, rules, seconds_text(median(share.row)), *how)
