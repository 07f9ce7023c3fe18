"""Measure the CPU engine's threads: how soon they work, what settings change, fresh outputs, and four processes.

    python3 scripts/benchmark_crew.py --output docs/results/crew_NAME.json [--parts wake,settings,fresh,processes]
    python3 scripts/docs.py --pack                 puts it beside the other small records

`wake`: microseconds of a job of empty units, and of one in which every thread waits for all others, with threads that
are awake and that sleep; beside the Python threads of pool.py. `settings`: medians of
runs with one setting of the engine changed, the settings in turns. `fresh`: a result in new memory beside a plan that
writes to the same array again. `processes`: pictures per second of four processes at once, of one process, and of four
threads of one process. Compare within a run only.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from script_options import Arguments

import edgeconv
from edgeconv.bench.synthetic import bench_filter
from edgeconv.core.noise import noise_pixels
from edgeconv.hardware.cpu import crew, jit
from edgeconv.hardware.pool import POOL
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.methods.cpu import division, engine, layout, staging
from edgeconv.methods.options import Options
from edgeconv.run.report import header
from edgeconv.runtime.devices import get_device

MICROSECOND = 1e-6

UNITS = """
define void @nothing(ptr %arguments, i64 %worker, i64 %first, i64 %stop) {
  ret void
}
define void @meet(ptr %arrived, i64 %worker, i64 %first, i64 %stop) {
entry:
  %place = getelementptr i64, ptr %arrived, i64 1
  %all = load i64, ptr %place
  %before = atomicrmw add ptr %arrived, i64 1 seq_cst
  %round = udiv i64 %before, %all
  %next = add i64 %round, 1
  %wanted = mul i64 %next, %all
  br label %look
look:
  %now = load atomic i64, ptr %arrived seq_cst, align 8
  %early = icmp ult i64 %now, %wanted
  br i1 %early, label %look, label %over
over:
  ret void
}
"""
"""Units of nothing, and units that end when as many have begun as there are threads."""


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Median, p90 and least, in microseconds."""
    ordered = [value / MICROSECOND for value in seconds]
    return {
        "median": round(statistics.median(ordered), 2),
        "p90": round(float(np.quantile(ordered, 0.9)), 2),
        "least": round(min(ordered), 2),
    }


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


# --- wake -------------------------------------------------------------------------------------------------------------

AWAKE, SLEEPING = 2000, 100
SLEEP_SECONDS = 3e-3


def after_sleep(call: Callable[[], Any]) -> list[float]:
    """Seconds of calls after each of which everybody falls asleep."""
    found = []
    for _ in range(SLEEPING):
        time.sleep(SLEEP_SECONDS)
        found.append(timed(call))
    return found


