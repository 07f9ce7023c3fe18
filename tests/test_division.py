"""How a picture is divided among threads: enough work for each, no more threads than cores, every row once."""

from __future__ import annotations

import pytest

from edgeconv.core.filters import named_filter, weight_set
from edgeconv.core.lowering import lower
from edgeconv.core.problem import make_problem
from edgeconv.hardware.cpu.processor import Processor
from edgeconv.methods.cpu import division
from edgeconv.methods.cpu.division import STRIP_ROWS, STRIPS_PER_THREAD, WORK_SECONDS, divide
from edgeconv.methods.cpu.layout import make_layout

AVX2 = Processor("x86_64-linux-gnu", "x86-64-v3", "", 32, has_half=True)


@pytest.fixture(autouse=True)
def _sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "usable_threads", lambda: 16)


@pytest.mark.parametrize(
    ("seconds", "asked", "threads"),
    [
        (0.0, None, 1),
        (1.9 * WORK_SECONDS, None, 1),
        (7.5 * WORK_SECONDS, None, 7),
        (1.0, None, 16),
        (1e-9, 3, 3),
        (1.0, 40, 40),
        (1.0, 5000, 1000),
    ],
)
def test_a_thread_has_enough_to_do_or_was_asked_for(seconds: float, asked: int | None, threads: int) -> None:
    assert divide(1000, seconds, asked).threads == threads


@pytest.mark.parametrize("rows", [1, 17, 128, 1000, 99_991])
@pytest.mark.parametrize("microseconds", [1, 50, 300, 40_000])
def test_strips_are_neither_long_nor_short(rows: int, microseconds: int) -> None:
    seconds = microseconds * 1e-6
    divided = divide(rows, seconds, asked=None)
    strips = -(-rows // divided.strip_rows)
    assert divided.threads <= max(1, rows)
    if divided.threads == 1:
        assert strips == 1
        return
    assert 1 <= divided.strip_rows <= STRIP_ROWS
    of_a_thread = -(-strips // divided.threads)
    is_long = divided.strip_rows * seconds / rows >= min(WORK_SECONDS, seconds / divided.threads)
    assert is_long or of_a_thread == -(-rows // (divided.threads * STRIP_ROWS)), "or as few as there can be"
    assert of_a_thread <= max(STRIPS_PER_THREAD, rows / divided.threads / STRIP_ROWS + 1)
    assert of_a_thread * (divided.strip_rows - 1) < rows / divided.threads, "none has more to do than the others"


def test_the_estimate_grows_with_pixels_and_multiply_adds() -> None:
    def estimate(height: int, width: int, name: str = "laplacian8") -> float:
        problem = make_problem((height, width, 3), "uint8", weight_set(named_filter(name), "each"), output_mode="abs")
        layout = make_layout(lower(problem), AVX2, 16384, columns=False, streaming=False, fetching=False)
        return division.seconds_alone(problem, layout)

    side = 512
    once = estimate(side, side)
    assert 1e-5 < once < 1e-2
    assert estimate(side, side, "kirsch") > 1.2 * once
    assert estimate(2 * side, side) == pytest.approx(2 * once, rel=0.02)
    assert estimate(side, 3 * side) == pytest.approx(3 * once, rel=0.02)
