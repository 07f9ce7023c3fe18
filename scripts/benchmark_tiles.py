"""Measure a picture larger than memory in `edgeconv run` under a limit: peak memory, wall time, where the time went.

    python3 scripts/benchmark_tiles.py [--side 40000] [--memory-limit 1GiB] [--folder DIR] [--output FILE.json]

The input is a BigTIFF of deflated 512×512 tiles, drawn strip by strip, that compresses about as well as a photograph.
Three runs are made, each a process of its own whose high-water mark is read at its end: by tiles under the limit; the
same with `--verify-tiles`; and, where memory allows (`--whole`), the whole picture at once, for comparison. The files
lie in a temporary folder (--folder says where: they are as large as half the picture) and are removed.

Ends with 1 where a run is above the limit, or its output is not right.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from script_options import PROJECT, Arguments, stopped

from edgeconv.core.records import header, to_json
from edgeconv.core.units import parse_bytes
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically

TILE = 512
NOISE_LEVELS = 6

RUN = """
import sys
from edgeconv.cli import main
from edgeconv.hardware.devices import get_device
try:
    main()
finally:
    print(get_device("cpu").peak_bytes(), file=sys.stderr)
"""
"""The command, and then the mark of its whole process: nothing that the command itself says is taken for it."""


def tiles_of(side: int) -> Iterator[bytes]:
    """The deflated tiles of the picture row by row: soft shapes, sharp edges and a little noise, from a fixed seed."""
    import imagecodecs

    rng = np.random.default_rng(0)
    noise = rng.integers(0, NOISE_LEVELS, (2 * TILE, 2 * TILE, 3), dtype=np.uint8)
    for top in range(0, side, TILE):
        for left in range(0, side, TILE):
            y, x = np.mgrid[top : top + TILE, left : left + TILE].astype(np.float32)
            grain = noise[top % 509 : top % 509 + TILE, left % 499 : left % 499 + TILE]
            yield bytes(imagecodecs.deflate_encode(_draw(y, x, grain).tobytes(), level=1))


def _draw(y: NDArray[np.float32], x: NDArray[np.float32], noise: NDArray[np.uint8]) -> NDArray[np.uint8]:
    soft = 100 + 60 * np.sin(y / 301) * np.cos(x / 433)
    cells = ((y // 97).astype(np.int32) * 7 + (x // 131).astype(np.int32) * 13) % 5 * 12
    planes = np.stack([soft + cells, soft * 0.8 + cells, 220 - soft * 0.5], axis=-1)
    return planes.astype(np.uint8) + noise


def draw(path: Path, side: int) -> None:
    """Write the picture, one tile in memory at a time."""
    import tifffile

    with tifffile.TiffWriter(path, bigtiff=True) as writer:
        writer.write(
            tiles_of(side),
            shape=(side, side, 3),
            dtype=np.uint8,
            photometric="rgb",
            tile=(TILE, TILE),
            compression="adobe_deflate",
            metadata=None,
        )


def run(picture: Path, target: Path, *words: str) -> dict[str, Any]:
    """One process of `edgeconv run`: its report, its mark and its wall time."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, "run", str(picture), "-o", str(target), "--overwrite", "--json", *words],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise stopped(f"edgeconv run {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    record = json.loads(done.stdout)
    return {
        "words": list(words),
        "wall_seconds": seconds,
        "peak_bytes": int(done.stderr.split()[-1]),
        "phases_seconds": record["phases_seconds"],
        "tiles": record.get("tiles"),
        "speed": record["speed"],
        "counts": record["counts"],
        "check": record["check"],
        "device": record["device"],
        "method": {name: record["method"][name] for name in ("name", "why")},
        "output_sha256": record["output"]["file_sha256"],
        "output_bytes": record["output"]["file_bytes"],
    }


def main() -> int:
    """Draw, run, compare; see the module."""
    parser = Arguments(__doc__)
    parser.add_argument("--side", type=int, default=40_000, help="Side of the picture, in pixels.")
    parser.add_argument("--memory-limit", default="1GiB", help="Most memory of a run.")
    parser.add_argument("--device", default="auto", help="What computes: auto, cpu or cuda.")
    parser.add_argument("--whole", action="store_true", help="Also run the whole picture at once, without tiles.")
    parser.add_argument("--folder", type=Path, help="Where the files may lie. Default: the system's temporary folder.")
    parser.add_argument(
        "--output",
        type=Path,
        default=PROJECT / "docs" / "results" / "tiles_two_cores.json.xz",
        help="Write the figures to this file, as JSON.",
    )
    arguments = parser.parse_args()
    limit = parse_bytes(arguments.memory_limit)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        picture, target = Path(scratch) / "picture.tif", Path(scratch) / "edges.tif"
        draw(picture, arguments.side)
        file_bytes = picture.stat().st_size
        words = ("--memory-limit", arguments.memory_limit, "--device", arguments.device)
        runs = {
            "tiles": run(picture, target, *words),
            "tiles_proved": run(picture, target, *words, "--verify-tiles"),
        }
        if arguments.whole:
            pixels = str(arguments.side**2)
            runs["whole"] = run(picture, target, "--max-pixels", pixels, "--samples", "0", "--device", arguments.device)
    picture_bytes = arguments.side**2 * 3
    for name, found in runs.items():
        print(f"{name:<13} {found['wall_seconds']:8.1f} s  peak {found['peak_bytes'] / 2**20:8.0f} MiB")
    record = {
        **header(),
        "kind": "tiles",
        "side": arguments.side,
        "picture_bytes": picture_bytes,
        "file_bytes": file_bytes,
        "limit_bytes": limit,
        "versions": installed_versions(),
        "runs": runs,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(arguments.output, to_json(record))
    tiled = (runs["tiles"], runs["tiles_proved"])
    same = runs["tiles"]["output_sha256"] == runs["tiles_proved"]["output_sha256"]
    proved = runs["tiles_proved"]["tiles"]["proof"]["passed"]
    return 0 if same and proved and all(found["peak_bytes"] <= limit for found in tiled) else 1


if __name__ == "__main__":
    sys.exit(main())
