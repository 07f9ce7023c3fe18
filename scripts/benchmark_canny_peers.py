"""Measure Canny by edgeconv beside the libraries that have it, on the CPU and on a GPU, each in turns with the others.

    python3 scripts/benchmark_canny_peers.py --device cuda --output docs/results/canny_peers_NAME.json

The picture is docs/pictures/coast.jpg, mirrored side by side up to the size. On a GPU arrays lie there and times are of
CUDA events with a cold L2; beside them stand a copy that reads and writes the same bytes, `end to end` from host array
to host array, and cv2.Canny on the host. What a peer finds elsewhere than edgeconv, which has OpenCV's edges to the
last pixel, is `elsewhere`: edge pixels with none of the other within a pixel. Compare within a run only.

Source of NPP's signature: nppi_filtering_functions.h and nppdefs.h of NPP 13.2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from ctypes import byref, c_int
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import edgeconv
from edgeconv.api.convolve import chain, plan
from edgeconv.bench.peers import nvidia, peer_candidates
from edgeconv.bench.peers.base import on_host
from edgeconv.core.chains import Chain
from edgeconv.core.choices import DEVICES
from edgeconv.core.records import header
from edgeconv.errors import UnavailableError
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.atomic import write_bytes_atomically

Picture = NDArray[np.uint8]
Call = Callable[[], Any]

COAST = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "coast.jpg"
SAMPLES, SECONDS = 30, 2.0
"""Most of each case."""
LOW, HIGH = 60.0, 150.0
of_canny = partial(chain, "canny", low=LOW, high=HIGH)
CASES: tuple[tuple[str, int, Chain], ...] = (
    ("grey", 1, of_canny()),
    ("grey, L2", 1, of_canny(gradient="l2")),
    ("grey, smoothed 5×5", 1, of_canny(blur=5)),
    ("RGB", 3, of_canny()),
)
"""Name, channels, what is computed."""
NPP_SOBEL, NPP_NORMS = 0, (1, 2)
"""Names of nppdefs.h: the gradient, and |gx| + |gy| or sqrt(gx² + gy²)."""


# ---- peers: a function of picture and chain gives the call that finds the edges (H, W), above 0 where there is one


def opencv(picture: Picture, wanted: Chain) -> Call:
    """cv2.Canny, by all its threads: the same wanted."""
    size = (wanted.blur, wanted.blur)

    def find() -> Any:
        smoothed = cv2.GaussianBlur(picture, size, 0) if wanted.blur else picture
        return cv2.Canny(smoothed, *wanted.thresholds, L2gradient=wanted.l2)

    return find


def skimage(picture: Picture, wanted: Chain) -> Call:
    """skimage.feature.canny: its thinning interpolates, and its rim has no wanted."""
    if picture.ndim > 2 or wanted.blur or not wanted.l2:
        raise UnavailableError("it takes grey pictures, smooths by no binomial, and its gradient is sqrt(gx² + gy²)")
    canny = import_module("skimage.feature").canny
    return lambda: canny(picture, sigma=0, low_threshold=wanted.low, high_threshold=wanted.high)


def npp(picture: Picture, wanted: Chain) -> Call:
    """nppiFilterCannyBorder_8u_C1R on arrays of CuPy: some pixels are decided otherwise."""
    if absent := peer_candidates(["npp"], "cuda")[1]:
        raise UnavailableError(absent["npp"])
    if picture.ndim > 2 or wanted.blur:
        raise UnavailableError("it takes grey pictures and does not smooth")
    cupy, (height, width) = import_module("cupy"), picture.shape
    image, out = cupy.asarray(picture), cupy.empty(picture.shape, cupy.uint8)
    size, context, needed = nvidia.NppPair(width, height), nvidia.npp_context(cupy), c_int()
    nvidia.npp_call("nppiFilterCannyBorderGetBufferSize", size, byref(needed))
    scratch, (low, high) = cupy.empty(needed.value, cupy.uint8), map(int, wanted.thresholds)
    rules = (NPP_SOBEL, nvidia.MASK_3X3, low, high, NPP_NORMS[wanted.l2], nvidia.BORDER_REPLICATE)

    def find() -> Any:
        where = (image.data.ptr, width, size, nvidia.NppPair(0, 0), out.data.ptr, width, size)
        nvidia.npp_call("nppiFilterCannyBorder_8u_C1R_Ctx", *where, *rules, scratch.data.ptr, context)
        return out

    return find


PEERS = {"cpu": (opencv, skimage), "cuda": (npp,)}


def share_elsewhere(expected: Picture, found: Picture) -> float:
    """Edge pixels of either map that have none of the other within a pixel, as a share of all edge pixels of both.

    Of two equal neighbours every library keeps another one, which makes the same edge a pixel aside.
    """
    near = np.ones((3, 3), np.uint8)
    pairs = (expected, found), (found, expected)
    lone = sum(int(np.count_nonzero((one > 0) & (cv2.dilate(other, near) == 0))) for one, other in pairs)
    return lone / max(1, int(np.count_nonzero(expected)) + int(np.count_nonzero(found)))


# ---- measuring


def coast(size: int, channels: int) -> Picture:
    """The README's picture, mirrored up to the size: (size, size), its luma, or (size, size, 3)."""
    drawn = edgeconv.read_image(COAST).pixels
    beyond = [(0, max(0, size - side)) for side in drawn.shape[:2]]
    square = np.ascontiguousarray(np.pad(drawn, (*beyond, (0, 0)), mode="symmetric")[:size, :size])
    return square if channels > 1 else np.asarray(cv2.cvtColor(square, cv2.COLOR_RGB2GRAY), np.uint8)


