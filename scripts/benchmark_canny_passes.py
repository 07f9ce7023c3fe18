"""Measure the passes of Canny on a GPU: each alone is the time of the first so many, less those before it.

    python3 scripts/benchmark_canny_passes.py --output docs/results/canny_passes_NAME.json

The pictures: `leaves` are discs of many sizes over each other, with a little noise, which has about the statistics of a
photograph; `noise` has every value in every place; `flat` has no edge; `spiral` is one weak edge through all of the
picture, strong in its middle alone. Times are medians by CUDA events with a cold L2, beside a copy of the
picture: as many bytes read as written. Each result is compared with OpenCV's before it is timed. Compare within a run
only.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from script_options import Arguments, stopped

from edgeconv.core.canny import CannySettings
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.noise import SEED, noise_pixels
from edgeconv.core.records import header
from edgeconv.hardware.devices import get_device
from edgeconv.io.files import write_bytes_atomically
from edgeconv.methods.cuda.canny import plan_canny

Picture = NDArray[np.uint8]

PASSES = ("first_pass", "label", "join", "expand")
SAMPLES = 15
PIXELS_PER_LEAF = 80
SMALLEST_LEAF, LARGEST_LEAF = 2.0, 300.0
"""Radii, in pixels."""
NOISE_LEVELS = 4
PITCH, WEAK_LINE, STRONG_LINE = 8, 25, 106
LOW, HIGH = 50.0, 150.0


def spiral(height: int, width: int) -> Picture:
    """A line from the corner to the middle, so weak that only its last dot has edges above the upper threshold."""
    picture = np.zeros((height, width), np.uint8)
    inner = PITCH // 2
    while inner < min(height, width) // 2 - PITCH:
        last_y, last_x = height - 1 - inner, width - 1 - inner
        picture[inner, inner - PITCH * (inner > PITCH) : last_x + 1] = WEAK_LINE
        picture[inner : last_y + 1, last_x] = WEAK_LINE
        picture[last_y, inner : last_x + 1] = WEAK_LINE
        picture[inner + PITCH : last_y + 1, inner] = WEAK_LINE
        inner += PITCH
    picture[inner : inner + 2, inner - PITCH] = STRONG_LINE
    return picture


@cache
def leaves(size: int) -> Picture:
    """Discs of many sizes, colours and sharpness over each other, RGB, with a little noise."""
    rng = np.random.default_rng(SEED)
    picture = np.full((size, size, RGB_CHANNELS), 128, np.uint8)
    count = size * size // PIXELS_PER_LEAF
    # Areas by the power law of what photographs show; see A. Lee, D. Mumford, J. Huang, 2001.
    radii = SMALLEST_LEAF / np.sqrt(rng.uniform((SMALLEST_LEAF / LARGEST_LEAF) ** 2, 1, count))
    places, colours = rng.integers(0, size, (count, 2)), rng.integers(0, 256, (count, RGB_CHANNELS))
    for radius, place, colour in zip(radii, places.tolist(), colours.tolist(), strict=True):
        cv2.circle(picture, place, round(radius), colour, cv2.FILLED, cv2.LINE_AA)
    half = size // 2
    for columns, softness in ((slice(0, half), 0.8), (slice(half, size), 2.0)):
        picture[:, columns] = cv2.GaussianBlur(picture[:, columns], (0, 0), softness)
    noise_levels = rng.integers(-NOISE_LEVELS, NOISE_LEVELS, picture.shape, np.int16, endpoint=True)
    return np.asarray(np.clip(picture + noise_levels, 0, 255), np.uint8)


def grey(picture: Picture) -> Picture:
    """Its luma."""
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)


def noise(size: int) -> Picture:
    """Grey noise."""
    return np.ascontiguousarray(noise_pixels(size, size, "uint8", 1)[:, :, 0])


Case = tuple[str, Callable[[int], Picture], CannySettings]
CASES: tuple[Case, ...] = (
    ("leaves, grey", lambda size: grey(leaves(size)), CannySettings(LOW, HIGH)),
    ("leaves, grey, L2", lambda size: grey(leaves(size)), CannySettings(LOW, HIGH, l2=True)),
    ("leaves, grey, smoothed 5×5", lambda size: grey(leaves(size)), CannySettings(LOW, HIGH, blur=5)),
    ("leaves, RGB", leaves, CannySettings(LOW, HIGH)),
    ("noise, grey", noise, CannySettings(LOW, HIGH)),
    ("flat, grey", lambda size: np.zeros((size, size), np.uint8), CannySettings(LOW, HIGH)),
    ("spiral, grey", lambda size: spiral(size, size), CannySettings(LOW, HIGH)),
)


def by_opencv(picture: Picture, settings: CannySettings) -> Picture:
    """What an OpenCV user writes."""
    if settings.blur:
        picture = np.asarray(cv2.GaussianBlur(picture, (settings.blur, settings.blur), 0), np.uint8)
    return np.asarray(cv2.Canny(picture, settings.low, settings.high, L2gradient=settings.l2), np.uint8)


def measure(case: Case, size: int) -> dict[str, Any]:
    """One row."""
    import cupy

    name, drawn, settings = case
    picture, device = drawn(size), get_device("cuda")
    plan = plan_canny(picture.shape, picture.dtype, settings)
    image, out = cupy.asarray(picture), cupy.empty(picture.shape[:2], np.uint8)
    if not np.array_equal(cupy.asnumpy(plan.run(image, out)), by_opencv(picture, settings)):
        raise stopped(f"{name} at {size}: the edges are not OpenCV's.")
    passes = plan.passes(image, out)

    def first_of_them(count: int) -> None:
        for launch in passes[:count]:
            launch()

    calls = [device.floor(picture.nbytes, picture.nbytes)]
    calls += [partial(first_of_them, count) for count in range(1, len(passes) + 1)]
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(SAMPLES):
        for call, found in zip(calls, samples, strict=True):
            found.append(1e6 * device.time_once(call))
    copy, *until = (statistics.median(found) for found in samples)
    row: dict[str, Any] = {"case": name, "size": size, "copy_us": round(copy, 2)}
    for which, before, after in zip(PASSES, (0.0, *until), until, strict=False):
        row[f"{which}_us"] = round(after - before, 2)
    row["whole_us"] = round(until[-1], 2)
    print(row, flush=True)
    return row


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--sizes", default="1024,4096", help="Sides of the pictures, with commas.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    record: dict[str, Any] = {
        **header(),
        "kind": "canny passes",
        "device": get_device("cuda").describe(),
        "low": LOW,
        "high": HIGH,
        "rows": [measure(case, size) for case in CASES for size in sizes],
    }
    write_bytes_atomically(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
