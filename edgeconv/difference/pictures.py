"""Differences as PNGs, `<name>_map.png`: the map over the dimmed reference, a pixel for a pixel, its legend below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from edgeconv.difference import maps
from edgeconv.difference.compare import Compared
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import Scale
from edgeconv.io.encoding import encode_image

TEXT_PIXELS = 13
LINE_PIXELS = 18
MARGIN = 8
LEAST_WIDTH = 360
"""Narrower maps get a margin, so that the legend can be read."""
PAPER, INK = (24, 24, 27), (235, 235, 235)


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
