"""How near a batch comes to its own codecs, and what others take for the same folder.

    python3 scripts/benchmark_batch.py [--pictures 32] [--size 2048] [--repeats 3] [--device auto]

In one run, interleaved, medians: `edgeconv batch`, a pool that only decodes and encodes the same pictures with the same
codecs and as many workers, a plain OpenCV loop, and ImageMagick's mogrify and libvips where they are installed. The
goal is ≥ 0.9 of the codec pool's pictures a second. Work: laplacian8 by channel, 8 bits in, |value| clipped, PNG out.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edgeconv import report
from edgeconv.batch import plan
from edgeconv.batch.pipeline import Batch, leave_cores_to, threads_each
from edgeconv.batch.settings import Settings
from edgeconv.choose import AUTO, choose
from edgeconv.devices import get_device
from edgeconv.files import read_bytes, write_bytes_atomically
from edgeconv.image import decode_image, encode_image, write_image
from edgeconv.request import make_request
from edgeconv.threads import usable_threads

PROJECT = Path(__file__).resolve().parent.parent
GOAL = 0.9

FILTER = "laplacian8"


def draw(folder: Path, count: int, size: int) -> None:
    """Pictures that compress like photographs, each different, from fixed seeds."""
    import cv2
    import numpy as np

    for index in range(count):
        noise = np.random.default_rng(index).integers(0, 255, (size, size, 3), dtype=np.uint8)
        write_image(cv2.GaussianBlur(noise, (0, 0), 3), folder / f"{index:04}.png")


def pngs(folder: Path) -> list[Path]:
    """The PNG files of a folder, sorted."""
    return sorted(folder.glob("*.png"))


def edgeconv_batch(source: Path, target: Path, device: str) -> dict[str, Any]:
    """The batch itself, in this process; its summary."""
    choice = choose(AUTO, device, "many pictures")
    request = make_request(FILTER, channels="each", output_mode="abs")
    names = plan.Names("{stem}{ext}", request.filter.name, choice.method, request.stride)
    found = plan.find_tasks([source], recursive=False)
    return Batch(found.tasks, Settings(request, choice, target, names)).run().to_dict()


def codecs_only(source: Path, target: Path, edges: dict[str, Any]) -> None:
    """Decode every input and encode its edges with a batch's workers and their threads, and do nothing else."""
    workers = min(usable_threads(), len(edges))
    leave_cores_to(workers)

    def one(path: Path) -> None:
        decode_image(read_bytes(path), path.name)
        encoded = encode_image(edges[path.name], target / path.name, threads=threads_each(workers))
        write_bytes_atomically(target / path.name, encoded)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, pngs(source)))


def opencv_loop(source: Path, target: Path) -> None:
    """What a plain script does: one picture after the other, OpenCV's own threads."""
    import cv2
    import numpy as np

    cv2.setNumThreads(usable_threads())
    kernel = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]], np.float32)
    for path in pngs(source):
        wide = cv2.filter2D(cv2.imread(str(path)), cv2.CV_16S, kernel, borderType=cv2.BORDER_CONSTANT)
        cv2.imwrite(str(target / path.name), cv2.convertScaleAbs(wide))


def mogrify(source: Path, target: Path) -> None:
    """ImageMagick: its own border, and negative values clipped instead of their absolute value."""
    words = ["mogrify", "-path", target, "-morphology", "Convolve", "3x3: 1,1,1 1,-8,1 1,1,1"]
    subprocess.run([*map(str, words), *map(str, pngs(source))], check=True)


def libvips(source: Path, target: Path) -> None:
    """pyvips, one picture after the other, libvips' own threads; border repeated."""
    import pyvips

    mask = pyvips.Image.new_from_array([[1, 1, 1], [1, -8, 1], [1, 1, 1]])
    for path in pngs(source):
        wide = pyvips.Image.new_from_file(str(path), access="sequential").conv(mask)
        wide.abs().cast("uchar").write_to_file(str(target / path.name))


def seconds_of(call: Callable[[], Any]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> int:
    """Measure, print, and write the record; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=32)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default=AUTO)
    parser.add_argument("--output", type=Path, default=PROJECT / "docs" / "results" / "batch_cpu.json")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "in", Path(scratch) / "out"
        source.mkdir()
        draw(source, arguments.pictures, arguments.size)
        summary = edgeconv_batch(source, target, arguments.device)
        edges = {path.name: decode_image(read_bytes(path), path.name).pixels for path in pngs(target)}

        entrants: dict[str, Callable[[], Any]] = {
            "edgeconv batch": lambda: edgeconv_batch(source, target, arguments.device),
            "codecs only": lambda: codecs_only(source, target, edges),
            "OpenCV loop": lambda: opencv_loop(source, target),
        }
        skipped = {}
        if shutil.which("mogrify"):
            entrants["ImageMagick mogrify"] = lambda: mogrify(source, target)
        else:
            skipped["ImageMagick mogrify"] = "mogrify is not installed"
        if find_spec("pyvips"):
            entrants["pyvips"] = lambda: libvips(source, target)
        else:
            skipped["pyvips"] = "pyvips is not installed"

        samples: dict[str, list[float]] = {name: [] for name in entrants}
        for _ in range(arguments.repeats):
            for name, call in entrants.items():
                shutil.rmtree(target)
                target.mkdir()
                samples[name].append(seconds_of(call))

    rates = {name: arguments.pictures / statistics.median(times) for name, times in samples.items()}
    share = rates["edgeconv batch"] / rates["codecs only"]
    for name, rate in rates.items():
        print(f"{name:<20} {rate:7.2f} pictures/s")
    print(f"{share:.2f} of the codecs alone (goal {GOAL})")
    record = {
        **report.header(),
        "kind": "batch benchmark",
        "pictures": arguments.pictures,
        "side": arguments.size,
        "device": get_device("cpu").describe(),
        "card": get_device("cuda").describe() if summary["peak_bytes"].keys() > {"cpu"} else None,
        "versions": report.installed_versions(),
        "first_summary": summary,
        "samples_seconds": samples,
        "pictures_per_second": rates,
        "share_of_codecs": share,
        "goal_share": GOAL,
        "skipped": skipped,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomically(arguments.output, report.to_json(record))
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
