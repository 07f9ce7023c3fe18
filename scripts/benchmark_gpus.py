"""Measure what several GPUs of one host give over one, where no picture is decoded or encoded.

    python3 scripts/benchmark_gpus.py [--side 2048] [--pictures 2048] [--rounds 3]

Clusters of `edgeconv batch --devices` with one GPU and with all, by turns, each with the same number of threads per
GPU (the host's cores over its GPUs), warmed up, then timed from the first picture to the last outcome. Two works,
laplacian8 by channel, 8 bits in and out:

    memory   pictures in the worker's ordinary memory → GPU → kernel → ordinary memory; nothing else
    files    a whole batch: NPY files of a RAM disk are read and hashed, filtered, hashed and written as NPY, with a
             ledger; only compression is left out

The goal: two GPUs ≥ 1.8 times one, on `memory`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from script_options import PROJECT, Arguments, stopped

from edgeconv.batch import ledger, plan
from edgeconv.batch.engines import local_cluster
from edgeconv.batch.engines.cluster import Cluster
from edgeconv.batch.engines.local_cluster import VISIBLE, Seat
from edgeconv.batch.names import Names
from edgeconv.batch.pipeline import Batch
from edgeconv.batch.previous_results import PreviousResults
from edgeconv.batch.settings import Settings
from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker
from edgeconv.core.request import make_request
from edgeconv.core.timing import Stopwatch
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import write_image
from edgeconv.run import report
from edgeconv.runtime.auto import Choice
from edgeconv.runtime.devices import get_device

RAM_DISK = Path("/dev/shm")
GOAL = 1.8
DISTINCT = 16
"""Different pictures; the others are further names of these."""
WARM_UP = 64


@cache
def drawn(side: int, seed: int) -> NDArray[Any]:
    """A picture in the worker's memory before it is asked for again."""
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


class InMemory(PictureWorker):
    """A picture in memory; its task's folder says which, and how large."""

    def one(self, task: Task) -> PictureResult:
        """Without file, hash or row."""
        side, seed = (int(part) for part in task.folder.parts)
        watch = Stopwatch()
        self.convolve(drawn(side, seed), watch)
        return PictureResult(task.source, "done", None, watch.phases_seconds)


def settings_for(output: Path) -> Settings:
    """Laplacian by channel to NPY."""
    request = make_request("laplacian8", channels="each")
    names = Names("{stem}{ext}", request.filter.name, "sliding", 1)
    return Settings(request, Choice("sliding", "cuda", "for the benchmark"), str(output), names, format="npy")


def seconds_in_memory(engine: Cluster, output: Path, side: int, pictures: int) -> float:
    """Wall time of that many pictures."""
    settings = settings_for(output)
    work = InMemory(settings, settings.options, frozenset(), PreviousResults(str(output), ""))
    tasks = [Task(f"{n}.npy", PurePosixPath(str(side), str(n % DISTINCT)), f"{n}.npy") for n in range(pictures)]
    started = time.perf_counter()
    states = [outcome.state for outcome in engine.run(work, tasks, lambda: False, lambda outcome: None)]
    if states != ["done"] * pictures:
        raise stopped(f"{pictures - states.count('done')} pictures failed")
    return time.perf_counter() - started


def seconds_of_files(engine: Cluster, source: Path, output: Path, pictures: int) -> tuple[float, set[str]]:
    """Wall time of a batch of so many files, and hashes of its outputs."""
    tasks = plan.find_tasks([source], recursive=False).tasks[:pictures]
    summary = Batch(tasks, settings_for(output), engine).run()
    if summary.failed:
        raise stopped(f"{summary.failed} pictures failed, the first: {summary.failures[0]}")
    hashes = {f"{row.output} {row.output_sha256}" for row in ledger.read_rows(output)}
    shutil.rmtree(output)
    return summary.seconds, hashes


def draw_files(folder: Path, side: int, pictures: int) -> None:
    """`pictures` names of DISTINCT files."""
    for number in range(pictures):
        path = folder / f"{number:05}.npy"
        if number < DISTINCT:
            write_image(drawn(side, number), path)
        else:
            os.link(folder / f"{number % DISTINCT:05}.npy", path)


def main() -> int:
    """Measure, print, write; 1 where the goal is missed."""
    parser = Arguments(__doc__)
    parser.add_argument("--side", type=int, default=2048, help="Side of the pictures, in pixels.")
    parser.add_argument("--pictures", type=int, default=2048, help="Pictures of the batch.")
    parser.add_argument("--rounds", type=int, default=3, help="Rounds; medians are shown.")
    parser.add_argument(
        "--output",
        type=Path,
        default=PROJECT / "docs" / "results" / "batch_gpus.json",
        help="Write the figures to this file, as JSON.",
    )
    arguments = parser.parse_args()
    gpus = local_cluster.gpus_here()
    if len(gpus) < 2:
        print("benchmark_gpus: fewer than two GPUs here")
        return 4
    threads = max(1, usable_threads() // len(gpus))

    samples: dict[str, dict[str, list[float]]] = {work: {"one": [], "all": []} for work in ("memory", "files")}
    outputs: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory(dir=RAM_DISK) as scratch:
        source, target = Path(scratch, "in"), Path(scratch, "out")
        source.mkdir()
        file_pictures = arguments.pictures // 8  # a RAM disk holds the outputs
        draw_files(source, arguments.side, file_pictures)
        for _ in range(arguments.rounds):
            for name, some in (("one", gpus[:1]), ("all", gpus)):
                with local_cluster.local_cluster([Seat(threads, {VISIBLE: gpu}) for gpu in some]) as engine:
                    seconds_in_memory(engine, target, arguments.side, WARM_UP * len(some))
                    in_memory = seconds_in_memory(engine, target, arguments.side, arguments.pictures)
                    seconds_of_files(engine, source, target, WARM_UP)
                    of_files, outputs[name] = seconds_of_files(engine, source, target, file_pictures)
                samples["memory"][name].append(in_memory)
                samples["files"][name].append(of_files)
                print(f"{len(some)} of {len(gpus)} GPUs: memory {in_memory:.2f} s, files {of_files:.2f} s", flush=True)

    counts = {"memory": arguments.pictures, "files": file_pictures}
    rates = {
        work: {name: counts[work] / statistics.median(times) for name, times in by_gpus.items()}
        for work, by_gpus in samples.items()
    }
    gains = {work: by_gpus["all"] / by_gpus["one"] for work, by_gpus in rates.items()}
    for work, by_gpus in rates.items():
        print(f"{work:<7} {by_gpus['one']:7.1f} pictures/s with one GPU, {by_gpus['all']:7.1f} with {len(gpus)}")
    print(f"gain {gains['memory']:.2f} in memory (goal {GOAL} with two), {gains['files']:.2f} with files")
    record = {
        **report.header(),
        "kind": "several GPUs benchmark",
        "side": arguments.side,
        "pictures": counts,
        "GPUs": len(gpus),
        "threads_a_card": threads,
        "gpu": get_device("cuda").describe(),
        "host": get_device("cpu").describe(),
        "versions": installed_versions(),
        "samples_seconds": samples,
        "pictures_per_second": rates,
        "gain": gains,
        "goal_gain_of_two": GOAL,
        "outputs_equal": outputs["one"] == outputs["all"],
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(arguments.output, report.to_json(record))
    return 0 if gains["memory"] >= GOAL and record["outputs_equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
