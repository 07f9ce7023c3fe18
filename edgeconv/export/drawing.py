"""Plots as data, drawn as README's is: labels at the ends of lines, ticks as `10,000`, no legend.

    Lines   curves over a size or a number of filters, both axes logarithmic
    Bars    a bar for each name, from zero, with its figure at the end

A plot becomes shapes in a frame of `WIDTH` pixels, and shapes become SVG, whose text stays text, or PNG by Pillow, on
white. The same plot gives the same SVG everywhere. A file is as wide as a phone shows it, so that its text can be read
there.
"""

from __future__ import annotations

import io
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Literal

from edgeconv.core.safe_text import visible
from edgeconv.core.units import digits_text
from edgeconv.export.colours import PALETTE
from edgeconv.io.files import xml_text

WIDTH, HEIGHT = 440, 300
FONT = 12
LETTER = 0.6 * FONT
"""The mean width of a letter."""
TOP, BOTTOM = 30, 42
LABEL_GAP = 15
"""Least distance between the middles of two labels."""
ROW = 20
PNG_SCALE, PNG_SMOOTH = 2, 2
"""Pixels of a PNG for one of a drawing; and how much larger it is drawn before it is made smooth."""

ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}
"""Of Pillow."""
FONT_FILE = ("fonts", "ttf", "DejaVuSans.ttf")

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


@dataclass(frozen=True)
class Stroke:
    """A line through points."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1
    dashed: bool = False


@dataclass(frozen=True)
class Block:
    """A filled rectangle; a dot is one with round corners."""

    corner: Point
    size: tuple[float, float]
    colour: str
    round: float = 0


@dataclass(frozen=True)
class Word:
    """Text, in the middle of whose height the point is."""

    point: Point
    text: str
    colour: str = "ink"
    anchor: Anchor = "start"
    strong: bool = False


Shape = Stroke | Block | Word


@dataclass(frozen=True)
class Drawing(ABC):
    """A plot: its part of a file's name, and what it shows in words (also for who cannot see it)."""

    name: str
    title: str
    caption: str

    @abstractmethod
    def shapes(self, width: int, height: int) -> tuple[list[Shape], int]:
        """What is drawn, and how high that is."""


@dataclass(frozen=True)
class Curve:
    """A line of a plot, its points ascending."""

    label: str
    points: Mapping[int, float]
    colour: str
    limit: bool = False
    """Dashed, without dots."""


@dataclass(frozen=True)
class Lines(Drawing):
    """Curves, labelled at their ends."""

    across: str
    up: str
    curves: tuple[Curve, ...]

    def shapes(self, width: int, height: int) -> tuple[list[Shape], int]:
        """Of the frame's whole height."""
        values = [value for curve in self.curves for value in curve.points.values()]
        places = sorted({place for curve in self.curves for place in curve.points})
        low, high = _round_below(min(values)), max(values) * 1.15
        left = 14 + LETTER * max(len(digits_text(value, 3)) for value in (low, high))
        right = width - 26 - LETTER * max(len(visible(curve.label)) for curve in self.curves)
        bottom = height - BOTTOM
        x_of, y_of = _scale(places[0], places[-1], left, right), _scale(low, high, bottom, TOP)
        shapes: list[Shape] = [Word((left, 12), self.up)]
        for value in _ticks(low, high):
            shapes.append(Stroke(((left, y_of(value)), (right, y_of(value))), "grid"))
            shapes.append(Word((left - 8, y_of(value)), digits_text(value, 3), anchor="end"))
        for place in _apart_enough(places, x_of):
            shapes.append(Stroke(((x_of(place), TOP), (x_of(place), bottom)), "grid"))
            shapes.append(Word((x_of(place), bottom + 14), f"{place:g}", anchor="middle"))
        shapes.append(Word(((left + right) / 2, height - 10), self.across, anchor="middle"))
        ends = [y_of(list(curve.points.values())[-1]) for curve in self.curves]
        for curve, middle in zip(self.curves, _spread(ends, TOP, bottom), strict=True):
            points = tuple((x_of(place), y_of(value)) for place, value in curve.points.items())
            shapes.append(Stroke(points, curve.colour, 1.4 if curve.limit else 2, curve.limit))
            if not curve.limit:
                shapes += [Block((across - 3, down - 3), (6, 6), curve.colour, 3) for across, down in points]
            end = points[-1]
            shapes.append(Stroke(((end[0] + 5, end[1]), (right + 13, middle)), curve.colour))
            shapes.append(Word((right + 17, middle), curve.label, curve.colour))
        return shapes, height


@dataclass(frozen=True)
class Bar:
    """A name, what the bar is long by, and the figure at its end."""

    label: str
    value: float
    text: str
    colour: str = "series-0"


@dataclass(frozen=True)
class Bars(Drawing):
    """Bars from zero; names that are long stand above theirs."""

    across: str
    bars: tuple[Bar, ...]

    def shapes(self, width: int, height: int) -> tuple[list[Shape], int]:
        """As high as its bars need."""
        names = max(len(visible(bar.label)) for bar in self.bars) * LETTER
        above = names > 0.36 * width
        left, row = (4.0, 2 * ROW - 4) if above else (names + 10, ROW)
        room = width - left - 12 - LETTER * max(len(bar.text) for bar in self.bars)
        longest = max(bar.value for bar in self.bars) or 1.0
        shapes: list[Shape] = [Word((4, 12), self.across)]
        for number, bar in enumerate(self.bars):
            top = TOP + number * row
            name = Word((4, top + 8), bar.label) if above else Word((left - 6, top + 8), bar.label, anchor="end")
            top += ROW - 3 if above else 0
            length = max(1.0, bar.value / longest * room)
            shapes += [name, Block((left, top), (length, ROW - 5 if not above else 12), bar.colour)]
            shapes.append(Word((left + length + 6, top + (6 if above else 8)), bar.text))
        return shapes, TOP + len(self.bars) * row + 6


