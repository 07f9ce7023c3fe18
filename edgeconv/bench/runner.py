"""A whole grid, measured: what competes where, progress, a file that is whole at every moment, and going on later.

The record is written after each case that took a while and at the end, also when the run is stopped: its `complete`
says whether anything is missing. Resuming takes over the rows of cases that are whole, provided that nothing changed
what they were measured with.
"""

from __future__ import annotations

import gc
import math
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from edgeconv.api.figures import DeviceFacts
from edgeconv.bench.candidates import BenchCandidate, CopyCandidate, method_candidates
from edgeconv.bench.grid import CaseGrid, GridPart, TimingRules
from edgeconv.bench.measure import measure_case, request_for
from edgeconv.bench.peers import peer_candidates
from edgeconv.bench.record import FORMULAS, KIND, BenchRecord, BenchRow, LeftOut
from edgeconv.bench.surface import cases_of
from edgeconv.bench.watch import Watch
from edgeconv.core.choices import DeviceName
from edgeconv.core.records import header, to_json
from edgeconv.core.text import counted
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.atomic import write_bytes_atomically
from edgeconv.io.records import read_record

SAVE_EVERY_SECONDS = 10.0
ABOVE = 1.1
"""A share of the roofline that wants an explanation."""
SEED_BITS = 53
"""As many as a number in JSON holds exactly everywhere."""
ASKED = ("grid", "rules")
MACHINE_FACTS = ("name", "machine", "usable_threads", "governor", "compute_capability", "multiprocessors")
"""What was asked for, and what changes a time: a record that is resumed has the same."""


Candidates = dict[DeviceName, list[BenchCandidate]]
"""What competes, by device."""


def run(
    grid: CaseGrid,
    rules: TimingRules,
    path: Path | None = None,
    resume: bool = False,
    stop_after_seconds: float | None = None,
    command: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
    told: Callable[[Sequence[BenchRow]], None] = lambda rows: None,
) -> BenchRecord:
    """Measure the grid and return the record, which is stored at `path`; raises EdgeconvError.

    No case is begun after `stop_after_seconds`; what is missing is there for `resume`, with the same `path`.
    `progress` is called with the cases done and in all, and the case at hand; `told` with the rows of each case on
    each device as soon as they are measured. An interrupt (KeyboardInterrupt or SystemExit) saves what was measured
    and goes on upwards.
    """
    todo = cases_of(grid)
    for case, _ in todo:  # what cannot be asked for is refused before anything is measured
        request_for(case, case.drawn or rules)
    record, here = _begin(grid, rules, command)
    if resume and path is not None and path.exists():
        _take_over(path, record)
    record.roofs = record.roofs or {device: get_device(device).roof() for device in record.machine}
    todo = [(case, part) for case, part in todo if here[part]]
    done = {(row.case.named, row.device) for row in record.rows}
    earlier_seconds, started = record.wall_seconds, perf_counter()
    until = math.inf if stop_after_seconds is None else started + stop_after_seconds
    saved = started

    def keep() -> None:
        record.wall_seconds = earlier_seconds + perf_counter() - started
        record.warnings = _warnings(record.rows)
        if path is not None:
            write_bytes_atomically(path, to_json(record))

    try:
        for number, (case, part) in enumerate(todo):
            if perf_counter() > until:
                break
            for device, candidates in here[part].items():
                if (case, device) in done:
                    continue
                progress(number, len(todo), f"{case} on {device}")
                rows = measure_case(case, candidates, rules, record.roofs[device], Watch(device), record.seed)
                record.rows += rows
                told(rows)
            gc.collect()  # pictures that hang in cycles of closures would pile up on a small machine
            if perf_counter() - saved > SAVE_EVERY_SECONDS:
                keep()
                saved = perf_counter()
        else:
            record.complete = True
    except BaseException:
        if record.rows:  # an earlier record is worth more than one of nothing
            keep()
        raise
    keep()
    return record


