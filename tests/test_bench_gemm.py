"""`bench gemm` but for the GPU: what is checked, what gets a time, and the figures; and on a GPU, all of it."""

from __future__ import annotations

import json
from itertools import cycle

import jsonschema
import numpy as np
import pytest
from bench_records import ROOF, FakeDevice
from command import PROJECT, edgeconv

from edgeconv.bench.ladders import gemm_kernels
from edgeconv.bench.ladders.base import Contender, described
from edgeconv.bench.ladders.gemm import KIND, VENDOR, GemmRecord, GemmRow, make_operands, time_size
from edgeconv.bench.ladders.gemm_kernels import REALS, STEPS
from edgeconv.bench.watch import Watch
from edgeconv.core.records import plain
from edgeconv.core.timing import Budget
from edgeconv.core.units import digits_text, share_text
from edgeconv.errors import UsageError
from edgeconv.export import ladders
from edgeconv.export.kinds import read
from edgeconv.export.markdown import every_row
from edgeconv.export.schemas import LADDERS
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

BUDGET = Budget(min_samples=3, max_samples=3, time_limit_seconds=1000.0)


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


def test_figures_are_those_of_the_formulas() -> None:
    found = rows(**{"own": 2e-3, VENDOR: 1e-3})
    assert found["own"].gflops == pytest.approx(2 * 32**3 / 2e-3 / 1e9)
    assert found["own"].share_of_vendor == 0.5
    assert found["own"].share_of_peak == pytest.approx(2 * 32**3 / 2e-3 / ROOF.fma_flops_per_second)
    assert found[VENDOR].share_of_vendor == 1.0
    assert found["own"].timing.n == 3
    assert found["own"].relative_error < found["own"].allowed_error


def test_the_measured_peak_is_that_of_float32_alone() -> None:
    assert rows("float64", own=1e-3)["own"].share_of_peak is None


@pytest.mark.parametrize("name", ["hasty", "sloppy"])
def test_a_wrong_product_gets_no_time(name: str) -> None:
    found = rows(**{name: 1e-9, VENDOR: 1e-3})
    assert (found[name].right, found[name].timing, found[name].gflops) == (False, None, None)
    assert found[VENDOR].right
    text = every_row(GemmRecord(**described(FakeDevice(), ROOF), kind=KIND, rows=list(found.values())))
    assert f"| {name} | 8×8×8 | WRONG | – |" in text
    assert "infinite" in text or name == "sloppy"


@pytest.mark.parametrize("words", [("--dtypes", "float16"), ("--blocks", "some"), ("--sizes", "0")])
def test_words_that_mean_nothing_are_one_line(tmp_path, words) -> None:
    refused = edgeconv("bench", "gemm", *words, cwd=tmp_path)
    assert (refused.code, len(refused.error_lines)) == (2, 1)


def test_the_committed_record_fits_the_schema() -> None:
    path = PROJECT / "docs" / "results" / "bench_gemm_h200.json.xz"
    record = read(path)
    jsonschema.validate(plain(record), LADDERS.schema())
    assert all(row.right for row in record.rows)


def test_the_page_has_every_step_type_and_size() -> None:
    path = PROJECT / "docs" / "results" / "bench_gemm_h200.json.xz"
    record = read(path)
    table = ladders.gemm_sizes(record)
    assert len(table.rows) == len(STEPS) * len(REALS)
    row = next(r for r in record.rows if (r.step, r.dtype, r.size) == ("shared", "float64", 4096))
    line = next(found for found in table.rows if found[:2] == ("`shared`", "float64"))
    assert line[table.header.index("4096")] == f"{digits_text(row.gflops, 4)} ({share_text(row.share_of_vendor)})"


def test_an_unknown_step_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="double_buffer"):
        gemm_kernels.step("fastest")


RUNGS = [(entry.name, dtype, block) for entry in STEPS for dtype in REALS for block in (entry.blocks[dtype] or (None,))]
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


@pytest.mark.skipif(cuda_unavailable_reason() is None, reason="there is a GPU here")
def test_without_a_gpu_it_says_what_is_missing(tmp_path) -> None:
    refused = edgeconv("bench", "gemm", cwd=tmp_path)
    assert (refused.code, len(refused.error_lines)) == (4, 1)


@pytest.mark.gpu
def test_the_whole_ladder_on_a_gpu(tmp_path) -> None:
    done = edgeconv("bench", "gemm", "--sizes", "512", "--blocks", "all", "--time-limit", "0.01", cwd=tmp_path)
    assert done.code == 0, done.err
    jsonschema.validate(json.loads((tmp_path / "gemm.json").read_text(encoding="utf-8")), LADDERS.schema())
