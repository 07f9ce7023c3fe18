"""Count how often `edgeconv bench compare` is wrong: pairs of records of the same code, quiet and beside a neighbour.

    python3 scripts/gate_rates.py --pairs 100 --output docs/results/gate_NAME.json

Each record comes from a process of its own. Between two of the same code every `slower`, `unsteady` or `faster` is a
false alarm. As a slowdown that is real, all samples of the second record are multiplied by `--planted`. The neighbour
keeps as many cores busy as the process may use; rows beside it are judged as usual, and as `--allow load` does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from script_options import Arguments

from edgeconv.bench.compare import Gate, compare
from edgeconv.bench.record import BenchRecord, read_record
from edgeconv.core.records import fields_of, to_json
from edgeconv.errors import UsageError
from edgeconv.hardware.threads import usable_threads
from edgeconv.io.files import write_bytes_atomically
from edgeconv.run.report import header

GRID = "--sizes 128,512,1024 --strides 1,2 --methods sliding,opencv --no-around --formats json --devices"
BUSY = "while True: pass"
REFUSED = "refused"
"""For a pair of which no row was measured on a quiet machine."""


def slowed(record: BenchRecord, factor: float) -> BenchRecord:
    """The record with the times of all methods longer by a factor, in place."""
    for row in record.rows:
        for series in row.timings.values() if row.kind != "copy" else ():
            series.samples_seconds = [sample * factor for sample in series.samples_seconds]
            for name in ("median", "p10", "p90", "min"):
                setattr(series, f"{name}_seconds", getattr(series, f"{name}_seconds") * factor)
    return record


def verdicts(base: BenchRecord, new: BenchRecord, margin: float, allowed: tuple[str, ...] = ()) -> Counter[str]:
    """How often each verdict falls."""
    try:
        return Counter(line.verdict for line in compare(base, new, Gate(margin=margin), allowed).lines)
    except UsageError:
        return Counter({REFUSED: 1})


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
    parser.add_argument("--pairs", type=int, default=100, help="Pairs of records; as many again beside a neighbour.")
    parser.add_argument("--margin", type=float, default=0.05, help="Of `edgeconv bench compare`.")
    parser.add_argument("--planted", type=float, default=1.07, help="Factor of the slowdown that is real.")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="What is measured: {choices}.")
    parser.add_argument("--output", type=Path, required=True, help="Write the rates to this file, as JSON.")
    given = parser.parse_args()
    words = [sys.executable, "-m", "edgeconv", "bench", *GRID.split(), given.device]
    parts, machine = {}, None
    for name, count in (("quiet", 0), ("neighbour", usable_threads())):
        same, allowed, planted = Counter[str](), Counter[str](), Counter[str]()
        with neighbours(count), tempfile.TemporaryDirectory() as folder:
            for _ in range(given.pairs):
                records = []
                for side in ("base", "new"):
                    subprocess.run(
                        [*words, "-o", folder, "--name", side, "--overwrite"], check=True, capture_output=True
                    )
                    records.append(read_record(Path(folder) / f"{side}.json"))
                base, new = records
                machine = {device: fields_of(facts) for device, facts in base.machine.items()}
                same += verdicts(base, new, given.margin)
                allowed += verdicts(base, new, given.margin, ("load", "clocks"))
                planted += verdicts(base, slowed(new, given.planted), given.margin, ("load", "clocks"))
        parts[name] = {"same_code": dict(same), "same_code_load_allowed": dict(allowed), "planted": dict(planted)}
        print(name, parts[name])
    options = {"pairs": given.pairs, "margin": given.margin, "planted": given.planted, "grid": f"{GRID} {given.device}"}
    write_bytes_atomically(given.output, to_json({**header(), "kind": "gate", **options, "machine": machine, **parts}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
