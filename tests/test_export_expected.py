"""Markdown, HTML and CSV as a whole: every heading, line and cell of a bench, two runs and ladders, read by a person.

The files are in tests/expected. After a wanted change, `PYTHONPATH=.:tests python tests/test_export_expected.py` writes
them anew; what is then different shows in the commit. Drawings and pictures are left out (`test_export_plots.py`, and
`test_export_pictures.py`), and so is the frame of the page, which holds no figure.
"""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_records import BrokenPeer, Peer, TimedMethod, WrongMethod, changed, measured
from run_reports import run_report

from edgeconv.api.figures import DeviceFacts
from edgeconv.bench import goals
from edgeconv.bench.goals import Goal
from edgeconv.bench.ladders.base import LadderRecord
from edgeconv.bench.record import BenchRecord, LeftOut, Train
from edgeconv.core.records import as_type, plain
from edgeconv.export import find_exporter
from edgeconv.export.schemas import AnyRecord
from edgeconv.hardware.device import Roof
from edgeconv.run.report import RunReport

EXPECTED = Path(__file__).parent / "expected"

BARS = (
    Goal("floor", 0.3, "cpu float32 random mix", (16,), (1,), ("honest",), ("peer",), "what <binds> it"),
    Goal("call", 15e-6, "cpu float32 random mix", (16,), (1,), ("honest",), ("peer",), "the clock & bus"),
    Goal("lead", 1.5, "cpu float32 random mix", (8, 16), (1,), ("honest",), ("peer",)),
)


def bench(patch: pytest.MonkeyPatch) -> BenchRecord:
    """Two sizes on a CPU, and one row of a GPU; each candidate has other figures, and each figure its own value."""
    peer, broken = Peer("peer", [4e-3]), BrokenPeer("a <b> & | c", [])
    made = measured(patch, TimedMethod("honest", [2e-3]), WrongMethod("hasty", [1e-6]), peer, broken)
    for row in made.rows:
        if row.reason and row.candidate == "hasty":
            row.reason = "1 wrong sample <of> 2 | worst here"
    for row in made.rows:
        changed(row, set_up_seconds=None, cold_seconds=None)
        if row.check is not None:
            changed(row.check, relative_error=0.25, max_abs_error=0.5)
    for number, row in enumerate(row for row in made.rows if row.timings):
        series = changed(row.timings["warm"], median_seconds=(1 + number) * 1e-4, p10_seconds=9e-5, p90_seconds=8e-3)
        changed(series, n=30 + number, stopped_because="noise target", samples_seconds=[(1 + number) * 1e-4] * 5)
        metrics = changed(row.metrics["warm"], gflops=1000.0 + number, useful_gflops=700.25 + number)
        changed(metrics, gigabytes_per_second=50.5 + number, moved_gigabytes_per_second=80.75 + number)
        changed(metrics, floor_share=0.5 - number / 50, large_copy_share=0.3 + number / 50, roofline_share=None)
        changed(metrics, bound_by="arithmetic")
        changed(row, timings={"warm": series}, metrics={"warm": metrics}, launch_bound=number == 1, differs=None)
        changed(row.counts, intensity_flops_per_byte=6.0 + number)
        if row.check is not None:
            changed(row.check, relative_error=(1 + number) * 1e-7)
            row.launch = Train(1e-6 * number, 5e-6 * number)
        if row.kind == "peer":
            row.differs = "rounds <down> | up"
    on_gpu = copy.deepcopy(next(row for row in made.rows if row.candidate == "honest" and row.case.size == 8))
    changed(on_gpu, device="cuda", workspace_bytes=54321, moved_bytes=8765, launches=5)
    changed(on_gpu, set_up_seconds=7.5, cold_seconds=6.25)
    changed(on_gpu.check, max_abs_error=0.125, checked_share=0.75)
    changed(on_gpu.counts, nominal_flops=11, useful_flops=7, fewest_bytes=3)
    changed(made, rows=[*made.rows, on_gpu], complete=False, wall_seconds=12.6, created_utc="2001-02-03T04:05:06+00:00")
    made.machine["cuda"] = DeviceFacts(name="made-up GPU", compute_capability="9.0")
    made.roofs = {"cpu": Roof(2.5e10, 3.5e12, "made <up>"), "cuda": Roof(4.5e12, 6e13, "made up too")}
    changed(made, versions={"python": "3", "numpy": "<2>"}, edgeconv_version="0.0.1")
    made.left_out = [LeftOut(name="cudnn", kind="peer", device="cuda", reason="no cuDNN | here")]
    made.warnings.append("the clock was <low>")
    return made


def one_run() -> RunReport:
    made = run_report("h200", "cuda_cudnn_s1")
    assert isinstance(made, RunReport)
    changed(made, created_utc="2001-02-03T04:05:06+00:00", edgeconv_version="0.0.1", whole_run_seconds=1.5)
    changed(made, versions={"python": "3", "numpy": "2"})
    changed(made.device, kind="cuda", name="made-up GPU")
    made.phases_seconds = {"decode": 0.25, "set_up": 0.125, "host_to_device": 4.4e-4, "convolve": 0.0625}
    made.phases_seconds |= {"device_to_host": 6.6e-6, "encode": 0.75}
    changed(made.timing.kernel, median_seconds=3e-3)
    changed(made.check, max_abs_error=0.25, relative_error=3e-7, checked_share=0.75)
    changed(made.speed, kernel_gflops=4321.5, end_to_end_gflops=21.25, gigabytes_per_second=1234.5)
    changed(made.speed, memory_floor_share=0.75, roofline_share=0.8, bound_by="memory")
    made.speed.roof = Roof(4.5e12, 6e13, "measured <here>")
    changed(made.input, file="a <b> | c.png", width=30, height=20, channels=3, dtype="uint8")
    changed(made.output, file="out.png", width=15, height=10, channels=1, dtype="uint16")
    made.check.passed = True
    return made


