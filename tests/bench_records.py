"""Bench records made without a clock: candidates whose times the test writes down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeconv.bench import candidates, runner
from edgeconv.bench.candidates import Bench, BenchCandidate, MethodCandidate, Ready
from edgeconv.bench.grid import CaseGrid, GridPart, TimingRules
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.watch import Watch
from edgeconv.core.timing import Budget
from edgeconv.hardware.cpu.device import CpuDevice
from edgeconv.hardware.device import Roof
from edgeconv.hardware.versions import installed_versions
from edgeconv.methods.options import Options


def changed(part, **fields):
    """A part of a record with other values, itself and not a copy."""
    for name, value in fields.items():
        setattr(part, name, value)
    return part


ROOF = Roof(copy_bytes_per_second=1e9, fma_flops_per_second=1e9, how="made up")
FEW = TimingRules(budget=Budget(min_samples=5, max_samples=5, time_limit_seconds=1000.0))


class FakeDevice(CpuDevice):
    """A CPU on which every run takes what the candidate at hand says."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds_of: dict[Callable[[], Any], Iterator[float]] = {}
        self.floor_seconds = 1e-3

    def describe(self) -> dict[str, Any]:
        return {"name": "made-up processor", "usable_threads": 2}

    def roof(self) -> Roof:
        return ROOF

    def time_once(self, call, l2_state=None, enqueue_seconds=0.0, renew=None) -> float:
        if renew is not None:
            renew()
        call()
        return next(self.seconds_of[call])

    def floor(self, read_bytes: int, written_bytes: int) -> Callable[[], None]:
        def copy() -> None:
            return None

        self.seconds_of[copy] = cycle([self.floor_seconds])
        return copy


class TimedMethod(MethodCandidate):
    """A method that computes truly and takes the seconds it is told, over and over; a peer has arrays of its own."""

    def __init__(self, label: str, seconds: list[float], name: str = "reference") -> None:
        super().__init__(label, name, "cpu", Options())
        self.seconds = seconds

    def prepare(self, bench: Bench) -> Ready:
        if self.kind == "peer":
            bench = replace(bench, image=bench.image_host.copy(), out=np.empty_like(bench.out))
        ready = super().prepare(bench)
        assert isinstance(bench.device, FakeDevice)
        bench.device.seconds_of[ready.run] = cycle(self.seconds)
        return ready


class Peer(TimedMethod):
    """Another library, as far as a bench goes."""

    kind = "peer"


Trick = Callable[[Bench, Callable[[], None], int], None]
"""What is done in place of a run: with the bench, the run, and how many there were since the set-up."""


class Trickster(TimedMethod):
    """A method that does its trick in place of a run."""

    def __init__(self, label: str, seconds: list[float], trick: Trick) -> None:
        super().__init__(label, seconds)
        self.trick = trick

    def prepare(self, bench: Bench) -> Ready:
        ready = super().prepare(bench)
        right, numbers = ready.run, count()

        def run() -> None:
            self.trick(bench, right, next(numbers))

        assert isinstance(bench.device, FakeDevice)
        bench.device.seconds_of[run] = cycle(self.seconds)
        ready.run = run
        return ready


def off_by_one(bench: Bench, right: Callable[[], None], runs: int) -> None:
    right()
    bench.out[-1, -1, -1] += 1


class WrongMethod(Trickster):
    """A method that is very fast because it gets one sample wrong."""

    def __init__(self, label: str, seconds: list[float]) -> None:
        super().__init__(label, seconds, off_by_one)


class BrokenPeer(Peer):
    """A library that raises an error of its own."""

    def prepare(self, bench: Bench) -> Ready:
        raise np.linalg.LinAlgError("no such\n algorithm")


def grid(*sizes: int, **part: Any) -> CaseGrid:
    """Of one part on the CPU, whose other axes are words."""
    return CaseGrid("test", "made up", (GridPart(sizes=sizes, devices=("cpu",), **part),))


def row_of(record: BenchRecord, name: str) -> BenchRow:
    """The first of a candidate."""
    return next(row for row in record.rows if row.candidate == name)


_versions = cache(installed_versions)


def use(monkeypatch: pytest.MonkeyPatch, *candidates_here: BenchCandidate) -> FakeDevice:
    """Let these compete, on a fake device, in place of the table's methods."""
    device = FakeDevice()
    monkeypatch.setattr(candidates, "get_device", lambda name: device)
    monkeypatch.setattr(runner, "get_device", lambda name: device)
    monkeypatch.setattr(runner, "installed_versions", lambda: dict(_versions()))
    monkeypatch.setattr(runner, "Watch", lambda name: Watch(name, read_cpu=lambda: None))  # others may be at work
    monkeypatch.setattr(runner, "method_candidates", lambda words, name: list(candidates_here))
    return device


def measured(monkeypatch: pytest.MonkeyPatch, *here: BenchCandidate, path: Path | None = None) -> BenchRecord:
    """The record of sizes 8 and 16, stride 1."""
    use(monkeypatch, *here)
    return runner.run(grid(8, 16), FEW, path=path)


_KEPT: dict[tuple[Any, ...], BenchRecord] = {}


def measured_once(*here: TimedMethod) -> BenchRecord:
    """The same record, measured once in a process for candidates that are alike: a copy for each test."""
    alike = tuple((type(one), one.label, one.name, one.kind, *one.seconds) for one in here)
    if alike not in _KEPT:
        with pytest.MonkeyPatch.context() as patch:
            _KEPT[alike] = measured(patch, *here)
    return deepcopy(_KEPT[alike])
