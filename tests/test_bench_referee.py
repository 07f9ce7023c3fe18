"""The referee of the bench: what gives no right output each time it runs gets no time, and what is honest gets one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, product, repeat
from typing import Any

import numpy as np
import pytest
from bench_records import FEW, FakeDevice, Peer, TimedMethod, Trick, Trickster, grid, measured, row_of, use

from edgeconv.bench import runner
from edgeconv.bench.candidates import Bench, Ready, share
from edgeconv.bench.referee import draw_patch
from edgeconv.core.problem import INPUT_DTYPES
from edgeconv.core.request import make_request
from edgeconv.hardware.device import L2State
from edgeconv.methods import reference


def bench_of(height: int, width: int, dtype: str = "float32", **words: Any) -> Bench:
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 255, (height, width, 3)).astype(dtype)
    return share("cpu", make_request(**words), pixels)


class PeerOfOnePicture(Peer):
    """A peer that is right for the first picture that it was set up with."""

    known: Any = None

    def prepare(self, bench: Bench) -> Ready:
        if self.known is None or self.known.shape != bench.image_host.shape:
            self.known = bench.image_host
        return super().prepare(replace(bench, image_host=self.known))


def test_a_peer_that_knows_one_picture_loses_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    record = measured(monkeypatch, TimedMethod("honest", [2e-3]), PeerOfOnePicture("liar", [1e-6]))
    row = row_of(record, "liar")
    assert (row.status, row.fault, row.timings, row.metrics) == ("disqualified", "wrong when timed", {}, {}), row.reason
    assert row_of(record, "honest").status == "measured"
    says = "liar on cpu · 8 s1 float32 random mix is disqualified: wrong"
    assert any(line.startswith(says) for line in record.warnings)


def forgets_a_row(bench: Bench, right: Callable[[], None], runs: int) -> None:
    """It leaves there what the one before wrote."""
    before = bench.out[-1:].copy()
    right()
    bench.out[-1:] = before


def skips(bench: Bench, right: Callable[[], None], runs: int) -> None:
    if runs == 0:
        right()


def knows_the_check(bench: Bench, right: Callable[[], None], runs: int) -> None:
    right()
    if not np.array_equal(bench.image, bench.image_host):
        bench.out[...] = 0.25


def leaves_one_sample(bench: Bench, right: Callable[[], None], runs: int) -> None:
    """One of the edge, which no patch reaches."""
    before = bench.out[0, 0, 1].copy()
    right()
    if runs:
        bench.out[0, 0, 1] = before


def is_wrong_at_the_edge(bench: Bench, right: Callable[[], None], runs: int) -> None:
    right()
    if runs:
        bench.out[0, 0, 1] += 1


def changes_its_input(bench: Bench, right: Callable[[], None], runs: int) -> None:
    right()
    if runs:
        bench.image[4, 4, 1] += 1


def works_in_place(bench: Bench, right: Callable[[], None], runs: int) -> None:
    right()
    bench.image[0, 0, 1] += 1


@pytest.mark.parametrize(
    ("trick", "fault", "dtype"),
    [
        *((forgets_a_row, None, dtype) for dtype in INPUT_DTYPES),
        (skips, "wrong when timed", "float32"),
        (knows_the_check, "wrong when timed", "float32"),
        (is_wrong_at_the_edge, "wrong when timed", "float32"),
        (leaves_one_sample, "unwritten samples", "float32"),
        (changes_its_input, "changed its input", "float32"),
        (works_in_place, "changed its input", "float32"),
    ],
)
def test_what_is_not_right_each_time_gets_no_time(monkeypatch, trick: Trick, fault: str | None, dtype: str) -> None:
    """Outputs are filled with what is no result before a run, and pictures are drawn that nobody has seen."""
    use(monkeypatch, TimedMethod("honest", [2e-3]), Trickster("cheat", [1.5e-3], trick), TimedMethod("last", [2e-3]))
    record = runner.run(grid(8, dtypes=(dtype,), filters=("laplacian8",)), FEW)
    row = row_of(record, "cheat")
    assert (row.status, row.fault, row.timings) == ("disqualified" if fault else "wrong", fault, {}), row.reason
    assert fault or f"{row.check.unexplained_samples} wrong samples, worst at" in row.reason
    assert {row_of(record, name).status for name in ("honest", "last")} == {"measured"}


def test_a_method_that_takes_memory_of_a_gpu_gets_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeDevice, "memory_taken_by", lambda self, run: 4096)
    row = row_of(measured(monkeypatch, TimedMethod("greedy", [2e-3])), "greedy")
    assert (row.fault, row.timings) == ("allocates while timed", {})
    assert "4,096 bytes" in row.reason


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


@pytest.mark.parametrize(
    ("filter", "stride", "has_floor"),
    [("identity", 1, True), ("identity", 2, False), ("sobel-x", 2, True), ("sobel-y", 2, False)],
)
def test_rows_under_zeros_need_not_be_read(monkeypatch, filter: str, stride: int, has_floor: bool) -> None:
    """Then no time is impossible: those of the copy are of the whole picture."""
    use(monkeypatch, TimedMethod("fast", [0.1e-3]))
    row = row_of(runner.run(grid(8, strides=(stride,), filters=(filter,)), FEW), "fast")
    assert row.status == ("disqualified" if has_floor else "measured")


@pytest.mark.parametrize(
    ("dtype", "size", "stride", "channels"),
    [
        ("uint8", 1, 1, "mix"),
        ("uint16", 33, 3, "each"),
        ("float16", 5, 5, "mix"),
        ("float32", 1, 5, "each"),
        ("float64", 33, 1, "mix"),
    ],
)
def test_honest_methods_are_accepted_at_every_shape(
    monkeypatch: pytest.MonkeyPatch, dtype: str, size: int, stride: int, channels: str
) -> None:
    """Sides below a window, strides above it, both ways to sum; the times are made up."""
    methods = [TimedMethod(name, [2e-3], name) for name in ("reference", "opencv", "sliding", "im2col")]
    use(monkeypatch, *methods)
    cases = grid(size, strides=(stride,), dtypes=(dtype,), filters=("sobel",), channels=(channels,))
    record = runner.run(cases, FEW)
    assert {(row.status, row.reason) for row in record.rows} == {("measured", None)}
    assert len(record.rows) == len(methods) + 1


@pytest.mark.parametrize("sides", [(3, 3), (2, 9), (4, 70), (40, 30)])
def test_a_patch_is_the_output_of_its_part_of_the_picture(sides: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for stride, padding in product([1, 2, 3, 5], [1, 4]):
        bench = bench_of(*sides, stride=stride, padding=padding)
        problem, image = bench.problem, bench.image_host
        whole = reference.values(image, problem, 0, problem.output_height)
        for _ in range(20):
            patch = draw_patch(problem, rng)
            alone = reference.values(image[patch.image], patch.problem, 0, patch.problem.output_height)
            assert np.array_equal(alone, whole[patch.out])


def test_a_picture_of_one_row_is_checked_again_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it has more samples than the check takes."""
    use(monkeypatch, TimedMethod("honest", [2e-3]))
    record = runner.run(grid(3, strides=(3,)), replace(FEW, check_samples=1))
    assert row_of(record, "honest").status == "measured"


