"""`bench conv` and `bench gemm`: what is checked, what gets a time, and the figures; and on a GPU, all of it."""

from __future__ import annotations

import json
import re
from itertools import cycle

import jsonschema
import numpy as np
import pytest
from bench_records import ROOF, FakeDevice
from command import edgeconv

from edgeconv.bench.ladders import conv, gemm, gemm_kernels
from edgeconv.bench.ladders.base import Contender, described
from edgeconv.bench.ladders.conv import COPY, ConvRecord, make_case, time_case
from edgeconv.bench.ladders.conv_kernels import STEPS
from edgeconv.bench.ladders.gemm import VENDOR, GemmRecord, GemmRow, make_operands, time_size
from edgeconv.bench.watch import Watch
from edgeconv.core.records import plain
from edgeconv.core.timing import Budget
from edgeconv.errors import UsageError
from edgeconv.export.ladders import every_row
from edgeconv.export.markdown import as_text
from edgeconv.export.schemas import schema
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference

BUDGET = Budget(min_samples=3, max_samples=3, time_limit_seconds=1000.0)
FIRST, SECOND = STEPS[0].name, STEPS[1].name


def record(entered: list[tuple[str, str, float]], wrong: str = "") -> ConvRecord:
    """Of contenders (step, block, seconds); the step `wrong` leaves a sample unwritten."""
    device = FakeDevice()
    work = make_case(16, 2, device)
    plan = Reference().prepare(work.problem, Options())
    found = []
    for step, block, seconds in entered:

        def run(step: str = step) -> None:
            plan.run(work.image, work.out)
            if step == wrong:
                work.out[-1, -1, -1] = np.nan

        device.seconds_of[run] = cycle([seconds])
        found.append(Contender(step, "", block, run))
    watch = Watch("cpu")
    rows = time_case(found, work, BUDGET, device, watch)
    return ConvRecord(**described(device, ROOF), kind=conv.KIND, rows=rows)


def test_figures_of_convolutions_are_those_of_the_formulas() -> None:
    made = record([(COPY, None, 1e-4), (FIRST, "16×16", 8e-4), (FIRST, "8×8", 1e-3), (SECOND, "16×16", 2e-4)])
    jsonschema.validate(plain(made), schema("ladder"))
    copy, first, other, second = made.rows
    assert (copy.share_of_floor, copy.gflops, copy.gain) == (1.0, None, None)
    assert first.gflops == pytest.approx(2 * 81 * 8 * 8 / 8e-4 / 1e9)
    assert (first.share_of_floor, first.gain) == (0.125, None)
    assert other.share_of_floor == pytest.approx(0.1)
    assert (second.share_of_floor, second.gain) == (0.5, pytest.approx(4.0))  # over the usual blocks
    assert {row.l2_state for row in made.rows} == {"cold"}
    assert "| right | stride 2 | 16 | pixel | 16×16 | 200 µs | 0.05184 | 50 % | 4.00 × |" in as_text(every_row(made))


def test_a_wrong_step_gets_no_time_and_the_next_no_gain() -> None:
    made = record([(COPY, None, 1e-4), (FIRST, "16×16", 1e-9), (SECOND, "16×16", 2e-4)], wrong=FIRST)
    jsonschema.validate(plain(made), schema("ladder"))
    _, first, second = made.rows
    assert (first.right, first.timing, first.gflops, first.relative_error) == (False, None, None, None)
    assert (second.right, second.gain) == (True, None)
    assert f"| {FIRST} | 16×16 | – | – |" in as_text(every_row(made))


def test_every_size_and_stride_is_measured_and_told_of(monkeypatch) -> None:
    device = FakeDevice()

    def only_the_copy(work: conv.LadderCase, blocks: str, on: FakeDevice) -> list[Contender]:
        return [Contender(COPY, blocks, None, on.copier(work.counts.fewest_bytes))]

    monkeypatch.setattr(conv, "contenders", only_the_copy)
    told: list[tuple[int, str]] = []
    seen = Watch("cpu")
    made = conv.measure((8, 16), (1, 3), "all", BUDGET, device, seen, lambda done, note: told.append((done, note)))
    jsonschema.validate(plain(made), schema("ladder"))
    assert [(row.size, row.stride) for row in made.rows] == [(8, 1), (16, 1), (8, 3), (16, 3)]
    assert told == [(0, "8 stride 1"), (1, "16 stride 1"), (2, "8 stride 3"), (3, "16 stride 3")]
    assert {row.idea for row in made.rows} == {"all"}


