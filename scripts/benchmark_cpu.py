"""The CPU engine against what a user would run instead: raw figures to JSON, and a table with goal and figure.

    python scripts/benchmark_cpu.py --out docs/results/cpu_two_cores        measures; writes .json and .md
    python scripts/benchmark_cpu.py --only mix --sizes 512,4096             a part, printed

Ours and the peers take turns within a round, so that what else the machine does falls on all of them; the figure
of a goal is the median over the rounds of (our time / the fastest peer's time in the same round). Small pictures
are run several times in a row within a turn, after one run that is not timed. Between turns there is a pause, in
which other libraries' threads stop spinning. Rounds in which other processes were busy are left out, as far as
enough remain. Every entrant's result is compared with the oracle before anything is timed.

The floor of a row is the time that a copy of its fewest bytes takes, timed in every round beside the entrants on
as many threads as pay for it; for float32 the time of its useful FLOPs at the measured FMA rate where that is
longer (whole-number sums are not bound by float32's rate).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cpu_peers as peers
import numpy as np
from numpy.typing import NDArray

from edgeconv.core.cost import count
from edgeconv.core.filters import RGB_CHANNELS, WeightSet, named_filter, weight_set
from edgeconv.core.problem import Problem, StoredMode, make_problem
from edgeconv.core.timing import summarize
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.pool import run_pieces, threads_for
from edgeconv.hardware.threads import usable_threads
from edgeconv.methods import require
from edgeconv.methods.options import Options
from edgeconv.runtime import check
from edgeconv.runtime.devices.cpu import processor_name

SIZES = (128, 256, 512, 1024, 2048, 4096)
ROUNDS = 25
FEWEST_ROUNDS = 7
ROW_SECONDS = 8
"""No new round after this long, once there are `FEWEST_ROUNDS`."""
QUIET_SHARE = 0.15
PAUSE_SECONDS = 0.004
TURN_SECONDS = 0.003
"""A turn repeats a run until it has lasted about as long."""
CHECKED_SAMPLES = 2_000_000
SEED = 20261121
COPY = "copy"


def general_mix() -> WeightSet:
    """27 different weights an output: nothing for a method to share."""
    weights = np.random.default_rng(SEED).uniform(-1, 1, (1, 3, 3, 3, 3)).astype(np.float32)
    return WeightSet(weights, groups=1)


@dataclass(frozen=True)
class Contest:
    """One kind of work: who takes part, and what is to be reached."""

    name: str
    what: str
    dtype: str
    weights: Callable[[], WeightSet]
    output_mode: StoredMode
    strides: tuple[int, ...]
    method: str
    entrants: tuple[tuple[str, peers.Prepare], ...]
    goal_ratio: float
    """Our time may be at most so much of the fastest peer's."""
    ratio_from: int = 128
    """Smallest side that `goal_ratio` is asked of; below it the goal is to be faster."""
    goal_floor: float | None = None
    """Share of the floor to be reached at 4096, stride 1."""


OPENCV = (("OpenCV", peers.opencv_filter),)
NEURAL = (
    ("PyTorch channels-last", peers.torch_channels_last),
    ("OpenVINO", peers.openvino_nhwc),
    ("ONNX Runtime", peers.onnxruntime_nhwc),
)


def laplacian(channels: Any) -> Callable[[], WeightSet]:
    """laplacian8 spread over the channels."""
    return lambda: weight_set(named_filter("laplacian8"), channels)