def runs() -> list[RunReport]:
    right, wrong = one_run(), one_run()
    wrong.problem.stride, wrong.check.passed = 3, False
    wrong.created_utc = "2001-02-03T04:05:05+00:00"
    del wrong.phases_seconds["encode"]
    return [right, wrong]


HEAD = {
    "schema_version": 1,
    "edgeconv_version": "0",
    "created_utc": "2001-02-03T04:05:06+00:00",
    "machine": {"name": "made-up GPU"},
    "versions": {},
    "roof": {"copy_bytes_per_second": 1.0, "fma_flops_per_second": 1.0, "how": ""},
}


def ladder_row(step: str, block: str | None, microseconds: float | None, **rest: Any) -> dict[str, Any]:
    """A step with its time, or one whose output is wrong."""
    timing = {"p10_seconds": 1.5e-9, "p90_seconds": 2.5e-9, "n": 7, "min_seconds": 1e-9}
    if microseconds is not None:
        seconds = microseconds * 1e-6
        timing |= {"median_seconds": seconds, "stopped_because": "sample limit", "samples_seconds": [seconds] * 7}
    clocks = {"sm_clock_min_mhz": None, "sm_clock_max_mhz": None}
    return {
        "step": step,
        "block": block,
        "right": microseconds is not None,
        "relative_error": 3e-7,
        "timing": None if microseconds is None else timing,
        "allowed_error": 1e-6,
        "machine": {**clocks, "others_busy_share": None, "flags": []},
        **rest,
    }


def ladder() -> LadderRecord:
    figures = {"size": 4096, "dtype": "float32", "stride": 1, "gflops": 1234.5, "share": 0.25, "gain": None}
    rows = [
        ladder_row("copy", None, 10.0, **{**figures, "gflops": None, "share": 1.0}),
        ladder_row("textbook", "16×16", 40.0, **figures),
        ladder_row("textbook", "8×8", 50.0, **{**figures, "gflops": 999.5, "share": 0.2}),
        ladder_row("sliding", None, 20.0, **{**figures, "gflops": 2469.0, "share": 0.5, "gain": 2.0}),
        ladder_row("pixel", "16×16", None, **{**figures, "size": 1024, "gflops": None, "share": None}),
        ladder_row("waves", None, 5.0, **{**figures, "size": 1024, "stride": 2, "gflops": 77.5}),
    ]
    rows[2]["right"] = False
    return as_type({**HEAD, "kind": "bench conv", "rows": rows}, LadderRecord)


def products() -> LadderRecord:
    figures = {"size": 4096, "dtype": "float64", "stride": None, "gflops": 345.5, "share": 0.125, "gain": None}
    rows = [
        ladder_row("naive", "64×64×8", 70.0, **figures),
        ladder_row("cublas", None, 60.0, **{**figures, "dtype": "float32", "share": 1.0, "gain": 1.25}),
    ]
    return as_type({**HEAD, "kind": "bench gemm", "rows": rows}, LadderRecord)


def shown() -> dict[str, str]:
    """The files by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goals, "GOALS", BARS)
        records: list[AnyRecord] = [bench(patch), *runs(), ladder(), products()]
        kinds = ["bench", "run", "run", "bench conv", "bench gemm"]
        assert [plain(record)["kind"] for record in records] == kinds
        files = {
            ending: content
            for name in ("markdown", "html", "csv")
            for ending, content in find_exporter(name)(records).items()
        }
    found = {f"everything{ending}": content.decode().replace("\r\n", "\n") for ending, content in files.items()}
    return found | {"everything.html": without_drawings(found["everything.html"])}


def without_drawings(page: str) -> str:
    """The title and the body; of a drawing only what it is called, of a picture nothing."""
    title = page[page.index("<title>") : page.index("</title>")]
    body = page[page.index("<h1>") : page.index("</main>")]
    body = re.sub(r'<svg [^>]*( aria-label="[^"]*")[^>]*>.*?</svg>', r"<svg\1>", body, flags=re.DOTALL)
    return f"{title}\n{body}"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return shown()


@pytest.mark.parametrize("name", ["everything.md", "everything.html", "everything.csv"])
def test_the_whole_file_is_as_it_was_read(name: str, files: dict[str, str]) -> None:
    expected = (EXPECTED / name).read_text(encoding="utf-8")
    for number, (found, wanted) in enumerate(zip(files[name].splitlines(), expected.splitlines(), strict=False), 1):
        assert found == wanted, f"line {number} of {name}"
    assert files[name] == expected


if __name__ == "__main__":
    for name, text in shown().items():
        (EXPECTED / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(text):,} letters\n")