def on_the_host(call: Call) -> float:
    """Seconds by the host's clock."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measure(name: str, picture: Picture, wanted: Chain, device: Any) -> list[dict[str, Any]]:
    """A row for each candidate: one run that is not counted, then all in turns."""
    place = get_device(device)
    on_device = place.time_once if place.moves_data else on_the_host
    hwc = np.atleast_3d(picture)
    own = plan(hwc.shape, "uint8", filter=wanted, method="sliding", device=device).prepared
    expected = own.run(hwc)[:, :, 0]
    run_opencv = opencv(picture, wanted)
    if not np.array_equal(expected, run_opencv()):
        side = picture.shape[0]
        raise SystemExit(f"benchmark_canny_peers: error: {name} at {side}: edgeconv's edges are not OpenCV's.")
    image, out = own.image if place.moves_data else hwc, own.out
    calls: dict[str, tuple[Callable[[Call], float], Call]] = {
        "copy": (on_device, place.floor(hwc.nbytes, expected.nbytes)),
        "edgeconv": (on_device, partial(own.method_plan.run, image, out)),
    }
    elsewhere, left_out = {"edgeconv": 0.0}, dict[str, str]()
    if place.moves_data:
        host_in, host_out = place.host_empty(hwc.shape, np.uint8), place.host_empty((*expected.shape, 1), np.uint8)
        np.copyto(host_in, hwc)

        def end_to_end() -> None:
            place.copy_in(host_in, image)
            own.method_plan.run(image, out)
            place.copy_out(out, host_out)

        calls["edgeconv, end to end"] = (on_the_host, end_to_end)
        calls["opencv on the host"] = (on_the_host, run_opencv)
    for peer in PEERS[device]:
        try:
            run = peer(picture, wanted)
        except (UnavailableError, ImportError) as reason:
            left_out[peer.__name__] = str(reason)
            continue
        found = np.asarray(on_host(run()) > 0, np.uint8)
        elsewhere[peer.__name__] = round(share_elsewhere(expected, found), 5)
        calls[peer.__name__] = (on_device, run)
    samples: dict[str, list[float]] = {who: [] for who in calls}
    started = time.perf_counter()
    while min(map(len, samples.values())) < SAMPLES and time.perf_counter() - started < SECONDS:
        for who, (clock, call) in calls.items():
            samples[who].append(1e6 * clock(call))
    case = {"case": name, "size": picture.shape[0], "device": device}
    rows = [case | {"candidate": who, "left_out": why} for who, why in left_out.items()]
    for who, took in samples.items():
        row = {"candidate": who, "samples": len(took), "median_us": round(statistics.median(took), 2)}
        row |= {"least_us": round(min(took), 2)} | ({"elsewhere": elsewhere[who]} if who in elsewhere else {})
        rows.append(case | row)
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="Where edgeconv and the peers compute.")
    parser.add_argument("--sizes", default="1024,4096", help="Sides of the pictures, with commas.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    cv2.setNumThreads(usable_threads())
    sizes, rows = [int(size) for size in asked.sizes.split(",")], []
    for name, channels, wanted in CASES:
        for size in sizes:
            rows += measure(name, coast(size, channels), wanted, asked.device)
    devices = {"host": get_device("cpu").describe(), "device": get_device(asked.device).describe()}
    record = {**header(), "kind": "canny peers", "versions": installed_versions(), **devices}
    record |= {"low": LOW, "high": HIGH, "rows": rows}
    write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