CONTESTS = (
    Contest("each-abs", "uint8 a channel, laplacian8, abs", "uint8", laplacian("each"), "abs", (1,), "sliding",
            OPENCV, 0.25, 2048, 0.5),
    Contest("each-clip", "uint8 a channel, laplacian8, clip", "uint8", laplacian("each"), "clip", (1,), "sliding",
            OPENCV, 0.25, 2048, 0.5),
    Contest("mix", "float32 3→3, general weights", "float32", general_mix, "raw", (1,), "sliding",
            NEURAL, 0.5, 1024, 0.5),
    Contest("mix-strided", "float32 3→3, general weights, strided", "float32", general_mix, "raw", (2, 3), "sliding",
            NEURAL, 1.0),
    Contest("mix-equal", "float32 3→3, equal filters (collapsed)", "float32", laplacian("mix"), "raw", (1,), "sliding",
            NEURAL, 1.0, 128, 0.6),
    Contest("each-float", "float32 a channel, laplacian8", "float32", laplacian("each"), "raw", (1,), "sliding",
            (), 1.0, 128, 0.6),
    Contest("magnitude", "uint8 a channel, Sobel magnitude", "uint8",
            lambda: weight_set(named_filter("sobel"), "each"), "abs", (1,), "sliding",
            (("OpenCV", peers.opencv_magnitude),), 0.35),
    Contest("im2col", "float32 3→3, general weights, im2col", "float32", general_mix, "raw", (1, 2, 3), "im2col",
            (("PyTorch unfold + matmul", peers.torch_unfold),), 1.0),
)  # fmt: skip


@dataclass
class Row:
    """What one work took everyone, and what came of the goals."""

    contest: str
    what: str
    size: int
    stride: int
    entrants: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    goals: list[dict[str, Any]] = field(default_factory=list)
    rounds: str = ""
    """How many were kept, and of how many."""


def measure(contest: Contest, size: int, stride: int, rounds: int, fma_rate: float) -> Row:
    """Check and time one work."""
    row = Row(contest.name, contest.what, size, stride)
    rng = np.random.default_rng(SEED)
    shape = (size, size, RGB_CHANNELS)
    image: NDArray[Any] = (
        rng.integers(0, 256, shape, np.uint8) if contest.dtype == "uint8" else rng.random(shape, np.float32)
    )
    problem = make_problem(
        shape, contest.dtype, contest.weights(), stride=stride, padding=1, output_mode=contest.output_mode
    )
    plan = require(contest.method, "cpu").prepare(problem, Options())
    out = np.empty(problem.output_shape, problem.output_dtype)

    def ours() -> NDArray[Any]:
        plan.run(image, out)
        return out

    runs: dict[str, Callable[[], Any]] = {"edgeconv": ours}
    for name, prepare in contest.entrants:
        try:
            runs[name] = prepare(problem, image)
        except ImportError as missing:
            row.left_out[name] = f"not installed ({missing.name})"
    for name, run in runs.items():
        found = check.check(image, run(), problem, max_samples=CHECKED_SAMPLES)
        row.entrants[name] = {
            "oracle": "agrees" if found.passed else f"differs: {found.unexplained_samples} samples, {found.worst}",
            "relative_error": found.relative_error,
        }
    row.entrants["edgeconv"] |= {"choice": plan.choice, "workspace_bytes": plan.workspace_bytes}
    runs[COPY] = copy_of(problem.input_bytes + problem.output_bytes)
    row.entrants[COPY] = {}
    samples, row.rounds = take_turns(runs, rounds)
    for name, series in samples.items():
        row.entrants[name] |= {
            "samples_seconds": series,
            **{key: value for key, value in vars(summarize(series)).items()},
        }
    judge(row, contest, samples, problem, fma_rate)
    return row


def take_turns(runs: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, list[float]], str]:
    """Seconds a run, one figure a round and entrant, and which rounds were kept.

    A round counts as quiet where other processes used at most `QUIET_SHARE` of the machine meanwhile. It goes on
    until `rounds` were quiet or the time is up; where fewer than `FEWEST_ROUNDS` were, all rounds are kept.
    """
    repeats = {}
    for name, run in runs.items():
        run()
        repeats[name] = max(1, round(TURN_SECONDS / timed(run, 1)))
    taken: list[tuple[float, dict[str, float]]] = []
    started = time.perf_counter()
    while sum(share <= QUIET_SHARE for share, _ in taken) < rounds:
        if len(taken) >= FEWEST_ROUNDS and time.perf_counter() - started > ROW_SECONDS:
            break
        before = Load.now()
        seconds = {}
        for name, run in runs.items():
            time.sleep(PAUSE_SECONDS)
            run()
            seconds[name] = timed(run, repeats[name])
        taken.append((Load.now().others_since(before), seconds))
    quiet = [seconds for share, seconds in taken if share <= QUIET_SHARE]
    kept = quiet if len(quiet) >= FEWEST_ROUNDS else [seconds for _, seconds in taken]
    told = f"{len(kept)} {'quiet' if kept is quiet else 'of all'} of {len(taken)}"
    return {name: [seconds[name] for seconds in kept] for name in runs}, told


