"""The referee's parts by themselves; whole attacks stand in test_bench_attackers.py."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, cycle, product, repeat
from typing import Any

import numpy as np
import pytest
from attackers.edgeconv_attackers import ATTACKS, Trick
from bench_records import FEW, FakeDevice, TimedMethod, grid, measured, use
from selection import pairs_then_slow

from edgeconv.bench import runner
from edgeconv.bench.candidates import Bench, Ready, share
from edgeconv.bench.grid import CaseGrid, GridPart
from edgeconv.bench.record import BenchRecord, BenchRow
from edgeconv.bench.referee import surroundings, trials
from edgeconv.bench.referee.faults import FaultError
from edgeconv.bench.referee.floors import has_floor
from edgeconv.bench.referee.pictures import SHARE_OF_CHECK, Patch, TimedPictures, draw_patch
from edgeconv.bench.referee.surroundings import Surroundings, expect_clocks_agree, expect_nothing_replaced
from edgeconv.bench.referee.trials import Trials
from edgeconv.core.noise import noise_pixels
from edgeconv.core.problem import INPUT_DTYPES, Problem
from edgeconv.core.request import make_request
from edgeconv.core.timing import Budget
from edgeconv.methods import find, reference
from edgeconv.methods.options import Options
from edgeconv.runtime.devices import get_device


def bench_of(height: int, width: int, dtype: str = "float32", **words: Any) -> Bench:
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 255, (height, width, 3)).astype(dtype)
    return share("cpu", make_request(**words), pixels)


class LateLiar(TimedMethod):
    """A method that is right until it has run often enough to be timed."""

    kind = "method"

    def prepare(self, bench: Bench) -> Ready:
        ready = super().prepare(bench)
        right, runs = ready.run, iter(range(5))

        def run() -> None:
            right()
            if next(runs, None) is None:
                bench.out[...] = 0.5

        assert isinstance(bench.device, FakeDevice)
        bench.device.seconds_of[run] = cycle(self._seconds)
        ready.run = run
        return ready


class PeerOfOnePicture(TimedMethod):
    """A peer that is right for the first picture that it was set up with."""

    kind = "peer"
    known: Any = None

    def prepare(self, bench: Bench) -> Ready:
        if self.known is None or self.known.shape != bench.image_host.shape:
            self.known = bench.image_host
        return super().prepare(replace(bench, image_host=self.known))


def row_of(record: BenchRecord, name: str) -> BenchRow:
    return next(row for row in record.rows if row.candidate == name)


@pytest.mark.parametrize("liar", [LateLiar("liar", [1e-6]), PeerOfOnePicture("liar", [1e-6])], ids=["method", "peer"])
def test_what_is_wrong_when_it_is_timed_loses_its_times(monkeypatch: pytest.MonkeyPatch, liar: TimedMethod) -> None:
    record = measured(monkeypatch, TimedMethod("honest", [2e-3]), liar)
    row = row_of(record, "liar")
    assert (row.status, row.fault, row.timings, row.metrics) == ("disqualified", "wrong when timed", {}, {}), row.reason
    assert row_of(record, "honest").status == "measured"
    assert any(
        line.startswith("liar on cpu · 8 s1 float32 random mix is disqualified: wrong") for line in record.warnings
    )


@pytest.mark.parametrize(("seconds", "status"), [(0.81e-3, "measured"), (0.79e-3, "disqualified")])
def test_a_time_clearly_below_the_floor_is_impossible(monkeypatch, seconds: float, status: str) -> None:
    """The floor takes 1 ms here."""
    row = row_of(measured(monkeypatch, TimedMethod("fast", [seconds])), "fast")
    assert row.status == status
    if status == "disqualified":
        assert (row.fault, row.timings) == ("impossible time", {})
        assert row.reason.endswith("(790 µs, and reading and writing the bytes alone takes 1 ms)")


def test_a_floor_that_was_disturbed_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the shape that is chosen at first it takes 1 ms where 0.5 would do; the next one does."""
    floor, times = FakeDevice.floor, chain([1e-3], repeat(0.5e-3))

    def disturbed(self, read_bytes: int, written_bytes: int):
        call = floor(self, read_bytes, written_bytes)
        self.seconds_of[call] = repeat(next(times))
        return call

    monkeypatch.setattr(FakeDevice, "floor", disturbed)
    record = measured(monkeypatch, TimedMethod("fast", [0.6e-3]))
    assert row_of(record, "fast").status == "measured"
    assert row_of(record, "copy").timings["warm"].median_seconds == 0.5e-3


