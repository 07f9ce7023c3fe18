"""The figures of some comparisons with one reference, as a record for JSON and as text for a person.

Infinite figures become null in JSON: `max_abs` where a NaN or infinity meets a number, `psnr_db` where nothing
differs. Coordinates count from 0 at the top left; bounds of regions are inclusive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Literal

from edgeconv.core.records import Amount, Meta, Natural, Part, Share, finite
from edgeconv.core.safe_text import visible
from edgeconv.core.units import counted
from edgeconv.difference.figures import Allowance, Figures, PartFigures, Spot, compare
from edgeconv.difference.inputs import Input, labels_of, layout_text, require_same_layout
from edgeconv.difference.regions import Region
from edgeconv.difference.scale import Scale, scale_for
from edgeconv.difference.ssim import mean_ssim
from edgeconv.run.report import RecordHead, header

REGIONS_SHOWN = 5
"""Regions that the text lists; JSON and page have all that were stored."""


class FiguresPart(Part):
    """Figures of a part of the samples. Differences are other − reference."""

    samples: Natural
    unequal_samples: Natural
    differing_samples: Natural
    unbounded_samples: Natural
    max_abs: Annotated[Amount | None, Meta(description="null: infinite")]
    mean: float
    mean_abs: Amount
    rmse: Amount
    psnr_db: Annotated[float | None, Meta(description="null: infinite, as nothing is unequal")]
    max_ulp: Annotated[Natural | None, Meta(description="null: whole numbers")]
    histogram: Annotated[tuple[Natural, ...], Meta(description="samples in each of difference_classes")]
    differing_share: Share


class SpotPart(Part):
    """One pixel with both values, and the channel that says most; null for what is no finite number."""

    y: Natural
    x: Natural
    channel: str
    reference: list[float | None]
    other: list[float | None]
    difference: float | None
    ulp: Natural | None


class ComparisonPart(Part, omit_defaults=True):
    """One picture against the reference."""

    file: str
    notes: list[str]
    same: bool
    judged: FiguresPart
    differing_pixels: Natural
    first: SpotPart | None
    worst: SpotPart | None
    peak: float
    whole: FiguresPart
    border_ring_pixels: Natural
    border: FiguresPart
    interior: FiguresPart
    channels: dict[str, FiguresPart]
    region_count: Natural
    regions: list[Region]
    ignored: Annotated[FiguresPart | None, Meta(description="only with --ignore: the pixels of its regions")] = None
    ssim: float | None = None


class ReferencePart(Part):
    """What all others were compared with."""

    file: str
    layout: str
    notes: list[str]


class Compared(RecordHead):
    """Some pictures against one reference. Coordinates count from 0 at the top left."""

    same: bool
    reference: ReferencePart
    allowed: Allowance
    difference_classes: list[str]
    comparisons: list[ComparisonPart]


class DiffRecord(Compared):
    """What `edgeconv diff` found."""

    kind: Literal["diff"]


@dataclass(frozen=True)
class Comparison:
    """One input against the reference."""

    source: Input
    label: str
    figures: Figures
    notes: tuple[str, ...] = ()
    ssim: float | None = None
    """None where it was not asked for."""


@dataclass(frozen=True)
class Comparisons:
    """Some inputs against one reference."""

    reference: Input
    reference_label: str
    reference_notes: tuple[str, ...]
    layout: str
    allowance: Allowance
    each: tuple[Comparison, ...]

    @property
    def same(self) -> bool:
        """All of them are the same as the reference, within what was allowed."""
        return all(comparison.figures.same for comparison in self.each)

    @property
    def scale(self) -> Scale:
        """The classes of difference of this type of sample."""
        return scale_for(self.each[0].figures.dtype)


def compare_all(
    reference: Input, others: Sequence[Input], allowance: Allowance, with_ssim: bool = False
) -> Comparisons:
    """Compare each input with the reference, one after the other, so that no more than two are in memory.

    Raises LayoutError, UsageError, ImageReadError, UnavailableError.
    """
    base = reference.load()
    labels = labels_of([reference.name, *(other.name for other in others)])
    each = []
    for other, label in zip(others, labels[1:], strict=True):
        loaded = other.load()
        require_same_layout(reference.name, base.pixels, other.name, loaded.pixels)
        figures = compare(base.pixels, loaded.pixels, allowance)
        ssim = mean_ssim(base.pixels, loaded.pixels, figures.peak) if with_ssim else None
        each.append(Comparison(other, label, figures, loaded.notes, ssim))
        del loaded  # before the next is decoded
    return Comparisons(reference, labels[0], base.notes, layout_text(base.pixels), allowance, tuple(each))


def describe(comparisons: Comparisons) -> DiffRecord:
    """The record for JSON."""
    return DiffRecord(
        **header(),
        kind="diff",
        same=comparisons.same,
        reference=ReferencePart(
            file=comparisons.reference.name, layout=comparisons.layout, notes=list(comparisons.reference_notes)
        ),
        allowed=comparisons.allowance,
        difference_classes=list(comparisons.scale.labels),
        comparisons=[_describe_one(comparison) for comparison in comparisons.each],
    )


def _describe_one(comparison: Comparison) -> ComparisonPart:
    figures = comparison.figures
    channels = zip(figures.channels, figures.by_channel, strict=True)
    return ComparisonPart(
        file=comparison.source.name,
        notes=list(comparison.notes),
        same=figures.same,
        judged=_describe_part(figures.judged),
        differing_pixels=figures.differing_pixels,
        first=_describe_spot(figures.first),
        worst=_describe_spot(figures.worst),
        peak=figures.peak,
        whole=_describe_part(figures.whole),
        border_ring_pixels=figures.ring,
        border=_describe_part(figures.border),
        interior=_describe_part(figures.interior),
        channels={name: _describe_part(part) for name, part in channels},
        region_count=figures.region_count,
        regions=list(figures.regions),
        ignored=None if figures.ignored is None else _describe_part(figures.ignored),
        ssim=comparison.ssim,
    )


def _describe_part(part: PartFigures) -> FiguresPart:
    found = asdict(part) | {name: finite(getattr(part, name)) for name in ("max_abs", "psnr_db")}
    return FiguresPart(**found, differing_share=part.differing_share)


def _describe_spot(spot: Spot | None) -> SpotPart | None:
    if spot is None:
        return None
    reference, other = ([finite(value) for value in values] for values in (spot.reference, spot.other))
    return SpotPart(spot.y, spot.x, spot.channel, reference, other, finite(spot.difference), spot.ulp)


# --- for a person -----------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Whole values in full, others with four significant digits."""
    if math.isinf(value) or math.isnan(value):
        return {"inf": "infinite", "-inf": "-infinite"}.get(str(value), "NaN")
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def share(part: PartFigures) -> str:
    """Differing samples in per cent, never rounded to nothing or to all."""
    per_cent = 100 * part.differing_share
    if part.differing_samples in (0, part.samples) or 0.0001 <= per_cent <= 99.9999:
        return f"{per_cent:.4f} %"
    return f"{per_cent:.2g} %" if per_cent < 1 else f"{per_cent:.10g} %"


