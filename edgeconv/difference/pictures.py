"""Pictures of a comparison: the map with its legend as `<name>_map.png`, and thumbnails for the gallery of two folders.

A single differing pixel stays visible in a thumbnail: it is ringed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.difference.compare import Compared
from edgeconv.difference.figures import Box
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import Scale, scale_for
from edgeconv.difference.tiles import webp
from edgeconv.io.encoding import encode_image
from edgeconv.page import data_address

TEXT_PIXELS = 13
LINE_PIXELS = 18
MARGIN = 8
LEAST_WIDTH = 360
"""Narrower maps get a margin, so that the legend can be read."""
PAPER, INK = (24, 24, 27), (235, 235, 235)

THUMBNAIL = 256
"""Pixels of a thumbnail's longest side."""
RING_PIXELS = 7
"""Radius of a ring in a thumbnail; a region that is not larger is ringed."""
HOW = {"quality": 80}
"""Of a WebP to look at."""
REFERENCE, NEW, MAP = "reference", "new", "difference"
"""What a thumbnail shows."""

Thumbnails = dict[str, str]
"""Addresses of pictures within the page, by what they show."""


def comparison_pictures(record: Compared, before: Input, others: Sequence[Input]) -> Iterator[tuple[str, bytes]]:
    """(file name, PNG) of every comparison. Two pictures are in memory at a time."""
    reference = before.load().pixels
    shown = maps.view(reference, *maps.display_range(reference))
    for other, label in zip(others, record.labels[1:], strict=True):
        pixels = other.load().pixels
        name = re.sub(r"[^\w.-]+", "_", label.rpartition(".")[0] or label)
        painted = maps.overlay(shown, maps.class_map(reference, pixels), record.scale)
        yield f"{name}_map.png", bytes(encode_image(_with_legend(painted, record.scale), "map.png"))


def _with_legend(pixels: NDArray[np.uint8], scale: Scale) -> NDArray[np.uint8]:
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
    return np.asarray(sheet)


def changed_thumbnails(reference: Input, new: Input, regions: Sequence[Box]) -> Thumbnails:
    """The reference, the new picture, and where they differ, with rings around what is tiny."""
    import cv2

    before, after = reference.load().pixels, new.load().pixels
    low, high = maps.display_range(before)
    factor = _factor(before.shape)
    shrunk = maps.shrunk_view(maps.view(before, low, high), factor)
    classes = maps.shrunk_map(maps.class_map(before, after), factor)
    painted = maps.overlay(shrunk, classes, scale_for(before.dtype))
    for box in regions:
        if max(box.right - box.left, box.bottom - box.top) < RING_PIXELS * factor:
            middle = (box.left + box.right) // 2 // factor, (box.top + box.bottom) // 2 // factor
            cv2.circle(painted, middle, RING_PIXELS, (255, 255, 255), 1, cv2.LINE_AA)
    pictures = {REFERENCE: thumbnail(before, low, high), NEW: thumbnail(after, low, high), MAP: webp(painted, HOW)}
    return {label: data_address("image/webp", picture) for label, picture in pictures.items()}


def alone(pixels: NDArray[Any]) -> str:
    """The address of a thumbnail of a picture that nothing is compared with."""
    return data_address("image/webp", thumbnail(pixels, *maps.display_range(pixels)))


def thumbnail(pixels: NDArray[Any], low: float, high: float, side: int = THUMBNAIL) -> bytes:
    """A picture (HWC) as a WebP of at most `side` pixels a side."""
    return webp(maps.shrunk_view(maps.view(pixels, low, high), _factor(pixels.shape, side)), HOW)


def _factor(shape: tuple[int, ...], side: int = THUMBNAIL) -> int:
    return max(1, -(-max(shape[:2]) // side))
