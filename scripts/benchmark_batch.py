"""Measure a batch and what others take for the same folder.

    python3 scripts/benchmark_batch.py [--format png] [--pictures N] [--size 2048] [--repeats 5] [--device auto]

In one run, by turns, medians: `edgeconv batch`; a pool of OpenCV loops, and one of libvips pipelines where that is
installed, with a thread for each core. For JPEG also a batch whose JPEG is the GPU's, where nvImageCodec is installed.
Work: laplacian8 by channel, 8 bits in, |value| clipped, the same format in and out. First, a picture is decoded and its
edges are encoded, by one thread and by one for each core, by turns with OpenCV.

There are eight pictures a worker, so that the first and the last count as little as in a long batch.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docs import read
from edgeconv.api.auto import choose
from edgeconv.batch.run import open_batch
from edgeconv.batch.settings import Settings
from edgeconv.batch.tasks import Inputs
from edgeconv.core.option import AUTO
from edgeconv.core.records import header, plain, to_json
from edgeconv.core.request import make_request
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.atomic import write_bytes_atomically
from edgeconv.io.encoding import encode_image
from edgeconv.io.gpu_jpeg import gpu_jpeg_unavailable_reason
from edgeconv.io.reading import decode_image, read_picture_bytes
from edgeconv.options import JpegCodec

FILTER = "laplacian8"
BATCH, ON_GPU = "edgeconv batch", "edgeconv batch, JPEG on the GPU"
RECORD = Path(__file__).resolve().parent.parent / "docs" / "results" / "batch.json.xz"
Call = Callable[[], Any]
DISTINCT = 16
"""Different pictures; the others are further names of these."""
PICTURES_A_WORKER = 8
QUALITY = 90
"""Of the JPEGs that are read."""


def draw(folder: Path, count: int, size: int, suffix: str) -> None:
    """Pictures that compress like photographs, from fixed seeds, by Pillow: people have theirs from other programs."""
    import cv2
    import numpy as np
    from PIL import Image

    def one(index: int) -> None:
        noise = np.random.default_rng(index).integers(0, 255, (size, size, 3), dtype=np.uint8)
        Image.fromarray(cv2.GaussianBlur(noise, (0, 0), 3)).save(folder / f"{index:04}{suffix}", quality=QUALITY)

    with ThreadPoolExecutor(usable_threads()) as pool:
        list(pool.map(one, range(min(count, DISTINCT))))
    for index in range(DISTINCT, count):
        os.link(folder / f"{index % DISTINCT:04}{suffix}", folder / f"{index:04}{suffix}")


def pictures(folder: Path) -> list[Path]:
    """The pictures of a folder, sorted."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg"))


def edgeconv_batch(source: Path, target: Path, device: str, jpeg_codec: JpegCodec = "host") -> dict[str, Any]:
    """The batch itself, in this process; its summary."""
    request = make_request(FILTER, channels="each", border="zero", output_mode="abs")
    suffix = pictures(source)[0].suffix.removeprefix(".")
    settings = Settings(request, str(target), AUTO, device, name="{stem}{ext}", format=suffix, jpeg_codec=jpeg_codec)
    with open_batch(settings, Inputs([source])) as batch:
        summary = batch.run()
    if summary.failed:
        raise SystemExit(f"benchmark_batch: error: {summary.failed} pictures failed: {summary.failures[0]}")
    described: dict[str, Any] = plain(summary)
    return described


def opencv_pool(source: Path, target: Path) -> None:
    """A plain script in a pool of threads, whose pictures OpenCV takes with one thread each."""
    import cv2
    import numpy as np

    target.mkdir()
    cv2.setNumThreads(1)
    kernel = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]], np.float32)

    def one(path: Path) -> None:
        wide = cv2.filter2D(cv2.imread(str(path)), cv2.CV_16S, kernel, borderType=cv2.BORDER_CONSTANT)
        cv2.imwrite(str(target / path.name), cv2.convertScaleAbs(wide))

    with ThreadPoolExecutor(usable_threads()) as pool:
        list(pool.map(one, pictures(source)))
    cv2.setNumThreads(usable_threads())


def libvips_pool(source: Path, target: Path) -> None:
    """pyvips in a pool of threads, with one of libvips' own for each picture; border repeated."""
    os.environ["VIPS_CONCURRENCY"] = "1"  # read when libvips is loaded
    import pyvips

    target.mkdir()
    mask = pyvips.Image.new_from_array([[1, 1, 1], [1, -8, 1], [1, 1, 1]])

    def one(path: Path) -> None:
        wide = pyvips.Image.new_from_file(str(path), access="sequential").conv(mask)
        wide.abs().cast("uchar").write_to_file(str(target / path.name))

    with ThreadPoolExecutor(usable_threads()) as pool:
        list(pool.map(one, pictures(source)))