def svg(
    drawing: Drawing,
    palette: Mapping[str, str] = PALETTE,
    width: int = WIDTH,
    height: int = HEIGHT,
    titled: bool = True,
) -> str:
    """The drawing as SVG; without its title below a heading that a page has."""
    title = _title(drawing, width) if titled else []
    shapes, below = drawing.shapes(width, height)
    head = ROW * len(title)
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {head + below}" width="{width}"'
    label = f'height="{head + below}" role="img" aria-label="{_text(drawing.title)}"'
    parts = [f'{start} {label} font-family="system-ui, sans-serif" font-size="{FONT}">']
    parts += [_element(word, palette) for word in title]
    parts += [f'<g transform="translate(0 {head})">', *(_element(shape, palette) for shape in shapes), "</g>"]
    return "\n".join((*parts, "</svg>", ""))


def _title(drawing: Drawing, width: int) -> list[Shape]:
    """In lines of their own, `ROW` apart."""
    lines = textwrap.wrap(visible(drawing.title), int(width / LETTER) - 8)
    return [Word((4, 12 + ROW * number), line, strong=True) for number, line in enumerate(lines)]


def _element(shape: Shape, palette: Mapping[str, str]) -> str:
    colour = palette[shape.colour]
    match shape:
        case Stroke(points, _, thickness, dashed):
            path = "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
            dashes = ' stroke-dasharray="6 5"' if dashed else ""
            return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{thickness}"{dashes}/>'
        case Block((left, top), (across, down), _, corners):
            rounded = f' rx="{corners}"' if corners else ""
            place = f'x="{left:.1f}" y="{top:.1f}" width="{across:.1f}" height="{down}"'
            return f'<rect {place}{rounded} fill="{colour}"/>'
        case Word((across, down), text, _, anchor, strong):
            weight = ' font-weight="600"' if strong else ""
            place = f'x="{across:.1f}" y="{down + 0.35 * FONT:.1f}" text-anchor="{anchor}"'
            return f'<text {place}{weight} fill="{colour}">{_text(text)}</text>'


def png(drawing: Drawing) -> bytes:
    """The drawing below its title as PNG on white, in the font that comes with matplotlib."""
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    scale, title = PNG_SCALE * PNG_SMOOTH, _title(drawing, WIDTH)
    shapes, below = drawing.shapes(WIDTH, HEIGHT)
    head = ROW * len(title)
    image = Image.new("RGB", (WIDTH * scale, (head + below) * scale), "white")
    draw = ImageDraw.Draw(image, "RGBA")
    font = ImageFont.truetype(Path(get_data_path(), *FONT_FILE), FONT * scale)
    for shape, offset in (*((word, 0) for word in title), *((shape, head) for shape in shapes)):
        colour = PALETTE[shape.colour]
        match shape:
            case Stroke(points, _, thickness, _):
                path = [(across * scale, (down + offset) * scale) for across, down in points]
                draw.line(path, colour, round(thickness * scale))
            case Block((left, top), (across, down), _, corners):
                ends = (left, top + offset, left + across, top + offset + down)
                draw.rounded_rectangle([end * scale for end in ends], corners * scale, colour)
            case Word((across, down), text, _, anchor, _):
                place = (across * scale, (down + offset) * scale)
                draw.text(place, visible(text), colour, font, ANCHORS[anchor])
    data = io.BytesIO()
    size = (WIDTH * PNG_SCALE, (head + below) * PNG_SCALE)
    image.resize(size, Image.Resampling.LANCZOS).save(data, "PNG")
    return data.getvalue()


def _text(text: str) -> str:
    return escape(xml_text(visible(text)))


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Where a value stands on a logarithmic axis."""
    whole = math.log(high / low) or 1.0
    return lambda value: start + math.log(value / low) / whole * (end - start)


def _round_below(value: float) -> float:
    """1, 2 or 5 times a power of ten, at most `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(digit * power for digit in (1, 2, 5) if digit * power <= value * (1 + 1e-9))


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten; 1, 2 and 5 times those where they are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1,) if high / low > 1000 else (1, 2, 5)
    found = [digit * 10.0**power for power in powers for digit in digits]
    return [value for value in found if low * (1 - 1e-9) <= value <= high]


def _apart_enough(places: Sequence[float], x_of: Callable[[float], float]) -> list[float]:
    """The places whose labels do not touch, from the last."""
    kept: list[float] = []
    for place in reversed(places):
        if not kept or x_of(kept[-1]) - x_of(place) >= LETTER * (len(f"{place:g}") + 2):
            kept.append(place)
    return kept


def _spread(middles: Sequence[float], top: float, bottom: float) -> list[float]:
    """The middles of labels, moved as far as they would cover each other, within the frame where there is room."""
    order = sorted(range(len(middles)), key=lambda index: middles[index])
    places = list(middles)
    for above, below in pairwise(order):
        places[below] = max(places[below], places[above] + LABEL_GAP)
    for index in reversed(order):  # those that were moved below the frame go up again, and push the others
        places[index] = min(places[index], bottom)
        bottom = places[index] - LABEL_GAP
    return places
