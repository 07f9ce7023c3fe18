"""What a comparison of two bench records found, as Markdown for people and as JUnit for CI."""

from __future__ import annotations

from edgeconv.bench.compare import FAILING, VERDICTS, RecordComparison
from edgeconv.bench.intervals import CONFIDENCE
from edgeconv.core.safe_text import visible
from edgeconv.core.units import seconds_text
from edgeconv.export.tables import NOTHING, lines_of
from edgeconv.io.junit import JUnitCase, to_xml


def to_markdown(comparison: RecordComparison) -> str:
    """A summary line, what the records differ in, and a table, worst first."""
    counts = {verdict: sum(line.verdict == verdict for line in comparison.lines) for verdict in VERDICTS}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    gate, (bases, news) = comparison.gate, comparison.runs
    interval = "bootstrap interval" if bases == news == 1 else f"interval by {bases} and {news} runs"
    text = [
        f"{'Passed' if comparison.passed else 'FAILED'}: {summary}. A row is slower where the {CONFIDENCE:.0%} "
        f"{interval} of new / base ({gate.statistic}) lies wholly above {1 + gate.margin:.3g}.",
        "",
    ]
    if comparison.differences:
        text += [f"The records differ, which was allowed: {visible('; '.join(comparison.differences))}.", ""]
    rows = []
    for line in comparison.lines:
        new = seconds_text(line.new_seconds) if line.new_seconds is not None else line.note
        ratio = "" if line.ratio is None else ", ".join(filter(None, (str(line.ratio), line.note)))
        base = NOTHING if line.base_seconds is None else seconds_text(line.base_seconds)
        rows.append((line.verdict, line.title, base, new, ratio))
    return "\n".join(text) + "\n" + lines_of(("verdict", "row", "base", "new", "new / base"), rows)


def to_junit(comparison: RecordComparison) -> bytes:
    """One test case per row; slower and lost rows are failures."""
    cases = []
    for line in comparison.lines:
        ratio = "" if line.ratio is None else f"new / base {line.ratio}"
        message = f"{line.verdict}: {', '.join(filter(None, (ratio, line.note)))}"
        cases.append(JUnitCase(line.title, "failure" if line.verdict in FAILING else "passed", message))
    return to_xml("edgeconv bench compare", cases)
