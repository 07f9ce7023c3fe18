"""Run `edgeconv run` on one picture with every method that works here and strides 1, 2, 3; keep the reports.

    python3 scripts/run_matrix.py --machine h200                  writes docs/results/run/h200.json.xz
    python3 scripts/run_matrix.py --machine epyc2 --device cpu

Each cell is a process of its own, so each cold time is that of a fresh start. The reports are kept as they came out,
together in one packed file, as DEVICE_METHOD_sSTRIDE; scripts/docs.py makes tables of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from script_options import PROJECT, Arguments

from docs import write_together
from edgeconv.runtime.auto import runnable

RESULTS = PROJECT / "docs" / "results" / "run"
STRIDES = (1, 2, 3)


def main() -> int:
    """Run the matrix; 1 where a cell failed, after the others have run."""
    parser = Arguments(__doc__)
    parser.add_argument("--machine", required=True, help="Name of the file of the reports.")
    parser.add_argument("--picture", default="images/input_2048.png", help="The picture that is filtered.")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="Only methods of this device: {choices}.")
    parser.add_argument("--results", type=Path, default=RESULTS, help="The folder of that file.")
    arguments = parser.parse_args()

    failed = 0
    reports = {}
    with tempfile.TemporaryDirectory() as scratch:
        for method, device in runnable():
            if arguments.device not in (None, device):
                continue
            for stride in STRIDES:
                name = f"{device}_{method}_s{stride}"
                picture = Path(scratch) / f"{name}.png"
                words = ["run", arguments.picture, "--method", method, "--device", device, "--stride", str(stride)]
                words += ["--check", "full", "-o", str(picture)]
                done = subprocess.run([sys.executable, "-m", "edgeconv", *words], cwd=PROJECT, check=False)
                failed += done.returncode != 0
                report = picture.with_suffix(".json")
                if report.exists():
                    text = report.read_text(encoding="utf-8").replace(str(Path(scratch)) + "/", "")
                    reports[name] = json.loads(text)
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_together(arguments.results / f"{arguments.machine}.json.xz", reports)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