def test_a_verdict_stands_on_more_than_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run has time for one sample, and others took the cores in two of three of the floor's."""
    floor = FakeDevice.floor

    def disturbed(self, read_bytes: int, written_bytes: int):
        call = floor(self, read_bytes, written_bytes)
        self.seconds_of[call] = cycle([1e-3, 1e-3, 0.5e-3])
        return call

    monkeypatch.setattr(FakeDevice, "floor", disturbed)
    use(monkeypatch, TimedMethod("fast", [0.6e-3]), TimedMethod("impossible", [0.3e-3]))
    one = replace(FEW, budget=Budget(min_samples=1, max_samples=1))
    record = runner.run(runner.BenchRun(grid(8), one))
    assert row_of(record, "fast").status == "measured"
    assert row_of(record, "impossible").fault == "impossible time"


HAS_FLOOR = [
    ("identity", 1, True),
    ("identity", 2, False),
    ("sobel-x", 2, True),
    ("sobel-y", 2, False),
    ("laplacian4", 3, True),
]


@pytest.mark.parametrize(("filter", "stride", "has"), HAS_FLOOR)
def test_rows_under_zeros_need_not_be_read(filter: str, stride: int, has: bool) -> None:
    assert has_floor(bench_of(8, 8, filter=filter, stride=stride).problem) is has


def test_each_run_has_a_seed_of_its_own_and_resuming_keeps_it(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    path = tmp_path / "bench.json"
    first = measured(monkeypatch, TimedMethod("honest", [2e-3]), path=path)
    second = measured(monkeypatch, TimedMethod("honest", [2e-3]))
    assert first.seed is not None
    assert first.seed != second.seed
    resumed = runner.run(runner.BenchRun(first.grid, FEW, path=path, resume=True))
    assert resumed.seed == first.seed


@pytest.mark.parametrize(
    ("dtype", "size", "stride", "channels"),
    pairs_then_slow([*product(INPUT_DTYPES, (1, 5, 33), (1, 3, 5), ("mix", "each"))]),
)
def test_honest_methods_are_accepted_at_every_shape(
    monkeypatch: pytest.MonkeyPatch, dtype: str, size: int, stride: int, channels: str
) -> None:
    """Sides below a window, strides above it, both ways to sum; the times are made up."""
    monkeypatch.setattr(surroundings, "share_at_rest", lambda seconds: 0.0)
    methods = [TimedMethod(name, [2e-3], name) for name in ("reference", "opencv", "sliding", "im2col")]
    use(monkeypatch, *methods)
    part = GridPart(
        sizes=(size,), strides=(stride,), dtypes=(dtype,), filters=("sobel",), channels=(channels,), devices=("cpu",)
    )
    record = runner.run(runner.BenchRun(CaseGrid("test", "made up", (part,)), FEW))
    assert {(row.status, row.reason) for row in record.rows} == {("measured", None)}
    assert len(record.rows) == len(methods) + 1


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 9), (3, 3), (4, 70), (40, 30)])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_a_patch_is_the_output_of_its_part_of_the_picture(height: int, width: int, stride: int, padding: int) -> None:
    if min(height, width) + 2 * padding < 3:
        pytest.skip("no window fits")
    bench = bench_of(height, width, stride=stride, padding=padding)
    problem, image = bench.problem, bench.image_host
    whole = reference.values(image, problem, 0, problem.output_height)
    rng = np.random.default_rng(3)
    for _ in range(20):
        patch = draw_patch(problem, rng)
        alone = reference.values(image[patch.image], patch.problem, 0, patch.problem.output_height)
        assert np.array_equal(alone, whole[patch.out])


def test_patches_reach_every_window_that_lies_inside() -> None:
    bench = bench_of(20, 40, stride=1)
    seen = np.zeros(bench.problem.output_shape, bool)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        seen[draw_patch(bench.problem, rng).out] = True
    assert seen[1:-1, 1:-1].all()
    assert not seen[[0, -1]].any()


@pytest.mark.parametrize("is_noise", [True, False])
def test_the_timed_pictures_are_not_that_of_the_check(is_noise: bool) -> None:
    bench = bench_of(40, 30)
    pictures = TimedPictures(bench, np.random.default_rng(7), is_noise)
    mixed, drawn = (slot.truth for slot in pictures.slots)
    assert np.array_equal(mixed[:10], bench.image_host[:10])
    assert np.array_equal(mixed[10:], drawn[10:])
    assert (drawn != bench.image_host).mean() > 0.9
    if not is_noise:
        assert np.array_equal(np.sort(drawn, axis=None), np.sort(bench.image_host, axis=None))
    addresses = {slot.image.ctypes.data for slot in pictures.slots} | {slot.out.ctypes.data for slot in pictures.slots}
    assert len(addresses) == 4
    assert not any(np.shares_memory(slot.image, slot.truth) for slot in pictures.slots)


