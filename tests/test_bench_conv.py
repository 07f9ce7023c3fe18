"""`bench conv` but for the GPU: what is checked, what gets a time, and the figures; and on a GPU, all of it."""

from __future__ import annotations

import csv
import io
import json
from itertools import cycle

import jsonschema
import numpy as np
import pytest
from bench_records import ROOF, FakeDevice
from command import PROJECT, edgeconv, script

from edgeconv.bench.ladders import conv
from edgeconv.bench.ladders.base import PROFILE, Contender, LadderProfile, described
from edgeconv.bench.ladders.conv import COPY, KIND, ConvRecord, make_case, time_case
from edgeconv.bench.ladders.conv_kernels import STEPS
from edgeconv.bench.watch import Watch
from edgeconv.core.records import plain
from edgeconv.core.timing import Budget
from edgeconv.core.units import seconds_text
from edgeconv.export import ladders
from edgeconv.export.kinds import read
from edgeconv.export.markdown import every_row
from edgeconv.export.schemas import LADDERS
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.io.records import read_record
from edgeconv.methods.options import Options
from edgeconv.methods.reference import Reference

RESULTS = PROJECT / "docs" / "results"
BUDGET = Budget(min_samples=3, max_samples=3, time_limit_seconds=1000.0)
profiler = script("profile_conv_ladder")
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
    return ConvRecord(**described(device, ROOF), kind=KIND, rows=rows)


def test_figures_are_those_of_the_formulas() -> None:
    made = record([(COPY, None, 1e-4), (FIRST, "16×16", 8e-4), (FIRST, "8×8", 1e-3), (SECOND, "16×16", 2e-4)])
    jsonschema.validate(plain(made), LADDERS.schema())
    copy, first, other, second = made.rows
    assert (copy.share_of_floor, copy.gflops, copy.gain) == (1.0, None, None)
    assert first.gflops == pytest.approx(2 * 81 * 8 * 8 / 8e-4 / 1e9)
    assert (first.share_of_floor, first.gain) == (0.125, None)
    assert other.share_of_floor == pytest.approx(0.1)
    assert (second.share_of_floor, second.gain) == (0.5, pytest.approx(4.0))  # over the usual blocks
    assert {row.l2_state for row in made.rows} == {"cold"}
    assert "| stride 2 | 16 | pixel | 16×16 | 200 µs | 0.05184 | 4.00 × | 50% |" in every_row(made)


def test_a_wrong_step_gets_no_time_and_the_next_no_gain() -> None:
    made = record([(COPY, None, 1e-4), (FIRST, "16×16", 1e-9), (SECOND, "16×16", 2e-4)], wrong=FIRST)
    jsonschema.validate(plain(made), LADDERS.schema())
    _, first, second = made.rows
    assert (first.right, first.timing, first.gflops, first.relative_error) == (False, None, None, None)
    assert (second.right, second.gain) == (True, None)
    assert f"| {FIRST} | 16×16 | WRONG | – |" in every_row(made)


def test_every_size_and_stride_is_measured_and_told_of(monkeypatch) -> None:
    device = FakeDevice()

    def only_the_copy(work: conv.LadderCase, blocks: str, on: FakeDevice) -> list[Contender]:
        return [Contender(COPY, blocks, None, on.copier(work.counts.fewest_bytes))]

    monkeypatch.setattr(conv, "contenders", only_the_copy)
    told: list[tuple[int, str]] = []
    seen = Watch("cpu")
    made = conv.measure((8, 16), (1, 3), "all", BUDGET, device, seen, lambda done, note: told.append((done, note)))
    jsonschema.validate(plain(made), LADDERS.schema())
    assert [(row.size, row.stride) for row in made.rows] == [(8, 1), (16, 1), (8, 3), (16, 3)]
    assert told == [(0, "8 stride 1"), (1, "16 stride 1"), (2, "8 stride 3"), (3, "16 stride 3")]
    assert {row.idea for row in made.rows} == {"all"}


@pytest.mark.parametrize(
    "words", [("--strides", "4"), ("--strides", "x"), ("--blocks", "some"), ("--sizes", "0"), ("--time-limit", "0")]
)
def test_words_that_mean_nothing_are_one_line(tmp_path, words) -> None:
    refused = edgeconv("bench", "conv", *words, cwd=tmp_path)
    assert (refused.code, len(refused.error_lines)) == (2, 1)


@pytest.mark.skipif(cuda_unavailable_reason() is None, reason="there is a GPU here")
def test_without_a_gpu_it_says_what_is_missing(tmp_path) -> None:
    refused = edgeconv("bench", "conv", cwd=tmp_path)
    assert (refused.code, len(refused.error_lines)) == (4, 1)


@pytest.mark.gpu
def test_the_whole_ladder_on_a_gpu(tmp_path) -> None:
    done = edgeconv("bench", "conv", "--sizes", "250,256", "--blocks", "all", "--time-limit", "0.01", cwd=tmp_path)
    assert done.code == 0, done.err
    jsonschema.validate(json.loads((tmp_path / "conv.json").read_text(encoding="utf-8")), LADDERS.schema())


# --- the page -----------------------------------------------------------------------------------------------------


def committed() -> ConvRecord:
    return read(RESULTS / "bench_conv_h200.json.xz")


def test_the_committed_record_fits_the_schema_and_is_right() -> None:
    made = committed()
    jsonschema.validate(plain(made), LADDERS.schema())
    assert all(row.right for row in made.rows)


def test_the_page_sets_what_was_predicted_beside_what_came() -> None:
    made, profile = committed(), read_record(RESULTS / "conv_ladder_profile_h200.json", {PROFILE: LadderProfile})
    table = ladders.conv_steps(made, profile)
    assert [line[0] for line in table.rows] == [f"`{step.name}`" for step in STEPS]
    for step, line in zip(STEPS, table.rows, strict=True):
        assert (line[1], line[2]) == (step.idea, step.because)
        row = next(r for r in made.rows if (r.step, r.size, r.stride) == (step.name, 4096, 1))
        assert line[5] == seconds_text(row.timing.median_seconds)
    assert ladders.conv_blocks(made).header[1:4] == ("16×16", "8×8", "32×32")


def test_what_the_profiler_prints_becomes_a_row_a_step() -> None:
    counters = [*profiler.COUNTERS.values(), *profiler.BUSY.values()]
    head = ["ID", "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg", *counters]
    units = ["", "", *["inst"] * len(counters)]
    launches = [[str(n), '"step:textbook:none:none"', *["1,000"] * len(counters)] for n in range(3)]
    launches.append(["3", '"step:pixel:none:none"', *["7"] * len(counters)])
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([head, units, *launches])
    textbook, pixel = profiler.parse("==PROF== connected\n" + text.getvalue())
    assert (textbook.step, textbook.launches, pixel.step, pixel.launches) == ("textbook", 3, "pixel", 1)
    assert (textbook.instructions, textbook.l2_busy_percent, pixel.dram_bytes) == (3000.0, 1000.0, 7.0)
