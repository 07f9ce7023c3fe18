"""The result of a comparison for a person: rows of a name and a value, the verdict first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

from edgeconv.core.text import TextRow, counted, share_text, visible
from edgeconv.difference.compare import Compared, Comparison
from edgeconv.difference.figures import Allowance, SampleFigures, Spot
from edgeconv.difference.scale import Scale
from edgeconv.io.junit import JUnitCase

REGIONS_SHOWN = 5
"""Regions that the text lists; JSON and page have all that were stored."""

Paragraphs = list[list[TextRow]]


def number(value: float) -> str:
    """Integers in full, others with four significant digits."""
    if math.isinf(value) or math.isnan(value):
        return {"inf": "infinity", "-inf": "−infinity"}.get(str(value), "NaN")
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def share(part: SampleFigures) -> str:
    """Differing samples in per cent; never rounded to all."""
    shown = share_text(part.differing_share)
    return "over 99 %" if shown == "100 %" and part.differing_samples < part.samples else shown


def paragraphs(record: Compared) -> Paragraphs:
    """One per comparison, then one line for all of them where there are several."""
    found = []
    for index, comparison in enumerate(record.comparisons):
        head = [
            TextRow("reference", f"{record.reference.file}  {record.reference.layout}"),
            TextRow("other", comparison.file),
        ]
        (_, said), *rest = rows(record, index)
        judged = TextRow("verdict", said, "good" if comparison.same else "bad")
        found.append([*head, judged, *(TextRow(name, value) for name, value in rest)])
    if len(found) > 1:
        found.append([TextRow("", summary(record))])
    return found


def case(name: str, record: Compared, index: int) -> JUnitCase:
    """One comparison as a test, with all its figures where it differs."""
    found = record.comparisons[index]
    if found.same:
        return JUnitCase(name, "passed")
    details = "\n".join(f"{label}: {visible(value)}" for label, value in rows(record, index))
    return JUnitCase(name, "failure", verdict(found, record.allowed), details)


def summary(record: Compared) -> str:
    """One line for all comparisons."""
    if len(record.comparisons) == 1:
        return verdict(record.comparisons[0], record.allowed)
    reference, *labels = map(visible, record.labels)
    differing = [label for label, each in zip(labels, record.comparisons, strict=True) if not each.same]
    if not differing:
        return f"all {len(labels)} are the same as {reference}{allowed_text(record.allowed)}"
    return f"{len(differing)} of {len(labels)} differ: {', '.join(differing)}{allowed_text(record.allowed)}"


def verdict(found: Comparison, allowance: Allowance) -> str:
    """One line: same or not, how many samples differ, by how much, and what was allowed."""
    part = found.judged
    if part.unequal_samples == 0:
        said = f"same: all {counted(part.samples, 'sample')} are equal"
    elif found.same:
        verb = "differs" if part.unequal_samples == 1 else "differ"
        amount = f"{counted(part.unequal_samples, 'sample')} {verb}, by at most {number(part.max_abs)}"
        said = f"same within tolerance: {amount}"
    else:
        said = (
            f"differs: {part.differing_samples:,} of {counted(part.samples, 'sample')} ({share(part)}) "
            f"in {counted(found.differing_pixels, 'pixel')}, by at most {number(part.max_abs)}"
        )
    return said + allowed_text(allowance)


def allowed_text(allowance: Allowance) -> str:
    """What was allowed, in brackets, or nothing."""
    amounts = {field.name: getattr(allowance, field.name) for field in fields(allowance)}
    regions = len(amounts.pop("ignored_regions"))
    words = [f"{name.replace('_', ' ')} {value:g}" for name, value in amounts.items() if value]
    words += [counted(regions, "ignored region")] if regions else []
    return f" (allowed: {', '.join(words)})" if words else ""


def spot_text(spot: Spot) -> str:
    """Where, and both values."""

    def values(pixel: Sequence[float]) -> str:
        return " ".join(number(value) for value in pixel)

    return f"x {spot.x}, y {spot.y}: reference {values(spot.reference)}, other {values(spot.other)}"


def part_text(part: SampleFigures) -> str:
    """One part in one line."""
    if part.unequal_samples == 0:
        return f"equal, {counted(part.samples, 'sample')}"
    return f"{part.differing_samples:,} of {part.samples:,} differ ({share(part)}), largest {number(part.max_abs)}"


def histogram_text(part: SampleFigures, scale: Scale) -> str:
    """The classes that hold samples."""
    return "; ".join(f"{label}: {count:,}" for label, count in zip(scale.labels, part.histogram, strict=True) if count)


def rows(record: Compared, index: int) -> list[tuple[str, str]]:
    """The figures of one comparison as (name, value) lines."""
    found, label = record.comparisons[index], record.labels[index + 1]
    part = found.judged
    lines = [("verdict", verdict(found, record.allowed))]
    lines += [("note", f"{record.labels[0]}: {note}") for note in record.reference.notes]
    lines += [("note", f"{label}: {note}") for note in found.notes]
    if found.worst is not None:
        channel = f" in {found.worst.channel}" if len(found.channels) > 1 else ""
        lines.append(("largest", f"{number(part.max_abs)}{channel} at {spot_text(found.worst)}"))
    if part.unequal_samples:
        mean = f"mean {part.mean:+.4g}, mean absolute {part.mean_abs:.4g}, RMSE {part.rmse:.4g}"
        lines.append(("errors", f"{mean}, PSNR {part.psnr_db:.2f} dB (peak {number(found.peak)})"))
        if part.max_ulp is not None:
            lines.append(("ULP", f"largest distance {part.max_ulp:,}"))
        if part.unbounded_samples:
            lines.append(("NaN, infinity", f"{counted(part.unbounded_samples, 'sample')} against another number"))
    if found.ssim is not None:
        lines.append(("SSIM", f"{found.ssim:.6g}"))
    if found.ignored_differing_samples:
        said = f"{found.ignored_differing_samples:,} of {counted(found.ignored_samples, 'sample')} not judged differ"
        lines.append(("ignored", said))
    if part.unequal_samples:
        if len(found.channels) > 1:
            lines += [(f"channel {name}", part_text(each)) for name, each in found.channels.items()]
        lines.append(("|difference|", histogram_text(part, record.scale)))
    if found.region_count:
        listed = "; ".join(f"{region} ({region.pixels:,} px)" for region in found.regions[:REGIONS_SHOWN])
        more = " ..." if found.region_count > REGIONS_SHOWN else ""
        lines.append(("regions", f"{found.region_count:,}, largest first: {listed}{more}"))
    return lines
