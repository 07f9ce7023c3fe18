"""What a record of drawn cases says (edgeconv/bench/surface.py), as tables."""

from __future__ import annotations

from collections.abc import Sequence

from edgeconv.bench.record import BenchRecord
from edgeconv.bench.summary import median
from edgeconv.bench.surface import PERCENTILES, Share, distributions, shares, worst
from edgeconv.core.units import digits_text, seconds_text
from edgeconv.export.tables import NOTHING, Table

DISTRIBUTION_HEADER = (
    "device",
    "cases",
    "number",
    *(f"{percentile} %" for percentile in PERCENTILES),
    "lead over the fastest peer (geometric mean, 99 % interval over cases)",
    "cases with a peer",
    "of them, peer faster",
)
WORST_HEADER = (
    "case",
    "shape",
    "border, mode, padding",
    "time",
    "share of the limit",
    "bound by",
    "arithmetic",
    "forms",
)


def tables_of(record: BenchRecord) -> list[Table]:
    """The distribution of shares, and of each device the worst cases; none for a grid that lists its cases."""
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
    title = f"Share of the limit, {draw.cases} cases drawn from seed {draw.seed}"
    tables = [Table(title, DISTRIBUTION_HEADER, tuple(rows))]
    for device, of_device in found.items():
        tables.append(Table(f"The smallest shares on {device}", WORST_HEADER, _worst(of_device)))
    return tables


def _worst(found: Sequence[Share]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            f"{share.row.case.dtype} {share.row.case.filter} {share.row.case.channels} s{share.row.case.stride}",
            f"{share.row.case.height}×{share.row.case.width}",
            f"{share.row.case.border}, {share.row.case.output_mode}, {share.row.case.padding}",
            seconds_text(median(share.row)),
            digits_text(share.share, 2),
            share.bound_by,
            str(share.row.choice.get("arithmetic", NOTHING)),
            str(share.row.choice.get("forms", NOTHING)),
        )
        for share in worst(found)
    )
