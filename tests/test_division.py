"""How a picture is divided among threads: enough work for each, no more threads than cores, every row once."""

from __future__ import annotations

import pytest

from edgeconv.core.filters import named_filter, weight_set
from edgeconv.core.problem import make_problem
from edgeconv.hardware.cpu.jit import Processor
from edgeconv.methods.cpu import division
from edgeconv.methods.cpu.division import STRIP_ROWS, STRIPS_PER_THREAD, THREAD_SECONDS, UNIT_SECONDS, divide
from edgeconv.methods.cpu.layout import make_layout
from edgeconv.methods.cpu.lowering import make_lowering

AVX2 = Processor("x86_64-linux-gnu", "x86-64-v3", "", 32, has_half=True)


@pytest.fixture(autouse=True)
def _sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "usable_threads", lambda: 16)


@pytest.mark.parametrize(
    ("seconds", "threads"),
    [
        (0.0, 1),
        (1.9 * THREAD_SECONDS, 1),
        (2 * THREAD_SECONDS, 2),
        (7.5 * THREAD_SECONDS, 7),
        (16 * THREAD_SECONDS, 16),
        (1.0, 16),
    ],
)
def test_a_thread_has_enough_to_do(seconds: float, threads: int) -> None:
    assert divide(1000, seconds, asked=None).threads == threads


@pytest.mark.parametrize(("asked", "threads"), [(1, 1), (3, 3), (40, 40), (5000, 1000)])
def test_threads_that_are_asked_for_are_taken_up_to_one_for_each_row(asked: int, threads: int) -> None:
    assert divide(1000, 1e-9, asked).threads == divide(1000, 1.0, asked).threads == threads


def test_one_thread_takes_all_rows_at_once() -> None:
    assert divide(1234, 1e-6, asked=None).strip_rows == 1234


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 127, 128, 1000, 4096, 99_991])
@pytest.mark.parametrize("microseconds", [1, 9, 50, 300, 2000, 40_000])
def test_strips_are_neither_long_nor_short(rows: int, microseconds: int) -> None:
    seconds = microseconds * 1e-6
    divided = divide(rows, seconds, asked=None)
    strips = -(-rows // divided.strip_rows)
    assert divided.threads <= max(1, rows)
    if divided.threads == 1:
        assert strips == 1
        return
    assert 1 <= divided.strip_rows <= STRIP_ROWS
    assert divided.strip_rows * seconds / rows >= min(
        UNIT_SECONDS, seconds / divided.threads, STRIP_ROWS * seconds / rows
    )
    if divided.strip_rows < STRIP_ROWS:
        assert strips <= divided.threads * STRIPS_PER_THREAD


@pytest.mark.parametrize(
    ("dtype", "name", "channels", "side", "low", "high"),
    [
        ("float32", "laplacian8", "each", 512, 50e-6, 800e-6),
        ("uint8", "laplacian8", "each", 512, 50e-6, 500e-6),
        ("uint8", "kirsch", "each", 512, 300e-6, 3e-3),
    ],
)
def test_the_estimate_grows_with_pixels_and_multiply_adds(dtype, name, channels, side, low, high) -> None:
    """Bounds are those of any core of this decade: a quarter and four times of what two were measured at."""

    def estimate(height: int, width: int) -> float:
        problem = make_problem((height, width, 3), dtype, weight_set(named_filter(name), channels), output_mode="abs")
        lowering = make_lowering(problem)
        return division.seconds_alone(problem, lowering, make_layout(lowering, AVX2, 16384, columns=False))

    once = estimate(side, side)
    assert low < once < high
    assert estimate(2 * side, side) == pytest.approx(2 * once, rel=0.02)
    assert estimate(side, 3 * side) == pytest.approx(3 * once, rel=0.02)
