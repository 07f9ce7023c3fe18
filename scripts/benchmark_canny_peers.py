"""Measure Canny by edgeconv beside the libraries that have it, on the CPU and on a GPU, each in turns with the others.

    python3 scripts/benchmark_canny_peers.py --device cuda --output docs/results/canny_peers_NAME.json

The picture is docs/pictures/coast.jpg, mirrored side by side up to the size. On a GPU arrays lie there and times are of
CUDA events with a cold L2; beside them stand a copy that reads and writes the same bytes, `end to end` from host array
to host array, and cv2.Canny on the host. What a peer finds elsewhere than edgeconv, which has OpenCV's edges to the
last pixel, is `elsewhere`: edge pixels with none of the other within a pixel. Compare within a run only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import edgeconv
from edgeconv.api.convolve import chain, plan
from edgeconv.api.plan import ConvolutionPlan
from edgeconv.bench.peers.canny import OpenCVCanny, canny_peers, share_elsewhere
from edgeconv.core.canny import CannySettings
from edgeconv.core.choices import DEVICES
from edgeconv.core.records import header
from edgeconv.errors import UnavailableError
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.atomic import write_bytes_atomically

Picture = NDArray[np.uint8]
Clock = Callable[[Callable[[], Any]], float]

PROJECT = Path(__file__).resolve().parent.parent
COAST = PROJECT / "docs" / "pictures" / "coast.jpg"
SAMPLES = 30
LOW, HIGH = 60.0, 150.0

CASES: tuple[tuple[str, int, CannySettings], ...] = (
    ("grey", 1, CannySettings(LOW, HIGH)),
    ("grey, L2", 1, CannySettings(LOW, HIGH, l2=True)),
    ("grey, smoothed 5×5", 1, CannySettings(LOW, HIGH, blur=5)),
    ("RGB", 3, CannySettings(LOW, HIGH)),
)
"""Name, channels, settings."""


def coast(size: int, channels: int) -> Picture:
    """The README's picture, mirrored up to the size: (size, size), its luma, or (size, size, 3)."""
    drawn = edgeconv.read_image(COAST).pixels
    beyond = [(0, max(0, size - side)) for side in drawn.shape[:2]]
    square = np.ascontiguousarray(np.pad(drawn, (*beyond, (0, 0)), mode="symmetric")[:size, :size])
    return square if channels > 1 else np.asarray(cv2.cvtColor(square, cv2.COLOR_RGB2GRAY), np.uint8)


def seconds_of(call: Callable[[], Any]) -> float:
    """By the host's clock."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def plan_of(shape: tuple[int, ...], settings: CannySettings, device: Any) -> ConvolutionPlan:
    """Edgeconv's, prepared for the picture."""
    edges = chain(
        "canny", low=settings.low, high=settings.high, gradient="l2" if settings.l2 else "l1", blur=settings.blur
    )
    return plan(shape, "uint8", filter=edges, method="sliding", device=device)


def measure(name: str, picture: Picture, settings: CannySettings, device: Any, seconds: float) -> list[dict[str, Any]]:
    """A row for each candidate: one run that is not counted, then all in turns."""
    place = get_device(device)
    on_device: Clock = place.time_once if place.moves_data else seconds_of
    hwc = picture if picture.ndim == 3 else picture[:, :, np.newaxis]
    edgeconv = plan_of(hwc.shape, settings, device)
    expected = edgeconv.run(hwc)[:, :, 0]
    run_opencv, opencv_edges = OpenCVCanny("cpu").prepare(picture, settings)
    run_opencv()
    if not np.array_equal(expected, opencv_edges()):
        raise SystemExit(
            f"benchmark_canny_peers: error: {name} at {picture.shape[0]}: edgeconv's edges are not OpenCV's."
        )
    with edgeconv.workspace() as work:  # nobody else works with it
        image, out = edgeconv.take_arrays(work)
    image = hwc if image is None else image
    calls: dict[str, tuple[Clock, Callable[[], Any]]] = {
        "copy": (on_device, place.floor(hwc.nbytes, expected.nbytes)),
        "edgeconv": (on_device, partial(work.plan.run, image, out)),
    }
    elsewhere: dict[str, float] = {"edgeconv": 0.0}
    left_out: dict[str, str] = {}
    if place.moves_data:
        host_out = place.host_empty((*expected.shape, 1), np.uint8)
        host_in = place.host_empty(hwc.shape, np.uint8)
        np.copyto(host_in, hwc)

        def end_to_end() -> None:
            place.copy_in(host_in, image)
            work.plan.run(image, out)
            place.copy_out(out, host_out)

        calls["edgeconv, end to end"] = (seconds_of, end_to_end)
        calls["opencv on the host"] = (seconds_of, run_opencv)
    here, missing = canny_peers(device)
    for peer in here:
        try:
            run, edges = peer.prepare(picture, settings)
        except UnavailableError as reason:
            left_out[peer.name] = str(reason)
            continue
        run()
        elsewhere[peer.name] = round(share_elsewhere(expected, edges()), 5)
        calls[peer.name] = (on_device, run)
    samples: dict[str, list[float]] = {who: [] for who in calls}
    started = time.perf_counter()
    while min(map(len, samples.values())) < SAMPLES and time.perf_counter() - started < seconds:
        for who, (clock, call) in calls.items():
            samples[who].append(clock(call))
    rows = []
    for who, found in samples.items():
        microseconds = sorted(1e6 * value for value in found)
        row = {"case": name, "size": picture.shape[0], "device": device, "candidate": who, "samples": len(found)}
        row |= {"median_us": round(statistics.median(microseconds), 2), "least_us": round(microseconds[0], 2)}
        rows.append(row | ({"elsewhere": elsewhere[who]} if who in elsewhere else {}))
        print(rows[-1], flush=True)
    case = {"case": name, "size": picture.shape[0], "device": device}
    rows += [case | {"candidate": who, "left_out": why} for who, why in (missing | left_out).items()]
    return rows


def main() -> None:
    """Measure, print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="Where edgeconv and the peers compute.")
    parser.add_argument("--sizes", default="1024,4096", help="Sides of the pictures, with commas.")
    parser.add_argument("--seconds", type=float, default=2.0, help="Longest time for each case.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    cv2.setNumThreads(usable_threads())
    sizes = [int(size) for size in asked.sizes.split(",")]
    rows = [
        row
        for name, channels, settings in CASES
        for size in sizes
        for row in measure(name, coast(size, channels), settings, asked.device, asked.seconds)
    ]
    record = {
        **header(),
        "kind": "canny peers",
        "versions": installed_versions(),
        "host": get_device("cpu").describe(),
        "device": get_device(asked.device).describe(),
        "low": LOW,
        "high": HIGH,
        "rows": rows,
    }
    write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
