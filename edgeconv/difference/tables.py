"""The figures of a page as HTML tables, complete before any script runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from edgeconv.core.safe_text import markup
from edgeconv.difference import text
from edgeconv.difference.compare import Compared, Comparison
from edgeconv.difference.text import number, share

COLUMNS: dict[str, Callable[[Comparison], str]] = {
    "verdict": lambda found: "same" if found.same else "differs",
    "differing samples": lambda found: f"{found.judged.differing_samples:,}",
    "share": lambda found: share(found.judged),
    "largest": lambda found: number(found.judged.max_abs),
    "RMSE": lambda found: f"{found.judged.rmse:.4g}",
    "PSNR dB": lambda found: "infinite" if found.judged.rmse == 0 else f"{found.judged.psnr_db:.2f}",
    "ULP": lambda found: f"{found.judged.max_ulp:,}",
    "regions": lambda found: f"{found.region_count:,}",
    "SSIM": lambda found: f"{found.ssim:.6g}",
}
"""By name; ULP is of floats alone, SSIM only where it was asked for. Each comparison's details have every figure."""


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


def figures(name: str, set_number: int, record: Compared) -> str:
    """One section for a set: all inputs in one table, then every figure of each."""
    reference_label, *labels = record.labels
    caption = (
        f"Against {reference_label}, {record.reference.layout}; difference = input − reference"
        f"{text.allowed_text(record.allowed)}"
    )
    columns = dict(COLUMNS)
    if record.comparisons[0].judged.max_ulp is None:
        del columns["ULP"]
    if record.comparisons[0].ssim is None:
        del columns["SSIM"]
    rows = [
        [label, *(shown(found) for shown in columns.values())]
        for label, found in zip(labels, record.comparisons, strict=True)
    ]
    details = "\n".join(
        f"<details><summary>Every figure of {markup(label)}</summary>"
        f"{table(label, ('figure', 'value'), text.rows(record, index))}</details>"
        for index, label in enumerate(labels)
    )
    heading = f"<h3>{markup(name)}</h3>" if name else ""
    main = table(caption, ["input", *columns], rows)
    return f'<section class="set" data-set="{set_number}">{heading}\n{main}\n{details}\n</section>'


def remarks(lines: Sequence[str]) -> str:
    """A list, or nothing."""
    items = "".join(f"<li>{markup(line)}</li>" for line in lines)
    return f'<ul class="hint">{items}</ul>' if items else ""
