"""`bench conv` and `bench gemm`: what is checked, what gets a time, and the figures; and on a GPU, all of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest
from bench_records import FakeDevice
from command import edgeconv

from edgeconv.bench.ladders import conv, gemm
from edgeconv.bench.ladders.base import LadderRow
from edgeconv.bench.ladders.conv import COPY
from edgeconv.bench.ladders.gemm import VENDOR
from edgeconv.core.records import plain
from edgeconv.core.timing import Budget
from edgeconv.export.markdown import as_text
from edgeconv.export.rows import every_row
from edgeconv.export.schemas import schema
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference

BUDGET = Budget(min_samples=3, max_samples=3, time_limit_seconds=1000.0)


class Clock(FakeDevice):
    """A run takes what it says itself; the copy takes 0.1 ms."""

    def take(self, seconds: float) -> None:
        self.taken = seconds

    def time_once(self, call, *_: Any) -> float:
        call()
        return self.taken

    def floor(self, read_bytes: int, written_bytes: int) -> Callable[[], None]:
        return lambda: self.take(1e-4)


def convolutions(monkeypatch, seconds, wrong: str = "", sizes=(16,), strides=(2,), blocks="usual") -> list[LadderRow]:
    """Rows of `bench conv` on a made-up device; the step `wrong` leaves a sample unwritten."""
    device = Clock()

    def prepare(step, problem, block) -> SimpleNamespace:
        plan = Reference().prepare(problem, Options())

        def run(image, out) -> None:
            plan.run(image, out)
            device.take(seconds(step.name, block))
            if step.name == wrong:
                out[-1, -1, -1] = np.nan

        return SimpleNamespace(run=run)

    monkeypatch.setattr(conv, "prepare", prepare)
    record = conv.LADDER.measure(sizes, strides, blocks, BUDGET, device)
    jsonschema.validate(plain(record), schema("ladder"))
    as_text(every_row(record))
    return record.rows


def products(monkeypatch, seconds, wrong: str = "", by: float = 0.0) -> dict[str, LadderRow]:
    """Rows of `bench gemm` at 32; the step `wrong` is off by so much in one element of the result."""
    device = Clock()

    def prepare(step, dtype, m, n, k, block) -> Callable[..., None]:
        def run(a, b, c) -> None:
            np.matmul(a, b, out=c)
            device.take(seconds(step.name, block))
            c[0, 0] += by if step.name == wrong else 0.0

        return run

    monkeypatch.setattr(gemm, "prepare", prepare)
    record = gemm.LADDER.measure((32,), ("float32",), "usual", BUDGET, device)
    jsonschema.validate(plain(record), schema("ladder"))
    return {row.step: row for row in record.rows}


def test_figures_of_convolutions_are_those_of_the_formulas(monkeypatch) -> None:
    def seconds(step: str, block: Any) -> float:
        return {"textbook": 8e-4 if str(block) == "16×16" else 1e-3, "pixel": 2e-4}.get(step, 1e-3)

    rows = convolutions(monkeypatch, seconds, blocks="all")
    copy, first, other, *_ = rows
    second = next(row for row in rows if row.step == "pixel")
    assert (copy.step, copy.share, copy.gflops, copy.gain) == (COPY, 1.0, None, None)
    assert (first.step, first.block, other.step, other.block) == ("textbook", "16×16", "textbook", "8×8")
    assert first.gflops == pytest.approx(2 * 81 * 8 * 8 / 8e-4 / 1e9)
    assert (first.share, first.gain) == (pytest.approx(0.125), None)
    assert other.share == pytest.approx(0.1)
    assert (second.share, second.gain) == (pytest.approx(0.5), pytest.approx(4.0))  # over the usual blocks


def test_a_wrong_step_gets_no_time_and_the_next_no_gain(monkeypatch) -> None:
    _, first, second, third, *_ = convolutions(monkeypatch, lambda step, block: 1e-3, wrong="pixel")
    assert (first.step, first.right, first.gain) == ("textbook", True, None)
    assert (second.step, second.right, second.timing, second.gflops) == ("pixel", False, None, None)
    assert (second.relative_error, third.right, third.gain) == (None, True, None)


def test_each_step_is_judged_and_timed_by_turns_at_every_size_and_stride(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BUDGET", replace(BUDGET, turns=3))
    asked: list[str] = []
    rows = convolutions(monkeypatch, lambda step, block: asked.append(step) or 1e-3, sizes=(8, 16), strides=(1, 3))
    names, cases = [step.name for step in conv.STEPS], [(8, 1), (16, 1), (8, 3), (16, 3)]
    assert [(row.step, row.size, row.stride) for row in rows] == [
        (name, *case) for case in cases for name in (COPY, *names)
    ], "the usual blocks alone"
    assert asked == names * 4 * len(cases)


def test_figures_of_products_are_those_of_the_formulas(monkeypatch) -> None:
    def seconds(step: str, block: Any) -> float:
        return 1e-3 if step == VENDOR else 2e-3

    found = products(monkeypatch, seconds)
    assert list(found) == [step.name for step in gemm.STEPS]
    first = found["plain"]
    assert first.gflops == pytest.approx(2 * 32**3 / 2e-3 / 1e9)
    assert (first.share, found[VENDOR].share) == (pytest.approx(0.5), 1.0)
    assert [found[step].gain for step in ("plain", "shared", VENDOR)] == [None, 1.0, 2.0]
    assert (first.timing.n, first.relative_error < first.allowed_error) == (3, True)
    for by in (np.nan, 1e-2):
        found = products(monkeypatch, seconds, wrong="shared", by=by)
        assert {step for step, row in found.items() if not row.right} == {"shared"}
        assert (found["shared"].timing, found["shared"].gflops) == (None, None)
        assert (found["shared"].relative_error is None) == np.isnan(by)


RUNGS = [(entry, dtype, block) for entry in gemm.STEPS for dtype in gemm.REALS for block in entry.blocks_for(dtype)]
SIZES = ((256, 256, 256), (1, 1, 1), (128, 127, 129), (129, 64, 8))


@pytest.mark.gpu
@pytest.mark.parametrize("number", range(len(RUNGS)), ids=lambda number: f"{RUNGS[number][0].name} {RUNGS[number][1:]}")
def test_the_product(number: int) -> None:
    """Of awkward sides, and of one of the other sizes in turn."""
    import cupy

    step, dtype, block = RUNGS[number]
    for m, n, k in ((37, 131, 67), SIZES[number % len(SIZES)]):
        rng = np.random.default_rng(2)
        a, b = rng.uniform(-1, 1, (m, k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)
        c = cupy.full((m, n), np.nan, dtype)
        gemm.prepare(step, dtype, m, n, k, block)(cupy.asarray(a), cupy.asarray(b), c)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        step_size = float(np.finfo(dtype).eps)
        assert np.abs(c.get() - expected).max() <= step_size * k * max(1.0, np.abs(expected).max())


def test_what_cannot_be_measured_is_one_line(tmp_path) -> None:
    """Words that mean nothing; and then there is no GPU."""
    wrong = ("conv --strides 4", "conv --blocks some", "conv --sizes 0", "gemm --dtypes float16", "gemm --blocks some")
    here = () if cuda_unavailable_reason() is None else ("conv", "gemm")
    for words in (*wrong, *here):
        refused = edgeconv("bench", *words.split(), cwd=tmp_path)
        assert (refused.code, len(refused.error_lines)) == (4 if words in here else 2, 1), words


@pytest.mark.gpu
@pytest.mark.parametrize(("ladder", "sizes"), [("conv", "250,256"), ("gemm", "512")])
def test_the_whole_ladder_on_a_gpu(tmp_path, ladder: str, sizes: str) -> None:
    done = edgeconv("bench", ladder, "--sizes", sizes, "--blocks", "all", "--time-limit", "0.01", cwd=tmp_path)
    assert done.code == 0, done.err
    jsonschema.validate(json.loads((tmp_path / f"{ladder}.json").read_text(encoding="utf-8")), schema("ladder"))
