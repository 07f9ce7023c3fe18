"""A whole grid, measured: what competes where, progress, a file that is whole at every moment, and going on later.

The record is written after each case that took a while and at the end, also when the run is stopped: its `complete`
says whether anything is missing. Resuming takes over the rows of cases that are whole, provided that grid, rules and
machine are the same.
"""

from __future__ import annotations

import gc
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.bench import metrics
from edgeconv.bench.candidates import BenchCandidate, CopyCandidate, method_candidates
from edgeconv.bench.grid import Case, CaseGrid, GridPart
from edgeconv.bench.measure import Place, TimingRules, measure, pixels_for, request_for
from edgeconv.bench.peers import peer_candidates
from edgeconv.bench.record import (
    KIND,
    BenchRecord,
    BenchRow,
    LeftOut,
    read_record,
    to_json,
    unlike_facts,
    unlike_machines,
)
from edgeconv.bench.surface import cases_of, drawn_case
from edgeconv.bench.watch import Watch, gpu_reader
from edgeconv.core.choices import DeviceName
from edgeconv.core.cost import Roof
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import read_image
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods.options import Options
from edgeconv.run.report import DeviceFacts, header, sha256_of
from edgeconv.runtime.devices import get_device

SAVE_EVERY_SECONDS = 10.0
MPIXEL = 10**6
ABOVE = 1.1
"""A share of floor or roofline that wants an explanation."""
ABOVE_WORDS = {
    "roofline_share": "lie above the measured roof: the method shares work or computes in less than float32, or "
    "something else was at work while the roof was measured",
    "floor_share": "are a little below the floor, which was slow to start or disturbed there: the share says little",
}
SEED_BITS = 53
"""As many as a number in JSON holds exactly everywhere."""
FIXED_COST_PIXELS = MPIXEL
"""What a case costs beside its pixels, as so many pixels: only for the guess at the time left."""


@dataclass
class BenchRun:
    """What is to be measured, and where it is stored."""

    grid: CaseGrid
    rules: TimingRules = field(default_factory=TimingRules)
    options: Options = field(default_factory=Options)
    pictures: tuple[str, ...] = ()
    read_rules: ReadRules = DEFAULT_RULES
    """Which pictures are refused."""
    path: Path | None = None
    """The record's file; None keeps it in memory."""
    resume: bool = False
    stop_after_seconds: float | None = None
    """Begin no more cases after so long; what is missing is there for `resume`."""
    command: tuple[str, ...] = ()