def entered(device: FakeDevice, operands, **seconds: float) -> list[Contender]:
    """Contenders by name: `hasty` leaves a result unwritten, `sloppy` errs, the others are right."""
    found = []
    for name, taken in seconds.items():

        def run(name: str = name) -> None:
            np.matmul(operands.a, operands.b, out=operands.c)
            if name == "sloppy":
                operands.c[0, 0] += 1e-2
            if name == "hasty":
                operands.c[-1, -1] = np.nan

        device.seconds_of[run] = cycle([taken])
        found.append(Contender(name, "", "8×8×8", run))
    return found


def rows(dtype: str = "float32", **seconds: float) -> dict[str, GemmRow]:
    device = FakeDevice()
    operands = make_operands(32, dtype, device)
    found = time_size(entered(device, operands, **seconds), operands, dtype, BUDGET, device, ROOF, Watch("cpu"))
    return {row.step: row for row in found}


def test_figures_of_products_are_those_of_the_formulas() -> None:
    found = rows(**{"own": 2e-3, VENDOR: 1e-3})
    assert found["own"].gflops == pytest.approx(2 * 32**3 / 2e-3 / 1e9)
    assert found["own"].share_of_vendor == 0.5
    assert found["own"].share_of_peak == pytest.approx(2 * 32**3 / 2e-3 / ROOF.fma_flops_per_second)
    assert found[VENDOR].share_of_vendor == 1.0
    assert rows("float64", own=1e-3)["own"].share_of_peak is None, "that peak is measured in float32"
    assert found["own"].timing.n == 3
    assert found["own"].relative_error < found["own"].allowed_error


@pytest.mark.parametrize("name", ["hasty", "sloppy"])
def test_a_wrong_product_gets_no_time(name: str) -> None:
    found = rows(**{name: 1e-9, VENDOR: 1e-3})
    assert (found[name].right, found[name].timing, found[name].gflops) == (False, None, None)
    assert found[VENDOR].right
    text = as_text(every_row(GemmRecord(**described(FakeDevice(), ROOF), kind=gemm.KIND, rows=list(found.values()))))
    assert re.search(rf"\| WRONG .* {name} \| 8×8×8 \| – \| – \|", text)
    assert "infinite" in text or name == "sloppy"


def test_an_unknown_step_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="double_buffer"):
        gemm_kernels.step("fastest")


RUNGS = [
    (entry.name, dtype, block)
    for entry in gemm_kernels.STEPS
    for dtype in gemm_kernels.REALS
    for block in (entry.blocks[dtype] or (None,))
]
SIZES = ((256, 256, 256), (1, 1, 1), (128, 127, 129), (129, 64, 8))


@pytest.mark.gpu
@pytest.mark.parametrize("number", range(len(RUNGS)), ids=lambda number: str(RUNGS[number]))
def test_the_product(number: int) -> None:
    """Of awkward sides, and of one of the other sizes in turn."""
    import cupy

    name, dtype, block = RUNGS[number]
    for m, n, k in ((37, 131, 67), SIZES[number % len(SIZES)]):
        rng = np.random.default_rng(2)
        a, b = rng.uniform(-1, 1, (m, k)).astype(dtype), rng.uniform(-1, 1, (k, n)).astype(dtype)
        c = cupy.full((m, n), np.nan, dtype)
        gemm_kernels.prepare(name, dtype, m, n, k, block)(cupy.asarray(a), cupy.asarray(b), c)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        step_size = float(np.finfo(dtype).eps)
        assert np.abs(c.get() - expected).max() <= step_size * k * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(
    "words",
    ["conv --strides 4", "conv --blocks some", "conv --sizes 0", "gemm --dtypes float16", "gemm --blocks some"],
)
def test_words_that_mean_nothing_are_one_line(tmp_path, words: str) -> None:
    refused = edgeconv("bench", *words.split(), cwd=tmp_path)
    assert (refused.code, len(refused.error_lines)) == (2, 1)


@pytest.mark.skipif(cuda_unavailable_reason() is None, reason="there is a GPU here")
@pytest.mark.parametrize("ladder", ["conv", "gemm"])
def test_without_a_gpu_it_says_what_is_missing(tmp_path, ladder: str) -> None:
    refused = edgeconv("bench", ladder, cwd=tmp_path)
    assert (refused.code, len(refused.error_lines)) == (4, 1)


@pytest.mark.gpu
@pytest.mark.parametrize(("ladder", "sizes"), [("conv", "250,256"), ("gemm", "512")])
def test_the_whole_ladder_on_a_gpu(tmp_path, ladder: str, sizes: str) -> None:
    done = edgeconv("bench", ladder, "--sizes", sizes, "--blocks", "all", "--time-limit", "0.01", cwd=tmp_path)
    assert done.code == 0, done.err
    jsonschema.validate(json.loads((tmp_path / f"{ladder}.json").read_text(encoding="utf-8")), schema("ladder"))
