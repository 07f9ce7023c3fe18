"""Measure Canny on the CPU engine beside OpenCV's, both with all usable threads and in turns.

    python3 scripts/benchmark_canny.py --output docs/results/canny_NAME.json
    python3 scripts/committed.py                   puts it beside the other small records

The pictures: `leaves` are discs of many sizes over each other, sharp on the left and soft on the right, with a little
noise, which has about the statistics of a photograph; `noise` has every value in every place; `flat` has no edge;
`spiral` is one weak edge through all of the picture, strong in its middle alone, which goes on in one strip after
another. Each result is compared with OpenCV's before it is timed. `threads` is the leaves at the largest size by fewer
threads. Compare within a run only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import committed
import cv2
import numpy as np
from benchmark_crew import quantiles, timed
from numpy.typing import NDArray
from script_options import Arguments, stopped

import edgeconv
from edgeconv.core.canny import CannySettings
from edgeconv.core.choices import Gradient
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.noise import SEED, noise_pixels
from edgeconv.hardware.threads import usable_threads
from edgeconv.hardware.versions import installed_versions
from edgeconv.methods.options import Options
from edgeconv.run.report import header
from edgeconv.runtime.devices import get_device

Picture = NDArray[np.uint8]

PIXELS_PER_LEAF = 80
SMALLEST_LEAF, LARGEST_LEAF = 2.0, 300.0
"""Radii, in pixels."""
NOISE_LEVELS = 4
PITCH, WEAK_LINE, STRONG_LINE = 8, 25, 106
SAMPLES = 30
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


def measure(case: Case, size: int, threads: int | None, seconds: float, peer: bool = True) -> dict[str, Any]:
    """One row: both in turns, each after one run that is not counted."""
    name, drawn, settings = case
    picture = drawn(size)
    gradient: Gradient = "l2" if settings.l2 else "l1"
    chain = edgeconv.chain("canny", low=settings.low, high=settings.high, gradient=gradient, blur=settings.blur)
    plan = edgeconv.plan(
        picture.shape,
        picture.dtype,
        filter=chain,
        method="sliding",
        device="cpu",
        options=Options(threads=threads),
    )
    out = np.zeros(plan.output_shape, np.uint8)
    calls: dict[str, Callable[[], Any]] = {"edgeconv": partial(plan, picture, out=out)}
    if peer:
        calls["opencv"] = partial(by_opencv, picture, settings)
    plan(picture, out=out)
    expected = by_opencv(picture, settings)
    if not np.array_equal(out, expected):
        raise stopped(f"{name} at {size}: {np.count_nonzero(out != expected)} pixels differ from OpenCV's.")
    samples: dict[str, list[float]] = {who: [] for who in calls}
    started = time.perf_counter()
    while min(map(len, samples.values())) < SAMPLES and time.perf_counter() - started < seconds:
        for who, call in calls.items():
            call()
            samples[who].append(timed(call))
    choice = plan.method_plan.choice
    row = {"case": name, "size": size, "threads": choice["threads"], "strip_rows": choice["strip_rows"]}
    row |= {
        "edge_share": round(float((expected > 0).mean()), 4),
        "samples": len(samples["edgeconv"]),
    }
    row |= {f"{who}_microseconds": quantiles(found) for who, found in samples.items()}
    print(row, flush=True)
    return row


def main() -> None:
    """Measure, print and write the record."""
    parser = Arguments(__doc__)
    parser.add_argument("--sizes", default="512,1024,4096", help="Sides of the pictures, with commas.")
    parser.add_argument("--seconds", type=float, default=2.0, help="Longest time for each row.")
    parser.add_argument("--output", type=Path, required=True, help="Write the figures to this file, as JSON.")
    asked = parser.parse_args()
    sizes = [int(size) for size in asked.sizes.split(",")]
    cv2.setNumThreads(usable_threads())
    record: dict[str, Any] = {
        **header(),
        "kind": "canny",
        "versions": installed_versions(),
        "host": get_device("cpu").describe(),
        "low": LOW,
        "high": HIGH,
        "rows": [measure(case, size, None, asked.seconds) for case in CASES for size in sizes],
    }
    counts = [count for count in (1, 2, 4, 8, 16, 32) if count <= usable_threads()]
    record["threads"] = [measure(CASES[0], sizes[-1], count, asked.seconds, peer=False) for count in counts]
    committed.write(asked.output, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
