"""Two records, row by row: same, faster, slower or ambiguous, from the samples and not from two numbers.

With a margin of 5 % and [low, high] the 99 % interval of the ratio new / base (intervals.py):

    slower      low  > 1.05             all of the interval is beyond the margin
    faster      high < 1 / 1.05
    same        1 / 1.05 ≤ low and high ≤ 1.05
    ambiguous   the rest: the samples do not tell; more of them might

A row that was measured before and is wrong, refused or failed now is `lost`; so is one that is not there although
its work and device were measured. Records of unlike machines, clocks or library versions are refused unless allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from edgeconv.bench.intervals import CONFIDENCE, STATISTICS, Ratio, ratio_interval
from edgeconv.bench.record import Record, Row, lead_series, row_key, row_title
from edgeconv.bench.watch import CLOCK_TOLERANCE
from edgeconv.diff.junit import Case, to_xml
from edgeconv.errors import UsageError
from edgeconv.report import seconds_text

Verdict = Literal["slower", "lost", "ambiguous", "same", "faster"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FAILING: tuple[Verdict, ...] = ("slower", "lost")

Unlike = Literal["machine", "clocks", "versions"]
UNLIKES: tuple[Unlike, ...] = get_args(Unlike)

MACHINE_FACTS = ("name", "machine", "usable_threads", "governor", "compute_capability", "multiprocessors")


@dataclass(frozen=True)
class Gate:
    """`median:5%`: which statistic, and how much slower is too slow."""

    statistic: str = "median"
    margin: float = 0.05

    def __str__(self) -> str:
        return f"{self.statistic}:{self.margin:.3g}"


@dataclass(frozen=True)
class Line:
    """One row of both records."""

    title: str
    verdict: Verdict
    base_seconds: float
    new_seconds: float | None
    ratio: Ratio | None
    note: str


@dataclass(frozen=True)
class Comparison:
    """Every row that both records have, and what the records differ in."""

    gate: Gate
    lines: tuple[Line, ...]
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """False where any row is slower or lost."""
        return not any(line.verdict in FAILING for line in self.lines)


def parse_gate(text: str) -> Gate:
    """`median:5%` or `p90:0.1`; raises UsageError."""
    found = re.fullmatch(r"(\w+):(\d+(?:\.\d+)?)(%?)", text.strip())
    if found is None or found[1] not in STATISTICS:
        raise UsageError(f"--fail-on '{text}' is not like median:5% (one of {', '.join(STATISTICS)}).")
    return Gate(found[1], float(found[2]) / (100 if found[3] else 1))


def compare(base: Record, new: Record, gate: Gate, allowed: tuple[str, ...] = ()) -> Comparison:
    """Compare row by row; raises UsageError for records that are not alike in what `allowed` does not name."""
    found = differences(base, new)
    refused = {kind: words for kind, words in found.items() if words and kind not in allowed}
    if refused:
        words = "; ".join(f"{kind}: {', '.join(items)}" for kind, items in refused.items())
        raise UsageError(f"These records are not alike ({words}): allow it with --allow {','.join(refused)}.")
    rows = {row_key(row): row for row in new["rows"]}
    reached = {row_key(row)[:-2] for row in new["rows"]}
    lines = []
    for row in base["rows"]:
        series = lead_series(row)
        if row["kind"] != "copy" and series is not None and row_key(row)[:-2] in reached:
            lines.append(_line(row, series, rows.get(row_key(row)), gate))
    if not lines:
        raise UsageError("These records have no measured row in common: compare runs of the same grid.")
    order = {verdict: index for index, verdict in enumerate(VERDICTS)}
    lines.sort(key=lambda line: order[line.verdict])
    return Comparison(gate, tuple(lines), tuple(item for items in found.values() for item in items))


def judge(ratio: Ratio, margin: float) -> Verdict:
    """The verdict on a ratio with its interval."""
    slow, fast = 1 + margin, 1 / (1 + margin)
    if ratio.low > slow:
        return "slower"
    if ratio.high < fast:
        return "faster"
    return "same" if fast <= ratio.low and ratio.high <= slow else "ambiguous"


def differences(base: Record, new: Record) -> dict[Unlike, list[str]]:
    """What makes a comparison doubtful, by kind; empty lists where nothing does."""
    machine, clocks = [], []
    for device in base["machine"].keys() | new["machine"].keys():
        if device not in base["machine"] or device not in new["machine"]:
            machine.append(f"only one was measured on {device}")
            continue
        ours, theirs = base["machine"][device], new["machine"][device]
        machine += [
            f"{device} {name} {ours.get(name)} and {theirs.get(name)}"
            for name in MACHINE_FACTS
            if ours.get(name) != theirs.get(name)
        ]
    ours_mhz, theirs_mhz = _slowest_clock(base), _slowest_clock(new)
    if ours_mhz and theirs_mhz and max(ours_mhz, theirs_mhz) > min(ours_mhz, theirs_mhz) * (1 + CLOCK_TOLERANCE):
        clocks.append(f"{ours_mhz} and {theirs_mhz} MHz")
    for words, record in (("the first", base), ("the second", new)):
        if any(_is_slowed(row) for row in record["rows"]):
            clocks.append(f"{words} was measured on a card that was throttled or whose clock moved")
    names = sorted(base["versions"].keys() | new["versions"].keys())
    versions = [
        f"{name} {base['versions'].get(name)} and {new['versions'].get(name)}"
        for name in names
        if base["versions"].get(name) != new["versions"].get(name)
    ]
    return {"machine": machine, "clocks": clocks, "versions": versions}


def to_markdown(comparison: Comparison) -> str:
    """A summary line, what the records differ in, and a table, worst first."""
    counts = {verdict: sum(line.verdict == verdict for line in comparison.lines) for verdict in VERDICTS}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    gate = comparison.gate
    text = [
        f"{'Passed' if comparison.passed else 'FAILED'}: {summary}. A row is slower where the {CONFIDENCE:.0%} "
        f"bootstrap interval of new / base ({gate.statistic}) lies wholly above {1 + gate.margin:.3g}.",
        "",
    ]
    if comparison.differences:
        text += [f"The records differ, which was allowed: {'; '.join(comparison.differences)}.", ""]
    text += ["| verdict | row | base | new | new / base |", "| --- | --- | --- | --- | --- |"]
    for line in comparison.lines:
        new = seconds_text(line.new_seconds) if line.new_seconds is not None else line.note
        ratio = "" if line.ratio is None else str(line.ratio)
        text.append(f"| {line.verdict} | {line.title} | {seconds_text(line.base_seconds)} | {new} | {ratio} |")
    return "\n".join(text) + "\n"


def to_junit(comparison: Comparison) -> bytes:
    """One test case a row; slower and lost rows are failures."""
    cases = []
    for line in comparison.lines:
        message = f"{line.verdict}: {line.note}" if line.ratio is None else f"{line.verdict}: new / base {line.ratio}"
        cases.append(Case(line.title, "failure" if line.verdict in FAILING else "passed", message))
    return to_xml("edgeconv bench compare", cases)


def _line(row: Row, base: dict[str, Any], other: Row | None, gate: Gate) -> Line:
    base_seconds = _summary(base, gate.statistic)
    found = None if other is None else lead_series(other)
    if other is None or found is None:
        note = "not measured" if other is None else f"{other['status']}: {other['reason']}"
        return Line(row_title(row), "lost", base_seconds, None, None, note)
    ratio = ratio_interval(base["samples_seconds"], found["samples_seconds"], gate.statistic)
    new_seconds = _summary(found, gate.statistic)
    return Line(row_title(row), judge(ratio, gate.margin), base_seconds, new_seconds, ratio, "")


def _summary(series: dict[str, Any], statistic: str) -> float:
    """The statistic as the record holds it."""
    return float(series[f"{statistic}_seconds"])


def _slowest_clock(record: Record) -> int | None:
    clocks = [row["machine"]["sm_clock_min_mhz"] for row in record["rows"]]
    return min((clock for clock in clocks if clock), default=None)


def _is_slowed(row: Row) -> bool:
    return any(flag.startswith(("throttled", "clock moved")) for flag in row["machine"]["flags"])