def test_where_memory_is_short_there_is_one_picture_that_nobody_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(40, 30)
    monkeypatch.setattr(
        bench.device, "free_bytes", lambda: 2 * (bench.problem.input_bytes + bench.problem.output_bytes)
    )
    pictures = TimedPictures(bench, np.random.default_rng(7), is_noise=True)
    (slot,) = pictures.slots
    assert np.array_equal(slot.truth, pictures.drawn)
    assert slot.image is bench.image


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_what_is_planted_is_not_there_before_it_is_called(dtype: str) -> None:
    bench = bench_of(40, 30, dtype)
    pictures = TimedPictures(bench, np.random.default_rng(7), is_noise=True)
    slot = pictures.show(1)
    slot.out[...] = 1
    patch, before, renew = pictures.plant(slot)
    assert np.array_equal(slot.image[patch.image], before)
    renew()
    assert np.array_equal(slot.image, slot.truth)
    assert not np.array_equal(slot.image[patch.image], before)
    poisoned = pictures.is_poison(slot.out)
    assert poisoned[patch.out].all()
    assert poisoned.sum() == poisoned[patch.out].size
    assert not np.array_equal(slot.truth, pictures.drawn), "what peers are checked with stays as it was drawn"


def fault_of(trick: type[Trick], seed: int) -> str:
    """What an attacker of the CPU is refused for before it is timed."""
    bench = share("cpu", make_request(), noise_pixels(40, 30, np.dtype("float32")))
    plan = trick(find("sliding", "cpu").load().prepare(bench.problem, Options()))
    ready = Ready(lambda: plan.run(bench.image, bench.out), lambda: bench.out, bench.problem)
    found = Trials(TimedPictures(bench, np.random.default_rng(seed), is_noise=True), None)
    found.pictures.show_check()
    ready.run()
    with pytest.raises(FaultError) as refused:
        found.before(ready, ready.run)
    return refused.value.fault


@pytest.mark.parametrize("name", ["skips", "replays", "by-address", "by-rows", "one-behind", "only-the-seed"])
@pytest.mark.parametrize("below_what_is_shared", [False, True])
def test_a_fault_has_its_name_wherever_patches_are_drawn(
    monkeypatch: pytest.MonkeyPatch, name: str, below_what_is_shared: bool
) -> None:
    """Also where all lie in the rows that the mixed picture and the drawn one have in common: one run in 100."""

    def draw(problem: Problem, rng: np.random.Generator) -> Patch:
        while True:
            patch = draw_patch(problem, rng)
            if not below_what_is_shared or patch.image[0].start >= problem.height // SHARE_OF_CHECK:
                return patch

    monkeypatch.setattr(trials, "draw_patch", draw)
    monkeypatch.setattr(trials, "LATE_SECONDS", 0.0)
    trick, fault = ATTACKS[name]
    assert {fault_of(trick, seed) for seed in range(8)} == {fault}


def test_two_clocks_may_differ_by_little() -> None:
    expect_clocks_agree([1e-3] * 5, [1.04e-3] * 5)
    expect_clocks_agree([1e-6] * 5, [9e-6] * 5)  # a cold cache beside the reading of a clock
    expect_clocks_agree([1e-3] * 3, [1e-3] + [9e-3] * 2)  # who was interrupted between both readings
    with pytest.raises(FaultError):
        expect_clocks_agree([1e-3] * 9, [1e-3] * 2 + [9e-3] * 7)
    with pytest.raises(FaultError, match=r"changed the clock: .*\(500 µs, by a second clock 1000 µs\)"):
        expect_clocks_agree([0.5e-3] * 5, [1e-3] * 5)


@pytest.fixture
def true_functions() -> Iterator[None]:
    yield
    for owner, name, right in surroundings._RIGHT:
        assert getattr(owner, name) is right


def test_replaced_functions_are_put_back_and_named(monkeypatch: pytest.MonkeyPatch, true_functions: None) -> None:
    expect_nothing_replaced(on_gpu=False)
    for owner, name, fault in (
        (time, "perf_counter", "changed the clock: .*time.perf_counter"),
        (reference, "values", "changed the bench: .*reference.values"),
        (get_device("cpu").__class__, "time_once", "changed the clock: .*CpuDevice.time_once"),
    ):
        monkeypatch.setattr(owner, name, lambda *words: 0)
        with pytest.raises(FaultError, match=fault):
            expect_nothing_replaced(on_gpu=False)
        expect_nothing_replaced(on_gpu=False)


def test_settings_are_put_back_by_name() -> None:
    before = Surroundings(get_device("cpu"))
    assert before.restore() == []
    errors = np.seterr(all="ignore")
    gc.disable()
    try:
        assert before.restore() == ["garbage collection", "NumPy's error state"]
        assert gc.isenabled()
        assert np.geterr() == errors
    finally:
        gc.enable()
        np.seterr(**errors)
