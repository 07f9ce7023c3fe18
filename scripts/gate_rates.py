"""Count how often `edgeconv bench compare` is wrong: records of the same code, quiet and beside a neighbour.

    python3 scripts/gate_rates.py --runs 40 --output docs/results/gate_NAME.json

Each record comes from a process of its own. Pairs of sides of one run or several are drawn from them at random; between
two sides of the same code every `slower`, `unsteady` or `faster` is a false alarm. As a slowdown that is real, all
samples of the second side are multiplied by `--planted`. The neighbour keeps as many cores busy as the process may use;
rows beside it are judged as usual, and as `--allow load` does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import product
from pathlib import Path

import numpy as np
from script_options import Arguments, stopped

from edgeconv.bench.compare import Gate, compare_runs
from edgeconv.bench.intervals import STATISTICS
from edgeconv.bench.record import BenchRecord, read_record
from edgeconv.core.records import fields_of, to_json
from edgeconv.errors import UsageError
from edgeconv.hardware.threads import usable_threads
from edgeconv.io.files import write_bytes_atomically
from edgeconv.run.report import header

GRID = "--sizes 128,512,1024 --strides 1,2 --methods sliding,opencv --no-around --formats json --devices"
BUSY = "while True: pass"
ALLOWED = ("load", "clocks")
REFUSED = "refused"
"""For a pair that is not compared: no row was measured undisturbed, or a GPU's clock moved."""


def slowed(record: BenchRecord, factor: float) -> BenchRecord:
    """A copy of the record with the times of all methods longer by a factor."""
    copied = deepcopy(record)
    for row in copied.rows:
        for series in row.timings.values() if row.kind != "copy" else ():
            series.samples_seconds = [sample * factor for sample in series.samples_seconds]
            for name in ("median", "p10", "p90", "min"):
                setattr(series, f"{name}_seconds", getattr(series, f"{name}_seconds") * factor)
    return copied


def verdicts(
    bases: Sequence[BenchRecord], news: Sequence[BenchRecord], gate: Gate, allowed: tuple[str, ...] = ()
) -> Counter[str]:
    """How often each verdict falls."""
    try:
        return Counter(line.verdict for line in compare_runs(bases, news, gate, allowed).lines)
    except UsageError:
        return Counter({REFUSED: 1})


def measured(folder: Path, name: str, device: str) -> BenchRecord:
    """The record of that name: measured in a process of its own, unless it is there."""
    path = folder / f"{name}.json"
    if not path.exists():
        words = [sys.executable, "-m", "edgeconv", "bench", *GRID.split(), device, "-o", str(folder), "--name", name]
        subprocess.run(words, check=True, capture_output=True)
    return read_record(path)


def rates(
    records: Sequence[BenchRecord], per_side: int, pairs: int, gate: Gate, planted: float
) -> dict[str, dict[str, int]]:
    """How often each verdict falls in so many pairs of sides, drawn from the records."""
    random = np.random.default_rng(per_side)
    longer = [slowed(record, planted) for record in records]
    same, allowed, found = Counter[str](), Counter[str](), Counter[str]()
    for _ in range(pairs):
        drawn = random.permutation(len(records))[: 2 * per_side]
        bases, news = ([records[i] for i in side] for side in (drawn[:per_side], drawn[per_side:]))
        same += verdicts(bases, news, gate)
        allowed += verdicts(bases, news, gate, ALLOWED)
        found += verdicts(bases, [longer[i] for i in drawn[per_side:]], gate, ALLOWED)
    return {"same_code": dict(same), "same_code_load_allowed": dict(allowed), "planted": dict(found)}


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that do nothing but work."""
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def main() -> int:
    """Measure, print the rates, and write them."""
    parser = Arguments(__doc__)
    parser.add_argument("--runs", type=int, default=40, help="Records with nothing of ours beside them.")
    parser.add_argument(
        "--neighbour-runs", type=int, help="Records beside a neighbour; as many as --runs if not given."
    )
    parser.add_argument("--per-side", default="1,5,10,20", help="Runs of a side, with commas: twice as many are drawn.")
    parser.add_argument("--pairs", type=int, default=100, help="Pairs of sides that are drawn for each of these.")
    parser.add_argument("--statistics", default="median", help=f"Of {', '.join(STATISTICS)}, with commas.")
    parser.add_argument("--margin", type=float, default=0.05, help="Of `edgeconv bench compare`.")
    parser.add_argument("--planted", type=float, default=1.07, help="Factor of the slowdown that is real.")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="What is measured: {choices}.")
    parser.add_argument("--records", type=Path, help="Keep records here; take those of this machine in it.")
    parser.add_argument("--output", type=Path, required=True, help="Write the rates to this file, as JSON.")
    given = parser.parse_args()
    sides = [int(word) for word in given.per_side.split(",")]
    statistics = given.statistics.split(",")
    if unknown := [name for name in statistics if name not in STATISTICS]:
        raise stopped(f"--statistics '{unknown[0]}' is not one of {', '.join(STATISTICS)}.")
    gates = [Gate(statistic, given.margin) for statistic in statistics]
    if given.runs < 2 * max(sides):
        raise stopped(f"{given.runs} runs are too few for two sides of {max(sides)}: raise --runs or lower --per-side.")
    if given.neighbour_runs is not None and given.neighbour_runs < 2 * min(sides):
        raise stopped(f"{given.neighbour_runs} runs beside a neighbour are too few for two sides of {min(sides)}.")
    conditions = {
        "quiet": (given.runs, 0),
        "neighbour": (given.runs if given.neighbour_runs is None else given.neighbour_runs, usable_threads()),
    }
    found, machine = [], None
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.records or Path(temporary)
        for condition, (runs, count) in conditions.items():
            with neighbours(count):
                records = [measured(folder, f"{condition}_{i:03}", given.device) for i in range(runs)]
            machine = {device: fields_of(facts) for device, facts in records[0].machine.items()}
            for gate, per_side in product(gates, (per_side for per_side in sides if 2 * per_side <= runs)):
                counted = rates(records, per_side, given.pairs, gate, given.planted)
                what = {"condition": condition, "statistic": gate.statistic, "runs_per_side": per_side}
                found.append({**what, **counted})
                print(found[-1], flush=True)
    options = {name: getattr(given, name) for name in ("runs", "neighbour_runs", "pairs", "margin", "planted")}
    head = {**header(), "kind": "gate", **options, "grid": f"{GRID} {given.device}", "machine": machine}
    write_bytes_atomically(given.output, to_json({**head, "rates": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
