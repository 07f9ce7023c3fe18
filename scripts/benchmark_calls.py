"""Measure calls of `edgeconv.plan` and `edgeconv.convolve` beside a bare launch, PyTorch and OpenCV; and batches.

    python3 scripts/benchmark_calls.py --output docs/results/calls_NAME.json [--device cuda]

`calls`: microseconds from call to call of many back to back, the median of several trains; on a GPU they end with a
wait for the last. `batches`: GPU time of one call for a batch, by events with a cold L2, beside a device copy of as
many bytes. Whatever is not installed is left out.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from script_options import Arguments

import edgeconv
from edgeconv.core.filters import named_filter
from edgeconv.hardware.versions import installed_versions
from edgeconv.io.files import write_bytes_atomically
from edgeconv.run.report import header
from edgeconv.runtime.devices import get_device

SIDES = {"cpu": (32, 128), "cuda": (128, 512, 1024)}
BATCHES = ((128, 1024), (256, 256), (512, 64))
KINDS = (
    ("float32", "laplacian8", "mix"),
    ("uint8", "laplacian8", "each"),
    ("uint8", "sobel", "each"),
    ("float16", "laplacian8", "mix"),
)
TRAINS, CALLS = 7, 2000
SAMPLES = 30

COPY = """
extern "C" __global__ void copy(const float *a, float *b, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) b[i] = a[i];
}
"""


def train(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Microseconds of a call among many back to back."""
    for _ in range(CALLS // 10):
        call()
    wait()
    found = []
    for _ in range(TRAINS):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        wait()
        found.append((time.perf_counter() - started) / CALLS * 1e6)
    return round(statistics.median(found), 2)


def cpu_calls(side: int) -> dict[str, float]:
    """uint8, each channel by itself, beside cv2.filter2D with one thread and a buffer of its own."""
    import cv2

    cv2.setNumThreads(1)
    image = np.random.default_rng(1).integers(0, 256, (side, side, 3), np.uint8)
    out = np.empty_like(image)
    kernel = named_filter("laplacian8").kernels[0]
    rules = {"channels": "each", "device": "cpu"}
    plan = edgeconv.plan(image.shape, "uint8", filter="laplacian8", method="sliding", **rules)  # type: ignore[arg-type]

    def opencv() -> None:
        cv2.filter2D(image, -1, kernel, dst=out, borderType=cv2.BORDER_CONSTANT)

    calls: dict[str, Callable[[], Any]] = {
        "cv2.filter2D": opencv,
        "plan(image, out=)": lambda: plan(image, out=out),
        "plan(image)": lambda: plan(image),
        "convolve, a method named": lambda: edgeconv.convolve(image, "laplacian8", "sliding", **rules),  # type: ignore[arg-type]
        "convolve, auto": lambda: edgeconv.convolve(image, "laplacian8", **rules),  # type: ignore[arg-type]
    }
    return {name: train(call, lambda: None) for name, call in calls.items()}


def gpu_calls(side: int) -> dict[str, float]:
    """float32, all channels mixed, beside a bare RawKernel and PyTorch's conv2d (channels last)."""
    import cupy

    image = cupy.random.random((side, side, 3), dtype=cupy.float32)
    out, kernel = cupy.empty_like(image), cupy.RawKernel(COPY, "copy")
    grid, arguments = ((image.size + 255) // 256,), (image, out, np.int32(image.size))
    plan = edgeconv.plan(image.shape, "float32", filter="laplacian8", method="sliding", device="cuda")
    calls: dict[str, Callable[[], Any]] = {
        "bare RawKernel": lambda: kernel(grid, (256,), arguments),
        "cupy.empty": lambda: cupy.empty(image.shape, cupy.float32),
        "plan(image, out=)": lambda: plan(image, out=out),
        "plan(image)": lambda: plan(image),
        "convolve, a method named": lambda: edgeconv.convolve(image, "laplacian8", "sliding"),
        "convolve, auto": lambda: edgeconv.convolve(image, "laplacian8"),
    }
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        tensor = torch.rand((side, side, 3), device="cuda")
        room = torch.empty_like(tensor)
        weights = torch.rand((3, 3, 3, 3), device="cuda").to(memory_format=torch.channels_last)
        nchw = tensor.permute(2, 0, 1)[None]
        conv2d = torch.nn.functional.conv2d
        calls |= {
            "plan(tensor, out=)": lambda: plan(tensor, out=room),
            "plan(tensor)": lambda: plan(tensor),
            "convolve, a tensor": lambda: edgeconv.convolve(tensor, "laplacian8", "sliding"),
            "torch conv2d": lambda: conv2d(nchw, weights, padding=1),
        }
    return {name: train(call, cupy.cuda.Device().synchronize) for name, call in calls.items()}


def gpu_batches() -> list[dict[str, Any]]:
    """Each batch in one call, checked against its first and last picture alone."""
    import cupy

    device, rows = get_device("cuda"), []
    for dtype, name, channels in KINDS:
        for side, pictures in BATCHES:
            host = np.random.default_rng(2).integers(0, 255, (pictures, side, side, 3)).astype(dtype)
            batch = cupy.asarray(host)
            out = cupy.empty_like(batch)
            plan = edgeconv.plan(batch.shape, dtype, filter=name, channels=channels, method="sliding", device="cuda")
            plan(batch, out=out)
            for number in (0, pictures - 1):
                alone = edgeconv.convolve(host[number], name, "reference", channels=channels)
                assert np.allclose(out[number].get().astype(float), alone.astype(float), rtol=1e-2), (dtype, name, side)
            copy = device.copier(batch.nbytes + out.nbytes)
            seconds = {
                what: statistics.median(device.time_once(call) for _ in range(SAMPLES))
                for what, call in (
                    ("copy", copy),
                    ("batch", lambda plan=plan, batch=batch, out=out: plan(batch, out=out)),
                )
            }
            rows.append(
                {
                    "dtype": dtype,
                    "filter": name,
                    "channels": channels,
                    "side": side,
                    "pictures": pictures,
                    "copy_seconds": seconds["copy"],
                    "batch_seconds": seconds["batch"],
                    "share_of_copy": round(seconds["copy"] / seconds["batch"], 3),
                    "launches": plan.method_plan.launches,
                }
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="What computes: {choices}.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    of = gpu_calls if asked.device == "cuda" else cpu_calls
    record: dict[str, Any] = {
        **header(),
        "kind": "calls",
        "versions": installed_versions(),
        "device": get_device(asked.device).describe(),
        "host": get_device("cpu").describe(),
        "calls_microseconds": {str(side): of(side) for side in SIDES[asked.device]},
    }
    for side, found in record["calls_microseconds"].items():
        print(side, found, flush=True)
    if asked.device == "cuda":
        record["batches"] = gpu_batches()
    write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
