"""Differences as PNGs: the map over the dimmed reference with its legend, and both pictures beside each other.

<name>_map.png    one pixel per picture pixel, the legend below
<name>_pair.png   the reference and the other
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.difference.compare import Compared
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import Scale

if TYPE_CHECKING:
    from PIL import Image

TEXT_PIXELS = 13
LINE_PIXELS = 18
MARGIN = 8
LEAST_WIDTH = 360
"""Narrower maps get a margin, so that the legend can be read."""
PAPER, INK = (24, 24, 27), (235, 235, 235)
SMALL_PIXELS = 320
"""Pictures whose longest side is at most half of this are enlarged."""


def comparison_pictures(record: Compared, before: Input, others: Sequence[Input]) -> Iterator[tuple[str, bytes]]:
    """(file name, PNG): the two of every comparison. Two pictures are in memory at a time."""
    reference = before.load().pixels
    low, high = maps.display_range(reference)
    shown = maps.view(reference, low, high)
    for other, label in zip(others, record.labels[1:], strict=True):
        pixels = other.load().pixels
        name = re.sub(r"[^\w.-]+", "_", label.rpartition(".")[0] or label)
        painted = maps.overlay(shown, maps.class_map(reference, pixels), record.scale)
        yield f"{name}_map.png", _png(_with_legend(_enlarged(painted), record.scale))
        gap = np.broadcast_to(np.array(PAPER, np.uint8), (shown.shape[0], MARGIN, 3))
        yield f"{name}_pair.png", _png(_enlarged(np.hstack([shown, gap, maps.view(pixels, low, high)])))


def _png(picture: Image.Image | NDArray[np.uint8]) -> bytes:
    from edgeconv.io.encoding import encode_image

    return bytes(encode_image(np.asarray(picture), "picture.png"))


def _with_legend(pixels: NDArray[np.uint8], scale: Scale) -> Image.Image:
    """A map with the scale below it, in lines that are not wider."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = pixels.shape[0], max(pixels.shape[1], LEAST_WIDTH)
    font = ImageFont.load_default(TEXT_PIXELS)
    entries = [(label.replace("–", "-"), colour) for label, colour in scale.legend]  # in the glyphs of Pillow's font
    step = MARGIN + LINE_PIXELS + max(round(font.getlength(label)) for label, _ in entries) + MARGIN
    in_a_line = max(1, width // step)
    sheet = Image.new("RGB", (width, height + MARGIN + LINE_PIXELS * -(-len(entries) // in_a_line)), PAPER)
    sheet.paste(Image.fromarray(pixels), (0, 0))
    draw = ImageDraw.Draw(sheet)
    for number, (label, colour) in enumerate(entries):
        x, y = MARGIN + number % in_a_line * step, height + MARGIN // 2 + number // in_a_line * LINE_PIXELS
        draw.rectangle((x, y, x + TEXT_PIXELS, y + TEXT_PIXELS), colour, INK)
        draw.text((x + LINE_PIXELS, y), label, INK, font)
    return sheet


def _enlarged(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A small picture with its pixels repeated, others as they are."""
    times = max(1, SMALL_PIXELS // max(pixels.shape[:2]))
    return np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)
