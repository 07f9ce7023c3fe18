"""What a record of drawn cases says (edgeconv/bench/surface.py), as tables."""

from __future__ import annotations

from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import median
from edgeconv.bench.surface import PERCENTILES, distributions, shares, worst
from edgeconv.core.units import digits_text, seconds_text, share_text
from edgeconv.export.tables import NOTHING, Table

HEADER = (
    "device",
    "cases",
    "number",
    *(f"p{percentile}" for percentile in PERCENTILES),
    "lead over the fastest peer, geometric mean",
    "cases with a peer",
    "of them, peer faster",
)
WORST = ("of the limit", "device", "bound by", "case", "shape", "border, mode, padding", "time", "arithmetic", "forms")


def tables_of(record: BenchRecord) -> list[Table]:
    """The distribution of shares, and the worst cases of each device; none for a grid that lists its cases."""
    draw = record.grid.draw
    if draw is None:
        return []
    found = {device: shares(record, device) for device in record.roofs}
    rows = [
        (
            device,
            part.what,
            str(part.cases),
            *(digits_text(value, 2) for value in part.percentiles),
            NOTHING if part.mean_lead is None else str(part.mean_lead),
            str(len(part.leads)),
            str(part.behind),
        )
        for device, of_device in found.items()
        for part in distributions(of_device)
    ]
    low = [
        (
            share_text(share.share),
            device,
            share.bound_by,
            f"{share.row.case.dtype} {share.row.case.filter} {share.row.case.channels} s{share.row.case.stride}",
            f"{share.row.case.height}×{share.row.case.width}",
            f"{share.row.case.border}, {share.row.case.output_mode}, {share.row.case.padding}",
            seconds_text(median(share.row)),
            str(share.row.choice.get("arithmetic", NOTHING)),
            str(share.row.choice.get("forms", NOTHING)),
        )
        for device, of_device in found.items()
        for share in worst(of_device)
    ]
    title = f"Share of the limit, {draw.cases} cases drawn from seed {draw.seed}"
    return [Table(title, HEADER, tuple(rows)), Table("The smallest shares", WORST, tuple(low))]
