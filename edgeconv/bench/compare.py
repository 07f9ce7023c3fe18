"""Two records, row by row: same, faster, slower or ambiguous, from the samples and not from two numbers.

With a margin of 5 % and [low, high] the 99 % interval of the ratio new / base (intervals.py):

    slower      low  > 1.05             all of the interval is beyond the margin
    faster      high < 1 / 1.05
    same        1 / 1.05 ≤ low and high ≤ 1.05
    unsteady    ambiguous because the new samples are spread far more than the old, while the plain copy beside them is
                as steady as it was: the noise is the candidate's own, and hides what it takes
    ambiguous   the rest: the samples do not tell; more of them might

A row that was measured before and is wrong, refused or failed now is `lost`; so is one that is not there although
its case and device were measured. A row that was measured beside other processes proves nothing and is ambiguous at
best. Records are refused, unless that is allowed, where machines, clocks, library versions, options or pictures are
unlike, where the second lacks cases of the first, and where nothing was measured on a quiet machine.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from edgeconv.bench.intervals import STATISTICS, Ratio, ratio_interval
from edgeconv.bench.record import BenchRecord, BenchRow, unlike_facts, unlike_machines
from edgeconv.bench.watch import CLOCK_TOLERANCE, OTHERS_WORDS
from edgeconv.errors import UsageError
from edgeconv.run.report import SeriesPart

Verdict = Literal["slower", "lost", "unsteady", "ambiguous", "same", "faster"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
FAILING: tuple[Verdict, ...] = ("slower", "lost", "unsteady")
UNSTEADY_NOISE, UNSTEADY_TIMES = 0.25, 5.0
"""Noise, (p90 − p10) / median, of a candidate that is unsteady: more than that, and than its earlier one so often."""
STEADY_NOISE = 0.10
"""Noise of a copy on a machine that is steady, at most."""

Unlike = Literal["machine", "clocks", "versions", "options", "pictures", "grid", "load"]
UNLIKES: tuple[Unlike, ...] = get_args(Unlike)


@dataclass(frozen=True)
class Gate:
    """`median:5%`: which statistic, and how much slower is too slow."""

    statistic: str = "median"
    margin: float = 0.05

    def __str__(self) -> str:
        return f"{self.statistic}:{self.margin:.3g}"


@dataclass(frozen=True)
class RowComparison:
    """One row of both records."""

    title: str
    verdict: Verdict
    base_seconds: float
    new_seconds: float | None
    ratio: Ratio | None
    note: str


@dataclass(frozen=True)
class RecordComparison:
    """Every row that both records have, and what the records differ in."""

    gate: Gate
    lines: tuple[RowComparison, ...]
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


def compare(base: BenchRecord, new: BenchRecord, gate: Gate, allowed: tuple[str, ...] = ()) -> RecordComparison:
    """Compare row by row; raises UsageError for records that are not alike in what `allowed` does not name."""
    found = differences(base, new)
    refused = {kind: words for kind, words in found.items() if words and kind not in allowed}
    if refused:
        words = "; ".join(f"{kind}: {', '.join(items)}" for kind, items in refused.items())
        raise UsageError(f"These records are not alike ({words}): allow it with --allow {','.join(refused)}.")
    rows = {row.key: row for row in new.rows}
    reached = _cases(new)
    steady = {row.place for row in new.rows if row.kind == "copy" and _noise(row) <= STEADY_NOISE}
    lines = [
        _line(row, rows.get(row.key), gate, "load" in allowed, row.place in steady)
        for row in _measured(base)
        if row.place in reached
    ]
    if not lines:
        raise UsageError("These records have no measured row in common: compare runs of the same grid.")
    order = {verdict: index for index, verdict in enumerate(VERDICTS)}
    lines.sort(key=lambda line: order[line.verdict])
    return RecordComparison(gate, tuple(lines), tuple(item for items in found.values() for item in items))


def judge(ratio: Ratio, margin: float) -> Verdict:
    """The verdict on a ratio with its interval."""
    slow, fast = 1 + margin, 1 / (1 + margin)
    if ratio.low > slow:
        return "slower"
    if ratio.high < fast:
        return "faster"
    return "same" if fast <= ratio.low and ratio.high <= slow else "ambiguous"


def differences(base: BenchRecord, new: BenchRecord) -> dict[Unlike, list[str]]:
    """What makes a comparison doubtful, by kind; empty lists where nothing does."""
    clocks = []
    ours_mhz, theirs_mhz = _slowest_clock(base), _slowest_clock(new)
    if ours_mhz and theirs_mhz and max(ours_mhz, theirs_mhz) > min(ours_mhz, theirs_mhz) * (1 + CLOCK_TOLERANCE):
        clocks.append(f"{ours_mhz} and {theirs_mhz} MHz")
    for words, record in (("the first", base), ("the second", new)):
        if any(_is_slowed(row) for row in record.rows):
            clocks.append(f"{words} was measured on a GPU that was throttled or whose clock moved")
    theirs = {row.key: row for row in new.rows}
    pairs = [(row, theirs[row.key]) for row in _measured(base) if row.key in theirs]
    states = {(a.lead_l2_state, b.lead_l2_state) for a, b in pairs if b.lead_l2_state is not None}
    options = unlike_facts(asdict(base.options), asdict(new.options))
    options += [f"L2 {ours} and {other}" for ours, other in sorted(states) if ours != other]
    pictures = {str(a.case.picture) for a, b in pairs if a.case.input_sha256 != b.case.input_sha256}
    wanted = _cases(base)
    missing = wanted - _cases(new)
    quiet = not pairs or any(not _is_disturbed(a) and not _is_disturbed(b) for a, b in pairs)
    return {
        "machine": unlike_machines(base.machine, new.machine),
        "clocks": clocks,
        "versions": unlike_facts(base.versions, new.versions),
        "options": options,
        "pictures": [f"{name} has other pixels" for name in sorted(pictures)],
        "grid": [f"{len(missing)} of {len(wanted)} cases are not in the second"] if missing else [],
        "load": [] if quiet else ["other processes were at work at every row"],
    }


def _measured(record: BenchRecord) -> list[BenchRow]:
    """The rows of methods and peers that have a time."""
    return [row for row in record.rows if row.kind != "copy" and row.lead_series is not None]


def _cases(record: BenchRecord) -> set[tuple[Any, ...]]:
    return {row.place for row in record.rows}


def _line(
    row: BenchRow, other: BenchRow | None, gate: Gate, load_allowed: bool, is_machine_steady: bool
) -> RowComparison:
    base, found = row.lead_series, None if other is None else other.lead_series
    assert base is not None  # it is one of _measured
    base_seconds = _summary(base, gate.statistic)
    if other is None or found is None:
        note = "not measured" if other is None else f"{other.status}: {other.reason}"
        return RowComparison(row.title, "lost", base_seconds, None, None, note)
    ratio = ratio_interval(base.samples_seconds, found.samples_seconds, gate.statistic)
    new_seconds = _summary(found, gate.statistic)
    verdict, note = judge(ratio, gate.margin), ""
    disturbed = _is_disturbed(row) or _is_disturbed(other) or _is_slowed(other)
    if not load_allowed and verdict in ("slower", "faster") and (_is_disturbed(row) or _is_disturbed(other)):
        verdict, note = "ambiguous", "other processes were at work"
    own = _noise(other)
    if verdict == "ambiguous" and not disturbed and is_machine_steady and own > UNSTEADY_NOISE:
        before = _noise(row)
        if own > UNSTEADY_TIMES * before:
            verdict, note = "unsteady", f"its times spread by {own:.0%}, before by {before:.0%}, and the copy's do not"
    return RowComparison(row.title, verdict, base_seconds, new_seconds, ratio, note)


def _noise(row: BenchRow) -> float:
    """(p90 − p10) / median of the series that leads; 0 without one."""
    series = row.lead_series
    return (
        0.0
        if series is None or not series.median_seconds
        else ((series.p90_seconds - series.p10_seconds) / series.median_seconds)
    )


def _summary(series: SeriesPart, statistic: str) -> float:
    """The statistic as the record holds it."""
    return float(getattr(series, f"{statistic}_seconds"))


def _slowest_clock(record: BenchRecord) -> int | None:
    clocks = [row.machine.sm_clock_min_mhz for row in record.rows]
    return min((clock for clock in clocks if clock), default=None)


def _is_slowed(row: BenchRow) -> bool:
    return any(flag.startswith(("throttled", "clock moved")) for flag in row.machine.flags)


def _is_disturbed(row: BenchRow) -> bool:
    return any(flag.startswith(OTHERS_WORDS) for flag in row.machine.flags)
