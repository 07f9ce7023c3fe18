"""The figures of a page as HTML tables, complete before any script runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgeconv.core.safe_text import markup
from edgeconv.difference import record
from edgeconv.difference.record import Comparison, Comparisons, number, share

COLUMNS = (
    "input",
    "verdict",
    "differing samples",
    "share",
    "pixels",
    "largest",
    "mean",
    "mean absolute",
    "RMSE",
    "PSNR dB",
    "ULP",
    "border",
    "interior",
    "regions",
)


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table whose first column names its rows; every cell is text."""
    head = "".join(f'<th scope="col">{markup(cell)}</th>' for cell in header)
    body = "\n".join(
        f'<tr><th scope="row">{markup(first)}</th>{"".join(f"<td>{markup(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{markup(caption)}"><table>'
        f"<caption>{markup(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def figures(name: str, set_number: int, comparisons: Comparisons) -> str:
    """One section for a set: all inputs in one table, then every figure of each."""
    caption = (
        f"Against {comparisons.reference_label}, {comparisons.layout}; difference = input − reference"
        f"{record.allowed_text(comparisons.allowance)}"
    )
    columns, rows = list(COLUMNS), [_row(comparison) for comparison in comparisons.each]
    if comparisons.each[0].ssim is not None:
        columns.append("SSIM")
        for row, comparison in zip(rows, comparisons.each, strict=True):
            row.append(f"{comparison.ssim:.6g}")
    details = "\n".join(
        f"<details><summary>Every figure of {markup(comparison.label)}</summary>"
        f"{table(comparison.label, ('figure', 'value'), record.rows(comparisons, comparison))}</details>"
        for comparison in comparisons.each
    )
    heading = f"<h3>{markup(name)}</h3>" if name else ""
    main = table(caption, columns, rows)
    return f'<section class="set" data-set="{set_number}">{heading}\n{main}\n{details}\n</section>'


def remarks(lines: Sequence[str]) -> str:
    """A list, or nothing."""
    items = "".join(f"<li>{markup(line)}</li>" for line in lines)
    return f'<ul class="hint">{items}</ul>' if items else ""


def _row(comparison: Comparison) -> list[str]:
    found = comparison.figures
    part = found.judged
    return [
        comparison.label,
        "same" if found.same else "differs",
        f"{part.differing_samples:,}",
        share(part),
        f"{found.differing_pixels:,}",
        number(part.max_abs),
        f"{part.mean:+.4g}",
        f"{part.mean_abs:.4g}",
        f"{part.rmse:.4g}",
        "infinite" if part.rmse == 0 else f"{part.psnr_db:.2f}",
        "" if part.max_ulp is None else f"{part.max_ulp:,}",
        f"{found.border.differing_samples:,}",
        f"{found.interior.differing_samples:,}",
        f"{found.region_count:,}",
    ]