def timed(run: Callable[[], Any], repeats: int) -> float:
    """Mean seconds of `repeats` runs in a row."""
    started = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - started) / repeats


def copy_of(moved_bytes: int) -> Callable[[], None]:
    """Copy half of `moved_bytes` to somewhere else, on all threads: the memory floor, measured."""
    source = np.ones(max(1, moved_bytes // 2), np.uint8)
    target = np.zeros_like(source)
    threads = threads_for(None, moved_bytes, usable_threads())
    cuts = np.linspace(0, source.size, threads + 1).astype(int)

    def piece(number: int, worker: int) -> None:
        part = slice(cuts[number], cuts[number + 1])
        np.copyto(target[part], source[part])

    return lambda: run_pieces(piece, threads, threads)


def measured_fma_rate() -> float:
    """float32 FLOPs a second of independent multiply-adds in registers, all threads, best of a few."""
    vector = jit.processor().vector_bytes // 4
    chains, steps = 12, 2_000_000
    lanes = f"<{vector} x float>"
    names = range(chains)
    phis = "\n".join(f"%a{i} = phi {lanes} [ zeroinitializer, %entry ], [ %b{i}, %loop ]" for i in names)
    fmas = "\n".join(
        f"%b{i} = call {lanes} @llvm.fmuladd.v{vector}f32({lanes} %a{i}, {lanes} %x, {lanes} %x)" for i in names
    )
    stores = "\n".join(
        f"%p{i} = getelementptr {lanes}, ptr %out, i64 {i}\nstore {lanes} %b{i}, ptr %p{i}, align 4" for i in names
    )
    text = f"""
declare {lanes} @llvm.fmuladd.v{vector}f32({lanes}, {lanes}, {lanes})
define void @work(ptr %out, i64 %worker) {{
entry:
  %x = load {lanes}, ptr %out, align 4
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %m, %loop ]
  {phis}
  {fmas}
  %m = add i64 %n, 1
  %more = icmp ult i64 %m, {steps}
  br i1 %more, label %loop, label %over
over:
  {stores}
  ret void
}}"""
    compiled = jit.compile_function(text, "work", jit.processor())
    threads = usable_threads()
    results = np.zeros((threads, chains * vector), np.float32)

    def piece(number: int, worker: int) -> None:
        compiled.function(results[number].ctypes.data, 0)

    best = min(timed(lambda: run_pieces(piece, threads, threads), 1) for _ in range(5))
    return 2 * vector * chains * steps * threads / best


def judge(row: Row, contest: Contest, samples: dict[str, list[float]], problem: Problem, fma_rate: float) -> None:
    """Write the goals of the row beside the figures."""
    ours = samples["edgeconv"]
    rivals = [series for name, series in samples.items() if name not in ("edgeconv", COPY)]
    if rivals:
        fastest = min(rivals, key=statistics.median)
        ratio = statistics.median(mine / theirs for mine, theirs in zip(ours, fastest, strict=True))
        goal = contest.goal_ratio if row.size >= contest.ratio_from else 1.0
        row.goals.append(goal_of("time / fastest peer", goal, ratio, ratio <= goal))
    counts = count(problem)
    memory = samples[COPY]
    arithmetic = counts.useful_flops / fma_rate if problem.dtype == np.float32 else 0.0
    share = statistics.median(max(copy, arithmetic) / mine for copy, mine in zip(memory, ours, strict=True))
    row.entrants["edgeconv"] |= {
        "floor_share": share,
        "floor_bound_by": "memory" if statistics.median(memory) >= arithmetic else "arithmetic",
        "nominal_gflops": counts.nominal_flops / statistics.median(ours) / 1e9,
        "useful_gflops": counts.useful_flops / statistics.median(ours) / 1e9,
    }
    if contest.goal_floor is not None and row.size == max(SIZES) and row.stride == 1:
        row.goals.append(goal_of("share of the floor", contest.goal_floor, share, share >= contest.goal_floor))


def goal_of(what: str, goal: float, figure: float, met: bool) -> dict[str, Any]:
    """One goal, ready for JSON."""
    return {"what": what, "goal": goal, "figure": round(figure, 3), "met": met}


# --- one picture, file to file ------------------------------------------------------------------------------------


def file_to_file(picture: Path, rounds: int) -> Row:
    """Whole commands in fresh processes, in turns: interpreter's start, decode, filter, encode."""
    row = Row("file", f"{picture.name}, uint8 a channel, file to file (whole process)", 0, 1)
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "edges.png")
        cli = [sys.executable, "-m", "edgeconv", "run", str(picture), "--channels", "each", "-o", folder]
        commands = {
            "edgeconv": [*cli, "--samples", "0", "--check", "none"],
            "edgeconv, measured and checked too": cli,
            "OpenCV script": [sys.executable, "-c", peers.OPENCV_SCRIPT, str(picture), target],
            "pyvips script": [sys.executable, "-c", peers.PYVIPS_SCRIPT, str(picture), target],
            "pyvips script, compression=1": [
                sys.executable,
                "-c",
                peers.PYVIPS_SCRIPT,
                str(picture),
                target + "[compression=1]",
            ],
        }
        for name in list(commands):
            tried = subprocess.run(commands[name], capture_output=True, text=True, check=False)
            if tried.returncode:
                row.left_out[name] = (tried.stderr.strip() or "failed").splitlines()[-1]
                del commands[name]
        samples: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                started = time.perf_counter()
                subprocess.run(command, capture_output=True, check=True)
                samples[name].append(time.perf_counter() - started)
    for name, series in samples.items():
        row.entrants[name] = {"samples_seconds": series, **vars(summarize(series))}
    rivals = [series for name, series in samples.items() if not name.startswith("edgeconv")]
    if "edgeconv" in samples and rivals:
        fastest = min(rivals, key=statistics.median)
        ratio = statistics.median(a / b for a, b in zip(samples["edgeconv"], fastest, strict=True))
        row.goals.append(goal_of("time / fastest peer", 1.0, ratio, ratio < 1.0))
    return row


# --- output -------------------------------------------------------------------------------------------------------


COLUMNS = (
    *("work", "side", "stride", "edgeconv", "peers", "copy", "share of the floor", "nominal / useful GFLOPS"),
    *("goal", "figure", "met", "rounds"),
)


def table(record: dict[str, Any]) -> str:
    """The record as Markdown: a line for every row."""
    lines = [
        "# The CPU engine beside its peers",
        "",
        f"Measured {record['when']} by `scripts/benchmark_cpu.py` on {record['processor']}, {record['threads']} threads"
        f" ({record['code_for']}). Versions: "
        + ", ".join(f"{name} {number}" for name, number in record["versions"].items())
        + ".",
        "",
        f"Medians of up to {record['rounds']} quiet rounds in milliseconds, p10–p90 beside ours; a row's entrants take"
        f" turns. A round is quiet where other processes used at most {QUIET_SHARE:.0%} of the machine."
        " *copy* moves the row's fewest bytes by memcpy: the memory floor."
        f" Multiply-adds in registers ran at {record['fma_gflops']:.0f} GFLOPS."
        f" Over all, other work took {record['other_load_share']:.0%} of the machine.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    for row in record["rows"]:
        ours = row["entrants"].get("edgeconv")
        others = {name: e for name, e in row["entrants"].items() if name not in ("edgeconv", COPY)}
        told = "; ".join(f"{name} {milliseconds(e)}{differs(e)}" for name, e in others.items()) or "–"
        told += "".join(f"; {name}: {reason}" for name, reason in row["left_out"].items())
        goals = row["goals"] or [{"what": "none set", "goal": "", "figure": "", "met": None}]
        met = {True: "yes", False: "**no**", None: ""}
        lines.append(
            "| "
            + " | ".join(
                [
                    row["what"],
                    str(row["size"] or ""),
                    str(row["stride"]),
                    f"{milliseconds(ours)} ({ours['p10_seconds'] * 1e3:.3g}–{ours['p90_seconds'] * 1e3:.3g})"
                    + differs(ours)
                    if ours
                    else "–",
                    told,
                    milliseconds(row["entrants"][COPY]) if COPY in row["entrants"] else "–",
                    f"{ours['floor_share']:.2f} ({ours['floor_bound_by']})" if ours and "floor_share" in ours else "–",
                    f"{ours['nominal_gflops']:.0f} / {ours['useful_gflops']:.0f}"
                    if ours and "nominal_gflops" in ours
                    else "–",
                    "<br>".join(f"{goal['what']} {goal['goal']}" for goal in goals),
                    "<br>".join(str(goal["figure"]) for goal in goals),
                    "<br>".join(met[goal["met"]] for goal in goals),
                    row["rounds"],
                ]
            )
            + " |"
        )
    return "\n".join(lines) + "\n"


def milliseconds(entrant: dict[str, Any]) -> str:
    """The median, three digits."""
    return f"{entrant['median_seconds'] * 1e3:.3g}"


def differs(entrant: dict[str, Any]) -> str:
    """A mark for a result that the oracle does not confirm."""
    return "" if entrant.get("oracle", "agrees") == "agrees" else f" ({entrant['oracle']})"


@dataclass(frozen=True)
class Load:
    """What the machine and this process have done so far, in CPU seconds."""

    wall: float
    machine: float
    own: float

    @classmethod
    def now(cls) -> Load:
        """Read the counters; where the system does not tell, nobody else seems to work."""
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        try:
            first_line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
        except OSError:
            return cls(time.perf_counter(), own, own)
        fields = [int(word) for word in first_line.split()[1:9]]
        idle = fields[3] + fields[4]
        return cls(time.perf_counter(), (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), own)

    def others_since(self, before: Load) -> float:
        """Share of the machine that other processes used."""
        others = (self.machine - before.machine) - (self.own - before.own)
        return max(0.0, others) / ((self.wall - before.wall) * (os.cpu_count() or 1))


def numbers(text: str) -> tuple[int, ...]:
    """`128,512` as numbers."""
    return tuple(int(word) for word in text.split(","))


def main(arguments: Iterable[str] | None = None) -> int:
    """Measure what was asked for and write or print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, help="write OUT.json and OUT.md")
    parser.add_argument("--only", help="names of contests, with commas; 'file' is the whole command")
    parser.add_argument("--sizes", type=numbers, default=SIZES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--picture", type=Path, default=Path("images/input_4096.png"))
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    wanted = chosen.only.split(",") if chosen.only else [*(contest.name for contest in CONTESTS), "file"]

    started, before = time.time(), Load.now()
    fma_rate = measured_fma_rate()
    rows = []
    for contest in CONTESTS:
        if contest.name not in wanted:
            continue
        for stride in contest.strides:
            for size in chosen.sizes:
                rows.append(measure(contest, size, stride, chosen.rounds, fma_rate))
                print(contest.name, size, stride, rows[-1].goals, flush=True)
    if "file" in wanted:
        rows.append(file_to_file(chosen.picture, max(5, chosen.rounds // 3)))
    record = {
        "schema_version": 1,
        "when": datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor_name(),
        "code_for": f"LLVM target {jit.processor().name}, {jit.processor().vector_bytes}-byte vectors",
        "threads": usable_threads(),
        "versions": peers.peer_versions(),
        "rounds": chosen.rounds,
        "fma_gflops": fma_rate / 1e9,
        "other_load_share": Load.now().others_since(before),
        "rows": [vars(row) for row in rows],
    }
    text = table(record)
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        chosen.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
