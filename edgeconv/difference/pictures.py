"""Differences as PNGs with their scale written on them. Pillow draws the text.

<name>_heat.png      heat map, one pixel per picture pixel, the legend below
<name>_signed.png    red where the other is larger, blue where it is smaller
<name>_overlay.png   heat over the dimmed reference
<name>_side.png      reference, other and heat map beside each other
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
from edgeconv.difference.scale import Colour, Scale

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

Drawn = tuple[str, bytes]
"""(file name, PNG)."""
Legend = Sequence[tuple[Colour, str]]

TEXT_PIXELS = 13
LINE_PIXELS = 18
MARGIN = 8
SWATCH_PIXELS = 14
LEAST_WIDTH = 360
"""Narrower pictures get a margin, so that legend and captions can be read."""
PAPER, INK = (24, 24, 27), (235, 235, 235)

SMALL_PIXELS = 320
"""Pictures whose longest side is at most half of this are enlarged."""


def comparison_pictures(record: Compared, before: Input, others: Sequence[Input]) -> Iterator[Drawn]:
    """The four pictures of every comparison. Two pictures are in memory at a time."""
    reference = before.load().pixels
    reference_label, *labels = record.labels
    low, high = maps.display_range(reference)
    shown = maps.view(reference, low, high)
    scale = record.scale
    legend, signed_legend = _legend(scale), _signed_legend(scale)
    for other, label in zip(others, labels, strict=True):
        pixels = other.load().pixels
        classes = maps.class_map(reference, pixels)
        name = _file_name(label)
        caption = f"{label} against {reference_label}"

        def single(kind: str, title: str, colours: NDArray[np.uint8], scale_of_it: Legend, name: str = name) -> Drawn:
            return f"{name}_{kind}.png", _png(_captioned(_enlarged(colours), title, scale_of_it))

        colours = maps.heat(classes, scale)
        yield single("heat", f"|difference|: {caption}", colours, legend)
        signed = maps.signed(classes, maps.sign_map(reference, pixels), scale)
        yield single("signed", f"difference: {caption}", signed, signed_legend)
        painted = maps.overlay(shown, classes, scale)
        yield single("overlay", f"|difference| over the reference: {caption}", painted, legend)
        panels = [
            _captioned(_enlarged(shown), reference_label, []),
            _captioned(_enlarged(maps.view(pixels, low, high)), label, []),
            _captioned(_enlarged(colours), "|difference|", legend),
        ]
        yield f"{name}_side.png", _png(_beside(panels))


def _file_name(label: str) -> str:
    """A label as a file name without its suffix."""
    return re.sub(r"[^\w.-]+", "_", label.rpartition(".")[0] or label)


# --- Pillow -----------------------------------------------------------------------------------------------------


def _png(picture: Image.Image) -> bytes:
    """Encoded by OpenCV, which is several times as fast as Pillow."""
    from edgeconv.io.image import encode_image

    return bytes(encode_image(np.asarray(picture), "picture.png"))


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    from PIL import ImageFont

    return ImageFont.load_default(TEXT_PIXELS)


def _legend(scale: Scale) -> Legend:
    return list(zip(scale.colours, scale.labels, strict=True))


def _signed_legend(scale: Scale) -> Legend:
    """From the most negative to the most positive class."""
    table = maps.signed_colours(scale)
    count = len(scale.labels)
    entries = [(table[-1, index], f"- {scale.labels[index]}") for index in range(count - 1, 0, -1)]
    entries += [(table[0, 0], scale.labels[0])]
    entries += [(table[1, index], f"+ {scale.labels[index]}") for index in range(1, count)]
    return [((int(red), int(green), int(blue)), label) for (red, green, blue), label in entries]


def _captioned(pixels: NDArray[np.uint8], title: str, legend: Legend) -> Image.Image:
    """A picture with its title above it and the scale below it."""
    from PIL import Image, ImageDraw

    width = max(pixels.shape[1], LEAST_WIDTH)
    top = LINE_PIXELS + MARGIN
    probe = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    places = _legend_places(probe, legend, width)
    bottom = places[-1][1] + LINE_PIXELS + MARGIN if places else 0
    sheet = Image.new("RGB", (width, top + pixels.shape[0] + bottom), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN // 2), _plain(title), INK, _font())
    sheet.paste(Image.fromarray(pixels), (0, top))
    for (x, y), (colour, label) in zip(places, legend, strict=True):
        y += top + pixels.shape[0]
        draw.rectangle((x, y, x + SWATCH_PIXELS, y + SWATCH_PIXELS), colour, INK)
        draw.text((x + SWATCH_PIXELS + MARGIN // 2, y), _plain(label), INK, _font())
    return sheet


def _legend_places(draw: ImageDraw.ImageDraw, legend: Legend, width: int) -> list[tuple[int, int]]:
    """Top left of each swatch, in lines that are not wider than `width`."""
    places = []
    x, y = MARGIN, MARGIN
    for _, label in legend:
        length = SWATCH_PIXELS + 2 * MARGIN + round(draw.textlength(_plain(label), _font()))
        if x + length > width and x > MARGIN:
            x, y = MARGIN, y + LINE_PIXELS
        places.append((x, y))
        x += length
    return places


def _plain(text: str) -> str:
    """Text in the glyphs that Pillow's own font has."""
    return text.replace("–", "-").replace("×", "x").encode("latin-1", "replace").decode("latin-1")


def _beside(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures in a row, aligned at the top."""
    from PIL import Image

    width = sum(picture.width for picture in pictures) + MARGIN * (len(pictures) - 1)
    row = Image.new("RGB", (width, max(picture.height for picture in pictures)), PAPER)
    x = 0
    for picture in pictures:
        row.paste(picture, (x, 0))
        x += picture.width + MARGIN
    return row


def _enlarged(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A small picture with its pixels repeated, others as they are."""
    times = max(1, SMALL_PIXELS // max(pixels.shape[:2]))
    return np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)
