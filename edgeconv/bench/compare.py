"""Two records, or repeated runs of two versions, row by row: same, faster, slower or ambiguous, from the samples.

With a margin of 5 % and [low, high] the 99 % interval of the ratio new / base (intervals.py):

    slower      low  > 1.05             all of the interval is beyond the margin
    faster      high < 1 / 1.05
    same        1 / 1.05 ≤ low and high ≤ 1.05
    unsteady    ambiguous because the new samples are spread far more than the old, while the plain copy beside them is
                as steady as it was: the noise is the candidate's own, and hides what it takes
    ambiguous   the rest: the samples do not tell; more of them might

With several runs a side the statistic of each run is one figure, and the interval tells what changes from run to run as
well. Runs that other processes disturbed are left out, a row that one run of the second side lacks is lost, and none is
unsteady.

A row that was measured before and is wrong, refused or failed now is `lost`; so is one that is not there although
its case and device were measured. A row that was measured beside other processes proves nothing and is ambiguous at
best. Records are refused, unless that is allowed, where machines, clocks, library versions, options or pictures are
unlike, where the second lacks cases of the first, and where nothing was measured on a quiet machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any, Literal, get_args

from edgeconv.bench.intervals import STATISTICS, Ratio, ratio_interval, ratio_of_runs
from edgeconv.bench.record import BenchRecord, BenchRow, unlike_facts, unlike_machines
from edgeconv.bench.watch import CLOCK_TOLERANCE, OTHERS_WORDS
from edgeconv.core.timing import LEAST_SAMPLES
from edgeconv.core.units import share_text
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
    base_seconds: float | None
    new_seconds: float | None
    ratio: Ratio | None
    note: str


@dataclass(frozen=True)
class RecordComparison:
    """Every row that both records have, and what the records differ in."""

    gate: Gate
    lines: tuple[RowComparison, ...]
    differences: tuple[str, ...]
    runs: tuple[int, int] = (1, 1)
    """Records of each side."""

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
    return compare_runs((base,), (new,), gate, allowed)


def compare_runs(
    bases: Sequence[BenchRecord], news: Sequence[BenchRecord], gate: Gate, allowed: tuple[str, ...] = ()
) -> RecordComparison:
    """The same for one run or several of each side. The rows are those that any run of the first side measured."""
    first = bases[0]
    others = [(run, "another of the first") for run in bases[1:]] + [(run, "the second") for run in news]
    each = [differences(first, run, name) for run, name in others]
    found = {kind: list(dict.fromkeys(word for words in each for word in words[kind])) for kind in each[0]}
    found["load"] = [] if _has_quiet_row(bases, news) else ["other processes were at work at every row"]
    refused = {kind: words for kind, words in found.items() if words and kind not in allowed}
    if refused:
        words = "; ".join(f"{kind}: {', '.join(items)}" for kind, items in refused.items())
        raise UsageError(f"These records are not alike ({words}): allow it with --allow {','.join(refused)}.")
    before, after = ([{row.key: row for row in run.rows} for run in side] for side in (bases, news))
    reached = set.intersection(*map(_cases, (*bases, *news)))
    copies = ((row.place, _noise(row)) for row in news[0].rows if row.kind == "copy")
    steady = {place for place, spread in copies if spread is not None and spread <= STEADY_NOISE}
    measured = {row.key: row for run in reversed(bases) for row in _measured(run)}
    lines = [
        _line(
            _with_a_time(run.get(key) for run in before),
            [run.get(key) for run in after],
            gate,
            "load" in allowed,
            row.place in steady,
        )
        for key, row in measured.items()
        if row.place in reached
    ]
    if not lines:
        raise UsageError("These records have no measured row in common: compare runs of the same grid.")
    order = {verdict: index for index, verdict in enumerate(VERDICTS)}
    lines.sort(key=lambda line: order[line.verdict])
    said = tuple(item for items in found.values() for item in items)
    return RecordComparison(gate, tuple(lines), said, (len(bases), len(news)))


def judge(ratio: Ratio, margin: float) -> Verdict:
    """The verdict on a ratio with its interval."""
    slow, fast = 1 + margin, 1 / (1 + margin)
    if ratio.low > slow:
        return "slower"
    if ratio.high < fast:
        return "faster"
    return "same" if fast <= ratio.low and ratio.high <= slow else "ambiguous"


def differences(base: BenchRecord, new: BenchRecord, name: str = "the second") -> dict[Unlike, list[str]]:
    """What two runs differ in, by kind; empty lists where they do not. `name` is what `new` is called."""
    clocks = []
    ours_mhz, theirs_mhz = _slowest_clock(base), _slowest_clock(new)
    if ours_mhz and theirs_mhz and max(ours_mhz, theirs_mhz) > min(ours_mhz, theirs_mhz) * (1 + CLOCK_TOLERANCE):
        clocks.append(f"{ours_mhz} and {theirs_mhz} MHz")
    for words, record in (("the first", base), (name, new)):
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
    return {
        "machine": unlike_machines(base.machine, new.machine),
        "clocks": clocks,
        "versions": unlike_facts(base.versions, new.versions),
        "options": options,
        "pictures": [f"{name} has other pixels" for name in sorted(pictures)],
        "grid": [f"{len(missing)} of {len(wanted)} cases are not in {name}"] if missing else [],
    }


def _has_quiet_row(bases: Sequence[BenchRecord], news: Sequence[BenchRecord]) -> bool:
    """Whether some row was measured undisturbed in a run of each side; True where they share none."""
    shared = _keys(bases) & _keys(news)
    return not shared or bool(shared & _keys(bases, quiet=True) & _keys(news, quiet=True))


def _keys(runs: Iterable[BenchRecord], quiet: bool = False) -> set[tuple[Any, ...]]:
    """Of the rows that any run has measured, or measured undisturbed."""
    return {row.key for run in runs for row in _measured(run) if not (quiet and _is_disturbed(row))}


def _measured(record: BenchRecord) -> list[BenchRow]:
    """The rows of methods and peers that have a time."""
    return [row for row in record.rows if row.kind != "copy" and row.lead_series is not None]


def _cases(record: BenchRecord) -> set[tuple[Any, ...]]:
    return {row.place for row in record.rows}


def _with_a_time(rows: Iterable[BenchRow | None]) -> list[BenchRow]:
    return [row for row in rows if row is not None and row.lead_series is not None]


def _line(
    olds: Sequence[BenchRow], found: Sequence[BenchRow | None], gate: Gate, load_allowed: bool, is_machine_steady: bool
) -> RowComparison:
    row, news = olds[0], _with_a_time(found)
    if len(news) < len(found):
        other = next(other for other in found if other is None or other.lead_series is None)
        note = "not measured" if other is None else f"{other.status}: {other.reason}"
        return RowComparison(row.title, "lost", _middle(olds, gate), None, None, note)
    if not all(_has(run, gate) for run in (*olds, *news)):
        note = f"no {gate.statistic} of fewer than {LEAST_SAMPLES} samples: take more, or compare by the median"
        return RowComparison(row.title, "ambiguous", None, None, None, note)
    if len(olds) == len(found) == 1:
        return _line_of_two(row, news[0], gate, load_allowed, is_machine_steady)
    quiet = [[run for run in side if not _is_disturbed(run)] for side in (olds, news)]
    if not load_allowed and all(quiet):
        olds, news = quiet
    ratio = ratio_of_runs(*([_summary(_series(run), gate.statistic) for run in side] for side in (olds, news)))
    verdict, note = judge(ratio, gate.margin), ""
    if not load_allowed and not all(quiet):
        verdict, note = "ambiguous", "other processes were at work"
    return RowComparison(row.title, verdict, _middle(olds, gate), _middle(news, gate), ratio, note)


def _line_of_two(
    row: BenchRow, other: BenchRow, gate: Gate, load_allowed: bool, is_machine_steady: bool
) -> RowComparison:
    base, found = _series(row), _series(other)
    ratio = ratio_interval(base.samples_seconds, found.samples_seconds, gate.statistic)
    verdict, note = judge(ratio, gate.margin), ""
    disturbed = _is_disturbed(row) or _is_disturbed(other) or _is_slowed(other)
    if not load_allowed and verdict in ("slower", "faster") and (_is_disturbed(row) or _is_disturbed(other)):
        verdict, note = "ambiguous", "other processes were at work"
    own, before = _noise(other), _noise(row)
    if verdict == "ambiguous" and not disturbed and is_machine_steady and own is not None and before is not None:
        spreads = f"its times spread by {share_text(own)}, before by {share_text(before)}, and the copy's do not"
        is_unsteady = own > max(UNSTEADY_NOISE, UNSTEADY_TIMES * before)
        verdict, note = ("unsteady", spreads) if is_unsteady else (verdict, note)
    seconds = _summary(base, gate.statistic), _summary(found, gate.statistic)
    return RowComparison(row.title, verdict, *seconds, ratio, note)


def _series(row: BenchRow) -> SeriesPart:
    series = row.lead_series
    assert series is not None  # it is one of _with_a_time
    return series


def _middle(rows: Sequence[BenchRow], gate: Gate) -> float | None:
    """The geometric mean over runs of what the records hold; None where one of them has too few samples for it."""
    if not all(_has(row, gate) for row in rows):
        return None
    values = [_summary(_series(row), gate.statistic) for row in rows]
    return geometric_mean(values) if len(values) > 1 and min(values) > 0 else min(values)


def _noise(row: BenchRow) -> float | None:
    """(p90 − p10) / median of the series that leads; None without one, or of too few samples."""
    series = row.lead_series
    spread = None if series is None else series.spread_seconds
    if series is None or spread is None:
        return None
    return (spread[1] - spread[0]) / series.median_seconds if series.median_seconds else 0.0


def _has(row: BenchRow, gate: Gate) -> bool:
    """Whether its series has the statistic: no p10 and p90 of a few samples."""
    return gate.statistic == "median" or _series(row).spread_seconds is not None


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
