"""Differences as PNGs with their scale written on them, and a contact sheet of N ways. Pillow draws the text.

<name>_heat.png      heat map, one pixel per picture pixel, the legend below
<name>_signed.png    red where the other is larger, blue where it is smaller
<name>_overlay.png   heat over the dimmed reference
<name>_side.png      reference, other and heat map beside each other
contact sheet        every input small, above its heat map and its figures; a single differing pixel stays visible
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.diff import maps
from edgeconv.diff.record import Comparison, Comparisons, number, share
from edgeconv.diff.scale import Colour, Scale

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

CELL_PIXELS = 320
"""Longest side of a picture on a contact sheet."""
CELLS_IN_A_ROW = 5


def comparison_pictures(comparisons: Comparisons) -> Iterator[Drawn]:
    """The four pictures of every comparison. Two pictures are in memory at a time."""
    reference = comparisons.reference.load().pixels
    low, high = maps.display_range(reference)
    shown = maps.view(reference, low, high)
    scale = comparisons.scale
    legend, signed_legend = _legend(scale), _signed_legend(scale)
    for comparison in comparisons.each:
        pixels = comparison.source.load().pixels
        classes = maps.class_map(reference, pixels)
        name = _file_name(comparison.label)
        caption = f"{comparison.label} against {comparisons.reference_label}"

        def single(kind: str, title: str, colours: NDArray[np.uint8], scale_of_it: Legend, name: str = name) -> Drawn:
            return f"{name}_{kind}.png", _png(_captioned(_enlarged(colours), [title], scale_of_it))

        colours = maps.heat(classes, scale)
        yield single("heat", f"|difference|: {caption}", colours, legend)
        signed = maps.signed(classes, maps.sign_map(reference, pixels), scale)
        yield single("signed", f"difference: {caption}", signed, signed_legend)
        painted = maps.overlay(shown, classes, scale)
        yield single("overlay", f"|difference| over the reference: {caption}", painted, legend)
        panels = [
            _captioned(_enlarged(shown), [comparisons.reference_label], []),
            _captioned(_enlarged(maps.view(pixels, low, high)), [comparison.label], []),
            _captioned(_enlarged(colours), ["|difference|"], legend),
        ]
        yield f"{name}_side.png", _png(_beside(panels))


def contact_sheet(comparisons: Comparisons, title: str) -> bytes:
    """One PNG: the reference, then every input above its heat map, with names and figures."""
    from PIL import Image

    reference = comparisons.reference.load().pixels
    low, high = maps.display_range(reference)
    blank = np.full((1, 1, 3), PAPER, np.uint8)
    cells = [
        _cell(maps.view(reference, low, high), blank, [comparisons.reference_label, "reference", comparisons.layout])
    ]
    for comparison in comparisons.each:
        pixels = comparison.source.load().pixels
        small = _small_map(maps.class_map(reference, pixels))
        heat = maps.heat(small, comparisons.scale)
        cells.append(_cell(maps.view(pixels, low, high), heat, _figure_lines(comparison)))
    rows = [_beside(cells[first : first + CELLS_IN_A_ROW]) for first in range(0, len(cells), CELLS_IN_A_ROW)]
    sheet = Image.new("RGB", (max(row.width for row in rows), sum(row.height + MARGIN for row in rows)), PAPER)
    y = 0
    for row in rows:
        sheet.paste(row, (0, y))
        y += row.height + MARGIN
    return _png(_captioned(np.asarray(sheet), [title] if title else [], _legend(comparisons.scale)))


def _figure_lines(comparison: Comparison) -> list[str]:
    part = comparison.figures.judged
    verdict = "same" if comparison.figures.same else "differs"
    if part.unequal_samples == 0:
        return [comparison.label, f"{verdict}: all samples equal", ""]
    return [
        comparison.label,
        f"{verdict}: {part.differing_samples:,} samples ({share(part)})",
        f"largest {number(part.max_abs)}, PSNR {part.psnr_db:.1f} dB",
    ]


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


def _captioned(pixels: NDArray[Any], lines: Sequence[str], legend: Legend) -> Image.Image:
    """A picture with lines of text above it and the scale below it."""
    from PIL import Image, ImageDraw

    width = max(pixels.shape[1], LEAST_WIDTH)
    top = len(lines) * LINE_PIXELS + (MARGIN if lines else 0)
    probe = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    places = _legend_places(probe, legend, width)
    bottom = places[-1][1] + LINE_PIXELS + MARGIN if places else 0
    sheet = Image.new("RGB", (width, top + pixels.shape[0] + bottom), PAPER)
    draw = ImageDraw.Draw(sheet)
    for index, line in enumerate(lines):
        draw.text((MARGIN, MARGIN // 2 + index * LINE_PIXELS), _plain(line), INK, _font())
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


def _cell(shown: NDArray[np.uint8], heat: NDArray[np.uint8], lines: Sequence[str]) -> Image.Image:
    """A small picture, its heat map under it, its text above."""
    from PIL import Image

    factor = _factor(shown.shape)
    small = _enlarged(maps.shrunk_view(shown, factor) if factor > 1 else shown)
    upper, lower = Image.fromarray(small), Image.fromarray(heat)
    both = Image.new("RGB", (upper.width, upper.height + MARGIN + lower.height), PAPER)
    both.paste(upper, (0, 0))
    both.paste(lower, (0, upper.height + MARGIN))
    return _captioned(np.asarray(both), lines, [])


def _small_map(classes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    factor = _factor(classes.shape)
    return _enlarged(maps.shrunk_map(classes, factor) if factor > 1 else classes)


def _factor(shape: tuple[int, ...]) -> int:
    """Whole number by which a picture is made smaller to fit a cell."""
    return -(-max(shape[:2]) // CELL_PIXELS)


def _enlarged(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture that is much smaller than a cell, its pixels repeated."""
    times = max(1, CELL_PIXELS // max(pixels.shape[:2]))
    return np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)