def text(comparisons: Comparisons) -> str:
    """A few lines per comparison, then one line for all of them where there are several."""
    blocks = [_block(comparisons, comparison) for comparison in comparisons.each]
    if len(blocks) > 1:
        blocks.append(summary(comparisons))
    return "\n\n".join(blocks)


def summary(comparisons: Comparisons) -> str:
    """One line for all of them."""
    if len(comparisons.each) == 1:
        return verdict(comparisons.each[0].figures, comparisons.allowance)
    differing = [comparison.label for comparison in comparisons.each if not comparison.figures.same]
    count = len(comparisons.each)
    if not differing:
        return (
            f"all {count} are the same as {visible(comparisons.reference_label)}{allowed_text(comparisons.allowance)}"
        )
    return (
        f"{len(differing)} of {count} differ: {', '.join(map(visible, differing))}{allowed_text(comparisons.allowance)}"
    )


def verdict(figures: Figures, allowance: Allowance) -> str:
    """One line: same or not, how many samples of how many, and what was allowed."""
    part = figures.judged
    if part.unequal_samples == 0:
        found = f"same: all {part.samples:,} samples are equal"
    else:
        word = "same within what was allowed" if figures.same else "differs"
        found = (
            f"{word}: {part.differing_samples:,} of {part.samples:,} samples ({share(part)}) "
            f"in {figures.differing_pixels:,} pixels"
        )
    return found + allowed_text(allowance)