def entrants(source: Path, target: Path, device: str) -> dict[str, Call]:
    """What is timed, by name, as far as it is here."""
    found: dict[str, Call] = {
        BATCH: lambda: edgeconv_batch(source, target, device),
        "OpenCV pool": lambda: opencv_pool(source, target),
    }
    is_on_gpu = pictures(source)[0].suffix == ".jpg" and choose(AUTO, device).device == "cuda"
    if is_on_gpu and gpu_jpeg_unavailable_reason() is None:
        found[ON_GPU] = lambda: edgeconv_batch(source, target, device, "gpu")
    if find_spec("pyvips"):
        found["pyvips pool"] = lambda: libvips_pool(source, target)
    return found


def time_by_turns(calls: dict[str, Call], repeats: int, before: Call = lambda: None) -> dict[str, list[float]]:
    """Wall times of each call, forwards and backwards by turns: nobody comes after the same one each time."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(repeats):
        for name in list(calls)[:: -1 if number % 2 else 1]:
            before()
            started = time.perf_counter()
            calls[name]()
            samples[name].append(time.perf_counter() - started)
    return samples


def codecs_alone(first: Path, output: Any, repeats: int) -> dict[str, dict[str, float]]:
    """Medians of pictures a second by one thread and by one for each core: a picture and its edges, beside OpenCV."""
    import cv2
    import numpy as np

    data = read_picture_bytes(first)
    ways: dict[str, Call] = {
        "decode": lambda: decode_image(data, first.name),
        "decode by OpenCV": lambda: cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB),
        "encode": lambda: encode_image(output, first.name, threads=1),
        "encode by OpenCV": lambda: cv2.imencode(first.suffix, output),
    }

    def by(pool: ThreadPoolExecutor, way: Call, count: int) -> None:
        list(pool.map(lambda _: way(), range(count)))

    rates: dict[str, dict[str, float]] = {}
    cv2.setNumThreads(1)
    for threads in sorted({1, usable_threads()}):
        with ThreadPoolExecutor(threads) as pool:
            calls: dict[str, Call] = {name: partial(by, pool, way, 4 * threads) for name, way in ways.items()}
            samples = time_by_turns(calls, 1 + repeats)
        medians = {name: statistics.median(times[1:]) for name, times in samples.items()}
        rates[str(threads)] = {name: 4 * threads / median for name, median in medians.items()}
    cv2.setNumThreads(usable_threads())
    return rates


def write_together(path: Path, reports: dict[str, Any]) -> None:
    """Put reports by name into a packed file, a line each, beside those that are in it."""
    earlier = read(path)["reports"] if path.exists() else {}
    lines = (f"{json.dumps(name)}: {json.dumps(report)}" for name, report in sorted((earlier | reports).items()))
    text = '{"kind": "runs", "reports": {\n' + ",\n".join(lines) + "\n}}\n"
    write_bytes_atomically(path, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("png", "jpg"), default="png", help="Of inputs and outputs.")
    count = PICTURES_A_WORKER * usable_threads()
    parser.add_argument("--pictures", type=int, default=count, help="Pictures of the batch.")
    parser.add_argument("--size", type=int, default=2048, help="Side of the pictures, in pixels.")
    parser.add_argument("--repeats", type=int, default=5, help="Rounds; medians are shown.")
    parser.add_argument("--device", default=AUTO, help="What computes: auto, cpu or cuda.")
    parser.add_argument("--output", type=Path, default=RECORD, help="The file of the figures, beside others' names.")
    parser.add_argument("--name", default="cpu", help="Name of these figures in the file.")
    asked = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "in", Path(scratch) / "out"
        source.mkdir()
        draw(source, asked.pictures, asked.size, f".{asked.format}")
        summary = edgeconv_batch(source, target, asked.device)
        first, edges = pictures(source)[0], pictures(target)[0]
        alone = codecs_alone(first, decode_image(read_picture_bytes(edges), edges.name).pixels, asked.repeats)
        clear = partial(shutil.rmtree, target)
        samples = time_by_turns(entrants(source, target, asked.device), asked.repeats, clear)

    rates = {name: asked.pictures / statistics.median(times) for name, times in samples.items()}
    for name, rate in rates.items():
        print(f"{name:<32} {rate:7.2f} pictures/s")
    for threads, of_codecs in alone.items():
        for name, rate in of_codecs.items():
            print(f"{name:<32} {rate:7.2f} pictures/s, {threads} threads")
    record = {
        **header(),
        "kind": "batch benchmark",
        "format": asked.format,
        "pictures": asked.pictures,
        "side": asked.size,
        "device": get_device("cpu").describe(),
        "gpu": get_device("cuda").describe() if summary["peak_bytes"].keys() > {"cpu"} else None,
        "versions": installed_versions(),
        "first_summary": summary,
        "samples_seconds": samples,
        "pictures_per_second": rates,
        "codecs_alone_pictures_per_second": alone,
    }
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    write_together(asked.output, {asked.name: json.loads(to_json(record))})


if __name__ == "__main__":
    main()
