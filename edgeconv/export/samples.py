"""What the filters of a record give, on a small drawn picture, by the oracle: discs, a bar, a ramp and fine lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.record import BenchRecord
from edgeconv.bench.synthetic import BANK_NAME, bench_filter
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.output import normalize, store
from edgeconv.core.request import make_request
from edgeconv.io.files import STANDARD_STREAM
from edgeconv.io.image import encode_image
from edgeconv.methods.reference import values

SIDE = 96
DISCS = ((30, 30, 20, (230, 60, 40)), (58, 40, 18, (40, 120, 220)), (44, 66, 14, (250, 220, 60)))
"""Centre row and column, radius, colour."""


@dataclass(frozen=True)
class FilterSample:
    """A picture and what it shows."""

    title: str
    png: bytes


def chart() -> NDArray[Any]:
    """The drawn picture, uint8, HWC."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    picture = np.repeat((40 + columns // 2)[..., np.newaxis], RGB_CHANNELS, axis=-1).astype(np.uint8)
    picture[SIDE - 18 : SIDE - 6, 8 : SIDE // 2] = (30, 160, 90)
    picture[SIDE - 18 : SIDE - 6, SIDE // 2 : SIDE - 8 : 4] = 240
    for y, x, radius, colour in DISCS:
        picture[(rows - y) ** 2 + (columns - x) ** 2 <= radius**2] = colour
    return picture


def samples(record: BenchRecord) -> list[FilterSample]:
    """The picture, and one result for each filter and channel mode that the record names; none of a record of banks.

    A bank has many outputs, of random weights: there is nothing to see in them.
    """
    picture = chart()
    pairs = dict.fromkeys((row.case.filter, row.case.channels) for row in record.rows)
    pairs = {pair: None for pair in pairs if not BANK_NAME.fullmatch(pair[0])}
    if not pairs:
        return []
    shown = [FilterSample("the picture", bytes(encode_image(picture, STANDARD_STREAM, format="png")))]
    for name, channels in pairs:
        problem = make_request(bench_filter(name, channels), channels=channels).problem(picture.shape, picture.dtype)
        raw = values(picture, problem, 0, problem.output_height)
        # Random weights say nothing as |value| clipped; stretched to the full range they do.
        stretched = name.startswith("random")
        result = normalize(raw, picture.dtype) if stretched else store(raw, "abs", picture.dtype)
        full = np.broadcast_to(result, picture.shape) if result.shape[-1] == 1 else result
        words = f"{name}, {channels}" + (", stretched" if stretched else "")
        shown.append(
            FilterSample(words, bytes(encode_image(np.ascontiguousarray(full), STANDARD_STREAM, format="png")))
        )
    return shown
