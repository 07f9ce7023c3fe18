"""A case, measured: nothing wrong gets a time, figures follow their formulas to the digit, doubts are flagged."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import jsonschema
import pytest
from bench_records import FEW, ROOF, BrokenPeer, TimedMethod, Trickster, changed, grid, measured, row_of, use

from edgeconv.bench import measure, record, runner
from edgeconv.bench.candidates import Bench
from edgeconv.bench.record import Train
from edgeconv.bench.watch import Watch
from edgeconv.core.records import plain, to_json
from edgeconv.errors import UsageError
from edgeconv.export.schemas import read, schema
from edgeconv.hardware.clocks import GpuReading
from edgeconv.hardware.cpu import device as cpu
from edgeconv.hardware.cpu.device import CpuDevice


def tires(bench: Bench, right: Callable[[], None], runs: int) -> None:
    """It is right at first and fails in the middle of its samples."""
    if runs == 2:
        raise OSError("tired")
    right()


def test_what_fails_or_cannot_run_gets_no_time_and_leaves_the_others_running(monkeypatch) -> None:
    class Absent(TimedMethod):
        def unavailable_reason(self) -> str:
            return "there is none"

    tiring = Trickster("tiring", [1e-3], tires)
    tiring.kind = "peer"
    result = measured(
        monkeypatch, BrokenPeer("broken", []), Absent("absent", []), tiring, TimedMethod("honest", [2e-3])
    )
    told = {row.candidate: (row.status, row.reason, len(row.timings)) for row in result.rows}
    assert told == {
        "copy": ("measured", None, 2),
        "broken": ("failed", "LinAlgError: no such algorithm", 0),
        "absent": ("refused", "there is none", 0),
        "tiring": ("failed", "OSError: tired", 0),
        "honest": ("measured", None, 2),
    }
    jsonschema.validate(plain(result), schema("bench"))


def test_figures_follow_their_formulas_to_the_digit(monkeypatch) -> None:
    result = measured(monkeypatch, TimedMethod("honest", [1e-3, 2e-3, 3e-3, 4e-3, 5e-3]))
    row = row_of(result, "honest")
    assert (set(row.timings), row.lead_l2_state) == ({"cold", "warm"}, "warm"), "a processor's own"
    series = row.timings["warm"]
    assert series.samples_seconds == [1e-3, 2e-3, 3e-3, 4e-3, 5e-3]
    assert (series.median_seconds, series.min_seconds, series.n) == (3e-3, 1e-3, 5)
    assert (series.p10_seconds, series.p90_seconds) == (pytest.approx(1.4e-3), pytest.approx(4.6e-3))
    assert series.stopped_because == "sample limit"
    account = row.metrics["warm"]
    nominal, fewest = 2 * 9 * 3 * 3 * 64, 2 * 64 * 3 * 4
    assert account.gflops == nominal / 3e-3 / 1e9
    assert account.gigabytes_per_second == fewest / 3e-3 / 1e9
    assert account.floor_share == 1e-3 / 3e-3
    assert account.large_copy_share == fewest / ROOF.copy_bytes_per_second / 3e-3
    assert account.roofline_share == 1e-3 / 3e-3
    assert account.bound_by == "memory"
    assert set(plain(account)) - {"bound_by"} == set(record.FORMULAS)


def test_a_time_above_the_roof_is_doubted(monkeypatch) -> None:
    warnings = measured(monkeypatch, TimedMethod("honest", [0.85e-3])).warnings
    assert any(line.startswith("4 timings above the measured roof: the method shares work") for line in warnings)
    assert measured(monkeypatch, TimedMethod("honest", [2e-3])).warnings == []  # the copy's own share is no matter


def test_a_device_behind_a_bus_has_its_launches_timed(monkeypatch) -> None:
    device = use(monkeypatch, TimedMethod("honest", [2e-3]))
    device.moves_data = True
    monkeypatch.setattr(measure, "time_train", lambda ready, bench: Train(3e-3, 4e-3))
    result = runner.run(grid(8), FEW)
    honest = row_of(result, "honest")
    assert (honest.launch, honest.launch_bound) == (Train(3e-3, 4e-3), True)


def test_what_was_measured_before_the_end_is_kept_and_resume_goes_on(monkeypatch, tmp_path) -> None:
    """After an interrupt at the second case, and after a time limit before the first."""
    path = tmp_path / "bench.json"
    use(monkeypatch, TimedMethod("honest", [2e-3]))
    run = partial(runner.run, grid(8, 16), FEW, path)

    def stop_at_the_second(done: int, total: int, note: str) -> None:
        if note.startswith("16"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(progress=stop_at_the_second)
    kept = read(path)
    assert (kept.complete, {row.case.size for row in kept.rows}) == (False, {8})
    notes: list[str] = []
    resumed = run(resume=True, progress=lambda done, total, note: notes.append(note))
    assert [note.split()[0] for note in notes] == ["16"]
    assert (resumed.complete, resumed.rows[: len(kept.rows)], resumed.seed) == (True, kept.rows, kept.seed)
    stopped = run(stop_after_seconds=0.0)
    assert (stopped.complete, stopped.rows, stopped.seed != kept.seed) == (False, [], True)
    assert run(resume=True).complete


def test_resuming_elsewhere_is_refused(monkeypatch, tmp_path) -> None:
    path = tmp_path / "bench.json"
    use(monkeypatch, TimedMethod("honest", [2e-3]))
    run = partial(runner.run, grid(8), FEW, path)
    whole = run()
    assert run(resume=True).complete
    for words, change in {
        "another cpu usable_threads .1, and here": lambda kept: changed(kept.machine["cpu"], usable_threads=1),
        "another numpy .0.1, and here": lambda kept: kept.versions.update(numpy="0.1"),
        "another grid": lambda kept: changed(kept, grid=grid(8, 16)),
    }.items():
        kept = deepcopy(whole)
        change(kept)
        path.write_bytes(to_json(kept))
        with pytest.raises(UsageError, match=words):
            run(resume=True)


def test_a_peer_is_held_to_no_more_than_a_method(monkeypatch) -> None:
    """Half in and out: an answer that is off by the rounding of the type is right, whoever gives it."""
    use(monkeypatch, TimedMethod("rounded", [2e-3], name="opencv"))
    prepare = TimedMethod.prepare

    def strict(self, bench):
        ready = prepare(self, bench)
        ready.arithmetic = None
        ready.tolerance = 1e-9
        return ready

    monkeypatch.setattr(TimedMethod, "prepare", strict)
    halves = grid(64, dtypes=("float16",))
    assert row_of(runner.run(halves, FEW), "rounded").status == "measured"


def reading(mhz: int, mask: int = 0) -> GpuReading:
    return GpuReading(mhz, 3201, mask, 50, 300.0)


def test_a_throttled_row_carries_its_flag_into_the_record(monkeypatch) -> None:
    use(monkeypatch, TimedMethod("honest", [2e-3]))
    monkeypatch.setattr(runner, "Watch", lambda device: Watch(device, lambda: reading(990, 0x04), lambda: None))
    result = runner.run(grid(8), FEW)
    assert row_of(result, "honest").machine.flags == ["throttled: software power cap"]
    assert "flagged in 2 rows: throttled" in result.warnings


def test_a_filter_that_does_not_suit_its_channels_is_refused_before_anything_is_measured(monkeypatch) -> None:
    monkeypatch.setattr(runner, "measure_case", lambda *_: pytest.fail("a case was measured"))
    asked = grid(16, filters=("sobel", "bank-c3-k4"), channels=("each",), methods=("sliding",))
    with pytest.raises(UsageError, match="needs --channels mix"):
        runner.run(asked, FEW)


@pytest.mark.parametrize(
    ("state", "renews", "order"),
    [
        ("warm", True, "run renew run"),
        ("cold", True, "renew flush run"),
        ("warm", False, "run"),
        (None, True, "run renew run"),
    ],
)
def test_a_warm_sample_on_the_cpu_follows_a_run_even_where_checks_came_between(
    monkeypatch: pytest.MonkeyPatch, state: Any, renews: bool, order: str
) -> None:
    """Peers are timed run after run: a method whose samples are checked must find the same caches and threads."""
    device, done = CpuDevice(), []
    monkeypatch.setattr(device, "_flush", lambda: done.append("flush"))
    monkeypatch.setattr(cpu, "SETTLE_SECONDS", 0.0)
    device.time_once(lambda: done.append("run"), state, renew=(lambda: done.append("renew")) if renews else None)
    assert " ".join(done) == order
