"""The records below docs/results: where they are, how they are read and written. JSON, packed by xz where it is large.

record("canny_passes_h200")                  docs/results/canny_passes_h200.json, or .json.xz
one_of("run/h200", "cuda_sliding_s1")        one of the reports that a script keeps together in a file
write(path, data)                            packed where the name ends with .xz
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from edgeconv.io.files import write_bytes_atomically

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"


def path_of(name: str) -> Path:
    """The file of that record."""
    (path,) = RESULTS.glob(f"{name}.json*")
    return path


def record(name: str) -> dict[str, Any]:
    """What it holds."""
    return read(path_of(name))


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