def allowed_text(allowance: Allowance) -> str:
    """What was allowed, in brackets, or nothing."""
    amounts = {field.name: getattr(allowance, field.name) for field in fields(allowance)}
    regions = len(amounts.pop("ignored_regions"))
    words = [f"{name.replace('_', ' ')} {value:g}" for name, value in amounts.items() if value]
    words += [counted(regions, "ignored region")] if regions else []
    return f" (allowed: {', '.join(words)})" if words else ""


def spot_text(spot: Spot) -> str:
    """Where, and both values."""

    def values(pixel: tuple[float, ...]) -> str:
        return " ".join(number(value) for value in pixel)

    return f"(x {spot.x}, y {spot.y}) reference {values(spot.reference)}, other {values(spot.other)}"


def part_text(part: PartFigures) -> str:
    """One part in one line."""
    if part.unequal_samples == 0:
        return f"equal, {part.samples:,} samples"
    return f"{part.differing_samples:,} of {part.samples:,} differ ({share(part)}), largest {number(part.max_abs)}"


def histogram_text(part: PartFigures, scale: Scale) -> str:
    """The classes that hold samples."""
    return "; ".join(f"{label}: {count:,}" for label, count in zip(scale.labels, part.histogram, strict=True) if count)


def rows(comparisons: Comparisons, comparison: Comparison) -> list[tuple[str, str]]:
    """The figures of one comparison as (name, value) lines."""
    figures, part = comparison.figures, comparison.figures.judged
    lines = [("verdict", verdict(figures, comparisons.allowance))]
    lines += [("note", f"{comparisons.reference_label}: {note}") for note in comparisons.reference_notes]
    lines += [("note", f"{comparison.label}: {note}") for note in comparison.notes]
    if figures.worst is not None:
        channel = f" in {figures.worst.channel}" if len(figures.channels) > 1 else ""
        lines.append(("largest", f"{number(part.max_abs)}{channel} at {spot_text(figures.worst)}"))
    if figures.first is not None:
        lines.append(("first", f"at {spot_text(figures.first)}"))
    if part.unequal_samples:
        mean = f"mean {part.mean:+.4g}, mean absolute {part.mean_abs:.4g}, RMSE {part.rmse:.4g}"
        lines.append(("errors", f"{mean}, PSNR {part.psnr_db:.2f} dB (peak {number(figures.peak)})"))
        if part.max_ulp is not None:
            lines.append(("ULP", f"largest distance {part.max_ulp:,}"))
        if part.unbounded_samples:
            lines.append(("NaN, infinity", f"{part.unbounded_samples:,} samples against another number"))
        lines.append((f"border {figures.ring} px", part_text(figures.border)))
        lines.append(("interior", part_text(figures.interior)))
        if figures.ignored is not None:
            lines.append(("ignored", part_text(figures.ignored)))
        if len(figures.channels) > 1:
            lines += [
                (f"channel {name}", part_text(each))
                for name, each in zip(figures.channels, figures.by_channel, strict=True)
            ]
        lines.append(("|difference|", histogram_text(part, comparisons.scale)))
    if figures.region_count:
        listed = "; ".join(
            f"x {region.left}–{region.right}, y {region.top}–{region.bottom} ({region.pixels:,} px)"
            for region in figures.regions[:REGIONS_SHOWN]
        )
        more = " ..." if figures.region_count > REGIONS_SHOWN else ""
        lines.append(("regions", f"{figures.region_count:,}, largest first: {listed}{more}"))
    if comparison.ssim is not None:
        lines.append(("SSIM", f"{comparison.ssim:.6g}"))
    return lines


def _block(comparisons: Comparisons, comparison: Comparison) -> str:
    lines = [
        ("reference", f"{comparisons.reference.name}  {comparisons.layout}"),
        ("other", comparison.source.name),
        *rows(comparisons, comparison),
    ]
    widest = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{widest}}  {visible(value)}" for name, value in lines)