def _begin(
    grid: CaseGrid, rules: TimingRules, command: Sequence[str]
) -> tuple[BenchRecord, dict[GridPart, Candidates]]:
    """The record before the first case, and what competes in each part."""
    versions = installed_versions()
    left_out: list[LeftOut] = []
    here = {part: _candidates(part, versions, left_out) for part in grid.parts}
    if not any(here.values()):
        reasons = sorted({f"{entry.name}: {entry.reason}" for entry in left_out})
        raise UnavailableError(f"Nothing of this grid can run here ({'; '.join(reasons) or 'it names no candidate'}).")
    devices = {device: get_device(device) for of_part in here.values() for device in of_part}
    record = BenchRecord(
        **header(),
        kind=KIND,
        command=list(command),
        complete=False,
        wall_seconds=0.0,
        grid=grid,
        rules=rules,
        machine={name: DeviceFacts(**device.describe()) for name, device in devices.items()},
        versions=versions,
        roofs={},
        formulas=dict(FORMULAS),
        warnings=[],
        left_out=left_out,
        rows=[],
        seed=secrets.randbits(SEED_BITS),
    )
    return record, here


def _candidates(part: GridPart, versions: dict[str, str], left_out: list[LeftOut]) -> Candidates:
    """What competes in a part; versions of its peers, and who is not there and why, are added to what is given."""
    found: Candidates = {}
    absent = []
    for word in part.devices:
        device: DeviceName = "cuda" if word == "cuda" else "cpu"
        if device == "cuda" and (reason := cuda_unavailable_reason()) is not None:
            absent.append(LeftOut("device", device, device, reason))
            continue
        methods = method_candidates(part.methods, device)
        peers, missing = peer_candidates(part.peers, device)
        versions |= {peer.name: peer.version for peer in peers}
        absent += [LeftOut("peer", name, device, why) for name, why in missing.items()]
        if methods or peers:
            found[device] = [CopyCandidate(device), *methods, *peers]
    left_out += [entry for entry in absent if entry not in left_out]
    return found


def _take_over(path: Path, record: BenchRecord) -> None:
    """Put the rows of an earlier record into a new one; raises UsageError where they do not belong there."""
    earlier: BenchRecord = read_record(path, {KIND: BenchRecord})
    there, here = _measured_with(earlier), _measured_with(record)
    for name in there | here:
        was, now = there.get(name), here.get(name)
        if was != now:
            both = "" if name in ASKED else f" ({was}, and here it is {now})"
            raise UsageError(f"'{path}' was measured with another {name}{both}: leave --resume out.")
    for name in ("created_utc", "wall_seconds", "roofs", "rows", "seed"):
        setattr(record, name, getattr(earlier, name))


def _measured_with(record: BenchRecord) -> dict[str, Any]:
    """What rows of one record have in common, by the word for it."""
    found: dict[str, Any] = {name: getattr(record, name) for name in ASKED}
    found |= {"edgeconv": record.edgeconv_version, **record.versions}
    for device, facts in record.machine.items():
        found |= {f"{device} {name}": getattr(facts, name) for name in MACHINE_FACTS}
    return found


def _warnings(rows: Sequence[BenchRow]) -> list[str]:
    """What a reader must know before any figure: a sentence each."""
    lines = [f"{row.title} is disqualified: {row.reason}" for row in rows if row.status == "disqualified"]
    for status, words in (("wrong", "gave a wrong result and got no time"), ("failed", "failed")):
        titles = [f"{row.candidate} on {row.device}" for row in rows if row.status == status]
        if titles:
            lines.append(f"{', '.join(sorted(set(titles)))} {words} in {counted(len(titles), 'row')}")
    shares = [found.roofline_share or 0 for row in rows if row.kind != "copy" for found in row.metrics.values()]
    above = sum(share > ABOVE for share in shares)
    if above:
        lines.append(
            f"{counted(above, 'timing')} above the measured roof: the method shares work or computes in less than "
            "float32, or something else was at work while the roof, or the floor of the case, was measured"
        )
    flags = Counter(flag.partition(": ")[0] for row in rows for flag in row.machine.flags)
    return lines + [f"flagged in {counted(count, 'row')}: {flag}" for flag, count in flags.items()]
