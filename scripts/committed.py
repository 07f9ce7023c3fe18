"""The records below docs/results: where they are, how they are read and written. JSON, packed by xz where it is large.

record("canny_passes_h200")                  docs/results/canny_passes_h200.json, or .json.xz
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
    data = path_of(name).read_bytes()
    found: dict[str, Any] = json.loads(lzma.decompress(data) if data.startswith(b"\xfd7zXZ") else data)
    return found


def write(path: Path, data: bytes) -> None:
    """Completely or not at all."""
    write_bytes_atomically(path, lzma.compress(data, preset=9 | lzma.PRESET_EXTREME) if path.suffix == ".xz" else data)