def test_patches_reach_every_window_that_lies_inside() -> None:
    bench = bench_of(20, 40, stride=1)
    seen = np.zeros(bench.problem.output_shape, bool)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        seen[draw_patch(bench.problem, rng).out] = True
    assert seen[1:-1, 1:-1].all()
    assert not seen[[0, -1]].any()


@pytest.mark.parametrize(
    ("state", "is_short"),
    [("cold", False), ("warm", False), ("cold", True)],
)
def test_what_is_timed_was_never_seen_before(monkeypatch, state: L2State, is_short: bool) -> None:
    """Each sample has pixels of its own, an output that holds no result, and by turns another place."""
    shown: list[tuple[tuple[int, int], Any, bool]] = []

    def notes(bench: Bench, right: Callable[[], None], runs: int) -> None:
        place = bench.image.ctypes.data, bench.out.ctypes.data
        shown.append((place, bench.image.copy(), bool(np.isnan(bench.out).any())))
        right()

    use(monkeypatch, Trickster("witness", [2e-3], notes))
    monkeypatch.setattr(FakeDevice, "free_bytes", lambda self: 1 if is_short else None)
    turns = 8 if state == "warm" else 1  # a warm cache has one place a turn, an empty one another for each sample
    rules = replace(FEW, l2_states=(state,), budget=replace(FEW.budget, min_samples=8, max_samples=8, turns=turns))
    assert row_of(runner.run(grid(40), rules), "witness").status == "measured"
    (first_place, checked, _), *later = shown
    assert len({place for place, _, _ in shown}) == (1 if is_short else 2)
    assert len({address for place, _, _ in shown for address in place}) == (2 if is_short else 4)
    assert first_place in {place for place, _, _ in later}
    assert min(np.mean(image != checked) for _, image, _ in later) > 0.9
    assert len({image.tobytes() for _, image, _ in later}) >= rules.budget.max_samples
    assert sum(holds_no_result for _, _, holds_no_result in later) >= rules.budget.max_samples
    timed = Counter(place for place, _, holds_no_result in later if holds_no_result)
    assert (len(timed), min(timed.values()) >= 3) == (1 if is_short else 2, True), "by turns, also while it is timed"