def run(
    plan: BenchRun,
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
    told: Callable[[Sequence[BenchRow]], None] = lambda rows: None,
) -> BenchRecord:
    """Measure the grid and return the record; raises EdgeconvError for what cannot be asked for.

    `progress` is called with the Mpixels done and in all, and the case at hand; `told` with the rows of each case on
    each device as soon as they are measured. An interrupt (KeyboardInterrupt or
    SystemExit) saves what was measured and goes on upwards.
    """
    todo = cases_of(plan.grid, plan.pictures)
    for case, _ in todo:  # what cannot be asked for is refused before anything is measured
        request_for(case, plan.rules)
    record = _new_record(plan)
    done = _take_over(plan, record) if plan.resume else set()
    places = _Places(plan, record)
    found = [
        places.of(part) for part in plan.grid.parts
    ]  # a word without meaning is refused before anything is written
    if not any(found):
        reasons = sorted({f"{entry.name}: {entry.reason}" for entry in record.left_out})
        raise UnavailableError(f"Nothing of this grid can run here ({'; '.join(reasons) or 'it names no candidate'}).")
    pictures: dict[str | None, NDArray[Any]] = {
        name: read_image(name, plan.read_rules).pixels for name in plan.pictures
    }
    started, saved = time.perf_counter(), time.perf_counter()
    costs = [case.size**2 + FIXED_COST_PIXELS for case, _ in todo]
    spent, earlier_seconds = 0, record.wall_seconds

    def keep() -> None:
        record.wall_seconds = earlier_seconds + time.perf_counter() - started
        _save(plan, record)

    try:
        for index, (case, part) in enumerate(todo):
            if plan.stop_after_seconds is not None and time.perf_counter() - started > plan.stop_after_seconds:
                break
            drawn = drawn_case(plan.grid, case)
            pixels = pixels_for(case, pictures.get(case.picture)) if drawn is None else drawn.pixels()
            rules = plan.rules if drawn is None else drawn.rules(plan.rules)
            for place in places.of(part):
                if (case, place.device) in done:
                    _refuse_other_pixels(record, case, pixels)
                    continue
                progress(spent // MPIXEL, sum(costs) // MPIXEL, f"{case} on {place.device}")
                first = not any(entry.named == case for entry in record.files)
                assert record.seed is not None  # a record that is measured has one, or took it over
                measured = measure(case, pixels, place, rules, with_files=first, seed=record.seed)
                record.rows += measured.rows
                told(measured.rows)
                if measured.files is not None:
                    record.files.append(measured.files)
            gc.collect()  # pictures that hang in cycles of closures would pile up on a small machine
            spent += costs[index]
            if time.perf_counter() - saved > SAVE_EVERY_SECONDS:
                keep()
                saved = time.perf_counter()
        else:
            record.complete = True
    except BaseException:
        if record.rows:  # an earlier record is worth more than one of nothing
            keep()
        raise
    keep()
    return record


class _Places:
    """Candidates, roof and watch of each device, looked up once per part."""

    def __init__(self, plan: BenchRun, record: BenchRecord) -> None:
        self._plan, self._record = plan, record
        self._known: dict[tuple[GridPart, DeviceName], Place] = {}
        self._watches: dict[DeviceName, Watch] = {}

    def of(self, part: GridPart) -> list[Place]:
        """The devices of a part that are there; why another is not goes to the record's `left_out`."""
        found = []
        for device in part.devices:
            reason = cuda_unavailable_reason() if device == "cuda" else None
            if reason is not None:
                self._leave_out("device", device, "cuda", reason)
            else:
                found.append(self._place(part, "cuda" if device == "cuda" else "cpu"))
        return [place for place in found if len(place.candidates) > 1]

    def _place(self, part: GridPart, device: DeviceName) -> Place:
        if (part, device) not in self._known:
            candidates: list[BenchCandidate] = [CopyCandidate(device)]
            candidates += method_candidates(part.methods, device, self._plan.options)
            peers, missing = peer_candidates(part.peers, device, self._plan.options)
            for name, why in missing:
                self._leave_out("peer", name, device, why)
            for peer in peers:
                earlier = self._record.versions.setdefault(peer.name, peer.version)
                if earlier != peer.version:
                    raise UsageError(f"The record was measured with {peer.name} {earlier}, and here is {peer.version}.")
            self._known[part, device] = Place(device, (*candidates, *peers), self._roof(device), self._watch(device))
        return self._known[part, device]

    def _roof(self, device: DeviceName) -> Roof:
        roofs = self._record.roofs
        if device not in roofs:
            processor = get_device(device)
            self._record.machine[device] = DeviceFacts(**processor.describe())
            roofs[device] = processor.roof()
        return roofs[device]

    def _watch(self, device: DeviceName) -> Watch:
        if device not in self._watches:
            self._watches[device] = Watch(device, gpu_reader()) if device == "cuda" else Watch(device)
        return self._watches[device]

    def _leave_out(self, kind: Literal["device", "peer"], name: str, device: DeviceName, reason: str) -> None:
        entry = LeftOut(kind=kind, name=name, device=device, reason=reason)
        if entry not in self._record.left_out:
            self._record.left_out.append(entry)


def _new_record(plan: BenchRun) -> BenchRecord:
    return BenchRecord(
        **header(),
        kind=KIND,
        command=list(plan.command),
        complete=False,
        wall_seconds=0.0,
        grid=plan.grid,
        pictures=list(plan.pictures),
        rules=plan.rules,
        options=plan.options,
        machine={},
        versions=installed_versions(),
        roofs={},
        formulas=dict(metrics.FORMULAS),
        warnings=[],
        left_out=[],
        files=[],
        rows=[],
        seed=secrets.randbits(SEED_BITS),
    )


def _take_over(plan: BenchRun, record: BenchRecord) -> set[tuple[Case, DeviceName]]:
    """Rows of an earlier, unfinished record, put into the new one; the cases that need not be measured again."""
    if plan.path is None or not plan.path.exists():
        return set()
    earlier = read_record(plan.path)
    for name in ("grid", "rules", "options", "pictures"):
        if getattr(earlier, name) != getattr(record, name):
            raise UsageError(
                f"'{plan.path}' was measured with another {name}: leave --resume out, or choose another -o."
            )
    here = {device: DeviceFacts(**get_device(device).describe()) for device in earlier.machine}
    unlike = unlike_machines(earlier.machine, here)
    if unlike:
        raise UsageError(f"'{plan.path}' was measured on another machine ({', '.join(unlike)}).")
    there = {name: earlier.versions.get(name) for name in record.versions}
    unlike = unlike_facts({"edgeconv": earlier.edgeconv_version, **there}, {"edgeconv": __version__, **record.versions})
    if unlike:
        raise UsageError(f"'{plan.path}' was measured with other versions ({', '.join(unlike)}).")
    for name in ("created_utc", "wall_seconds", "machine", "versions", "roofs", "files", "rows"):
        setattr(record, name, getattr(earlier, name))
    if earlier.seed is not None:
        record.seed = earlier.seed
    return {(row.case.named, row.device) for row in earlier.rows}


def _refuse_other_pixels(record: BenchRecord, case: Case, pixels: NDArray[Any]) -> None:
    """A picture that was changed between two parts of a record would be two under one name."""
    if case.picture is None:
        return
    found = sha256_of(pixels)
    for row in record.rows:
        if row.case.named == case and row.case.input_sha256 != found:
            raise UsageError(f"'{case.picture}' is no longer what the record measured: leave --resume out.")


def _save(plan: BenchRun, record: BenchRecord) -> None:
    record.warnings = _warnings(record)
    if plan.path is not None:
        write_bytes_atomically(plan.path, to_json(record))


def _warnings(record: BenchRecord) -> list[str]:
    """What a reader must know before any figure: a sentence each."""
    rows = record.rows
    lines = []
    for row in rows:
        if row.status == "disqualified":
            lines.append(f"{row.title} is disqualified: {row.reason}")
    for status, words in (("wrong", "gave a wrong result and got no time"), ("failed", "failed")):
        names = sorted({f"{row.candidate} on {row.device}" for row in rows if row.status == status})
        if names:
            lines.append(f"{', '.join(names)} {words} in {sum(row.status == status for row in rows)} rows")
    for share, words in ABOVE_WORDS.items():
        above = sum(
            (getattr(found, share) or 0) > ABOVE
            for row in rows
            if row.kind != "copy"  # which computes nothing, and is its own floor
            for found in row.metrics.values()
        )
        if above:
            lines.append(f"{above} times {words}")
    flagged: dict[str, int] = {}
    for row in rows:
        for flag in row.machine.flags:
            kind = flag.partition(":")[0] if ":" in flag else "other processes used the CPU"
            flagged[kind] = flagged.get(kind, 0) + 1
    lines += [f"{count} rows are flagged: {flag}" for flag, count in flagged.items()]
    return lines