def measure_wake() -> list[dict[str, Any]]:
    """One row for each number of threads, kind of threads and state."""
    code = jit.compile_module(UNITS, jit.processor())
    meet_in_python = code.function("meet", 4)

    def meet_as(address: int, worker: int) -> None:
        meet_in_python(address, worker, 0, 1)

    rows = []
    for threads in sorted({2, 4, 8, 16, usable_threads()} & set(range(2, usable_threads() + 1))):
        arrived = np.array([0, threads], np.int64)
        address = arrived.ctypes.data

        def job(name: str, threads: int = threads, address: int = address) -> crew.CrewJob:
            return crew.CrewJob(code, name, address, threads, asked=threads, most_threads=threads)

        empty, meeting = job("nothing"), job("meet")
        calls: dict[tuple[str, str], Callable[[], Any]] = {
            ("crew", "empty units"): empty.run,
            ("crew", "all meet"): meeting.run,
            ("python threads", "empty units"): partial(POOL.run, lambda worker: None, threads),
            ("python threads", "all meet"): partial(POOL.run, partial(meet_as, address), threads),
        }
        for (kind, what), call in calls.items():
            for _ in range(20):
                call()
            states = {"awake": [timed(call) for _ in range(AWAKE)], "asleep": after_sleep(call)}
            if kind == "crew":
                crew.CREW.bind_sleepers(False)
                after_sleep(call)
                states["asleep, bound to no core"] = after_sleep(call)
                crew.CREW.bind_sleepers(True)
            for state, seconds in states.items():
                row = {"threads": threads, "kind": kind, "what": what, "state": state}
                rows.append(row | {"microseconds": quantiles(seconds)})
                print(rows[-1], flush=True)
    return rows


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EngineSetting:
    """One value of the engine changed."""

    name: str
    module: Any = None
    constant: str = ""
    value: Any = None
    in_code: bool = False
    """Whether it changes the generated code, beside what a plan tells of itself."""

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Plans that are made inside the block have it."""
        if self.module is None:
            yield
            return
        before = getattr(self.module, self.constant)
        setattr(self.module, self.constant, self.value)
        engine.code_for.cache_clear()
        try:
            yield
        finally:
            setattr(self.module, self.constant, before)
            engine.code_for.cache_clear()


MIB = 2**20
SETTINGS = (
    EngineSetting("as it is"),
    *(EngineSetting(f"strips of {rows} rows at most", division, "STRIP_ROWS", rows) for rows in (16, 32, 128)),
    *(EngineSetting(f"{strips} strips per thread", division, "STRIPS_PER_THREAD", strips) for strips in (2, 8)),
    *(
        EngineSetting(f"a thread for {seconds / MICROSECOND:g} µs", division, "THREAD_SECONDS", seconds)
        for seconds in (12e-6, 24e-6)
    ),
    *(
        EngineSetting(f"units of {seconds / MICROSECOND:g} µs", division, "UNIT_SECONDS", seconds)
        for seconds in (2e-6, 8e-6)
    ),
    *(
        EngineSetting(f"past the caches from {size} MiB", engine, "STREAMING_BYTES", size * MIB)
        for size in (0, 32, 64, 1024)
    ),
    *(
        EngineSetting(
            f"asking {distance >> 10} KiB ahead while staging", staging, "FETCH_AHEAD_BYTES", distance, in_code=True
        )
        for distance in (1 << 10, 2 << 10, 8 << 10, 16 << 10)
    ),
    *(
        EngineSetting(f"short tiles of {share:g} of the L1 cache", layout, "L1_SHARE", share, in_code=True)
        for share in (0.4, 1.6)
    ),
    EngineSetting("no short tiles", layout, "_wants_short_tiles", lambda lowering: False, in_code=True),
    EngineSetting("asking for the next rows while computing", layout, "MULTIPLY_ADDS_TO_HIDE_A_LINE", 0, in_code=True),
    EngineSetting("never asking while computing", layout, "MULTIPLY_ADDS_TO_HIDE_A_LINE", 10**9, in_code=True),
)
OF_TILES = ("L1_SHARE", "_wants_short_tiles")
"""Settings that change nothing where tiles are as long as before."""
GENERAL = ("float32", "random", "mix")
PLAIN, SOBEL = ("uint8", "laplacian8", "each"), ("uint8", "sobel", "each")
CASES = (
    *((*GENERAL, stride, size) for size in (128, 256, 512, 1024, 2048, 4096) for stride in (1, 3)),
    *((*kind, 1, size) for kind in (PLAIN, SOBEL) for size in (128, 256, 512, 1024, 2048, 4096)),
)
CASE_SECONDS, MOST_SAMPLES, LEAST_SAMPLES = 1.5, 60, 5


def measure_settings(seconds: float) -> list[dict[str, Any]]:
    """One row for each case, with a median per setting; every run follows one that is not counted."""
    rows = []
    for dtype, name, channels, stride, size in CASES:
        image = noise_pixels(size, size, dtype)
        chosen = bench_filter(name, channels)
        plans: dict[Any, list[tuple[str, Callable[[], Any]]]] = {}
        tile_pixels = 0
        out = None
        for setting in SETTINGS:
            with setting.in_force():
                plan = edgeconv.plan(
                    image.shape,
                    dtype,
                    filter=chosen,
                    channels=channels,
                    stride=stride,
                    method="sliding",
                    device="cpu",
                )
            choice = plan.method_plan.choice
            how = tuple(choice[key] for key in ("threads", "strip_rows", "streaming_stores"))
            if setting.module is None:
                tile_pixels = choice["tile_pixels"]
            if setting.in_code:
                if not choice["streaming_stores"]:
                    continue
                if choice["tile_pixels"] == tile_pixels and setting.constant in OF_TILES:
                    continue
                how = (*how, setting.name)
            if out is None:
                out = np.zeros(plan.output_shape, plan.output_dtype)
            plans.setdefault(how, []).append((setting.name, partial(plan, image, out=out)))
        samples: dict[Any, list[float]] = {how: [] for how in plans}
        started = time.perf_counter()
        while time.perf_counter() - started < seconds or len(samples[how]) < LEAST_SAMPLES:
            for how, same in plans.items():  # settings that change nothing here share their samples
                same[0][1]()
                samples[how].append(timed(same[0][1]))
            if len(samples[how]) >= MOST_SAMPLES * 10:
                break
        row: dict[str, Any] = {"dtype": dtype, "filter": name, "channels": channels, "stride": stride, "size": size}
        row["settings"] = {
            name: {
                "threads": how[0],
                "strip_rows": how[1],
                "streaming": how[2],
                "microseconds": quantiles(samples[how]),
            }
            for how, same in plans.items()
            for name, _ in same
        }
        rows.append(row)
        base = row["settings"]["as it is"]
        shown = [
            f"{name} {found['microseconds']['median']}" for name, found in row["settings"].items() if found != base
        ]
        print(dtype, name, f"s{stride}", size, base, "|", "; ".join(shown), flush=True)
    return rows


def measure_spin(seconds: float) -> list[dict[str, Any]]:
    """Runs with a pause of the caller between them, for several times that helpers stay awake."""
    rows = []
    for size in (128, 512, 1024):
        image = noise_pixels(size, size, "float32")
        chosen = bench_filter("random", "mix")
        plan = edgeconv.plan(image.shape, "float32", filter=chosen, method="sliding", device="cpu")
        out = np.zeros(plan.output_shape, plan.output_dtype)
        for pause in (0.0, 30e-6, 100e-6, 250e-6, 1e-3):
            found = {}
            for spin in (0.0, 50e-6, 100e-6, 200e-6, 300e-6, 500e-6):
                crew.CREW.set_pace(spin, crew.WAIT_SECONDS)
                samples = []
                started = time.perf_counter()
                call = partial(plan, image, out=out)
                while time.perf_counter() - started < seconds:
                    samples.append(timed(call))
                    resume = time.perf_counter() + pause
                    while time.perf_counter() < resume:
                        pass
                found[f"{spin / MICROSECOND:g}"] = quantiles(samples)
            crew.CREW.set_pace(crew.SPIN_SECONDS, crew.WAIT_SECONDS)
            rows.append({"size": size, "pause_microseconds": pause / MICROSECOND, "spin_microseconds": found})
            print(rows[-1], flush=True)
    return rows


# --- fresh outputs ----------------------------------------------------------------------------------------------------


def keep(held: list[Any], plan: Callable[[Any], Any], image: Any) -> None:
    """A result that stays with the three before it."""
    held.append(plan(image))
    del held[:-4]


def measure_fresh() -> list[dict[str, Any]]:
    """uint8, each channel by itself: `plan(image, out=)`, `plan(image)` and `convolve`."""
    rows = []
    for size in (512, 1024, 2048, 4096):
        image = noise_pixels(size, size, "uint8")
        rules: dict[str, Any] = {"channels": "each", "method": "sliding", "device": "cpu"}
        plan = edgeconv.plan(image.shape, "uint8", filter="laplacian8", **rules)
        out = np.zeros(plan.output_shape, plan.output_dtype)
        held: list[Any] = []
        calls: dict[str, Callable[[], Any]] = {
            "plan(image, out=)": partial(plan, image, out=out),
            "plan(image)": partial(plan, image),
            "plan(image), the last four kept": partial(keep, held, plan, image),
            "convolve": partial(edgeconv.convolve, image, "laplacian8", **rules),
        }
        samples: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(40):
            for name, call in calls.items():
                call()
                samples[name].append(timed(call))
        rows.append({"size": size} | {name: quantiles(found) for name, found in samples.items()})
        print(rows[-1], flush=True)
    return rows


# --- neighbours -------------------------------------------------------------------------------------------------------

NEIGHBOURS = 4
NEIGHBOUR_SECONDS = 1.5


def filter_for_a_while(size: int, threads: int | None, ready: Any, done: Any) -> None:
    """Pictures one after another, from the moment when all are ready; their number goes to `done`."""
    image = noise_pixels(size, size, "float32")
    chosen = bench_filter("random", "mix")
    options = Options(threads=threads)
    plan = edgeconv.plan(image.shape, "float32", filter=chosen, method="sliding", device="cpu", options=options)
    out = np.zeros(plan.output_shape, plan.output_dtype)
    plan(image, out=out)
    ready.wait()
    pictures, started = 0, time.perf_counter()
    while time.perf_counter() - started < NEIGHBOUR_SECONDS:
        plan(image, out=out)
        pictures += 1
    done.put(pictures / (time.perf_counter() - started))


def measure_processes() -> list[dict[str, Any]]:
    """Pictures per second in all."""
    rows = []
    context = multiprocessing.get_context("spawn")
    for size in (512, 2048):
        for what, workers, threads, start in (
            ("one process", 1, None, context.Process),
            ("four processes", NEIGHBOURS, None, context.Process),
            ("four processes, one thread each", NEIGHBOURS, 1, context.Process),
            ("four threads", NEIGHBOURS, None, threading.Thread),
            ("one process", 1, None, context.Process),
        ):
            done: Any = context.Queue()
            ready: Any = threading.Barrier(workers) if start is threading.Thread else context.Barrier(workers)
            started = [start(target=filter_for_a_while, args=(size, threads, ready, done)) for _ in range(workers)]
            for worker in started:
                worker.start()
            rates = [done.get(timeout=60) for _ in started]
            for worker in started:
                worker.join()
            rows.append({"size": size, "what": what, "pictures_per_second": round(sum(rates), 1)})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--parts", default="wake,spin,settings,fresh,processes", help="What is measured, with commas.")
    parser.add_argument("--seconds", type=float, default=CASE_SECONDS, help="Time for each case of settings.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "wake": measure_wake,
        "spin": lambda: measure_spin(0.15),
        "settings": lambda: measure_settings(asked.seconds),
        "fresh": measure_fresh,
        "processes": measure_processes,
    }
    record: dict[str, Any] = {
        **header(),
        "kind": "crew",
        "versions": installed_versions(),
        "host": get_device("cpu").describe(),
    }
    for name in asked.parts.split(","):
        started = time.perf_counter()
        record[name] = parts[name]()
        print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
        write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
