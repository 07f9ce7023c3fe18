"""Write small records below docs/results into one file, small.json.xz; for other scripts, read and write any record.

    python3 scripts/committed.py                 moves every record that is smaller than two blocks of a disk

record("canny_passes_h200")                  docs/results/canny_passes_h200.json, or .json.xz, or from small.json.xz
one_of("run/h200", "cuda_sliding_s1")        one of the reports that a script keeps together in a file
write(path, data)                            packed where the name ends with .xz
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from script_options import PROJECT, Arguments

from edgeconv.io.files import write_bytes_atomically

RESULTS = PROJECT / "docs" / "results"

SMALL = RESULTS / "small.json.xz"
SMALL_BYTES = 8192
"""Packed."""
READ_BY_PATH = ("batch", "bench_gemm_h200", "reader_fuzz")
"""Records that stay in files of their own, however small."""


def path_of(name: str) -> Path:
    """The file of that record."""
    found = list(RESULTS.glob(f"{name}.json*"))
    return found[0] if found else SMALL


def is_there(name: str) -> bool:
    """Whether there is such a record."""
    return path_of(name) != SMALL or name in read(SMALL)["reports"]


def link(name: str, text: str) -> str:
    """A link of a page below docs/ to the record, which is named where it lies among others."""
    path = path_of(name)
    return f"[{text}{f' (`{name}`)' if path == SMALL else ''}](results/{path.relative_to(RESULTS).as_posix()})"


def record(name: str) -> dict[str, Any]:
    """What it holds."""
    path = path_of(name)
    found: dict[str, Any] = read(SMALL)["reports"][name] if path == SMALL else read(path)
    return found


def read(path: Path) -> dict[str, Any]:
    """What a record's file holds, packed or not."""
    data = path.read_bytes()
    found: dict[str, Any] = json.loads(lzma.decompress(data) if data.startswith(b"\xfd7zXZ") else data)
    return found


def one_of(file: str, name: str) -> dict[str, Any]:
    """A report by its name, from a file of `write_together`."""
    found: dict[str, Any] = record(file)["reports"][name]
    return found


def write_together(path: Path, reports: dict[str, Any]) -> None:
    """Put reports by name into a file, a line each, beside those that are in it."""
    earlier = read(path)["reports"] if path.exists() else {}
    together = sorted((earlier | reports).items())
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(report)}" for name, report in together)
    write(path, f'{{"kind": "runs", "reports": {{\n{lines}\n}}}}\n'.encode())


def write(path: Path, data: bytes) -> None:
    """Completely or not at all."""
    write_bytes_atomically(path, lzma.compress(data, preset=9 | lzma.PRESET_EXTREME) if path.suffix == ".xz" else data)


def main() -> int:
    """Move small records together."""
    Arguments(__doc__).parse_args()
    small = {}
    for path in sorted((*RESULTS.glob("*.json*"), *RESULTS.glob("tried/*.json*"), *RESULTS.glob("edges/*.json*"))):
        name = path.relative_to(RESULTS).as_posix().partition(".")[0]
        packed = len(lzma.compress(json.dumps(read(path)).encode(), preset=9 | lzma.PRESET_EXTREME))
        if path != SMALL and name not in READ_BY_PATH and packed <= SMALL_BYTES:
            small[name] = path
    write_together(SMALL, {name: read(path) for name, path in small.items()})
    for path in small.values():
        path.unlink()
    print(f"{', '.join(small) or 'nothing'} → {SMALL.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
