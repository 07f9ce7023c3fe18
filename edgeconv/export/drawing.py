"""Plots as data, drawn as SVG like README's: labels at the ends of lines, ticks as `10,000`, no legend.

    Lines   curves over a size or a number of filters, both axes logarithmic
    Bars    a bar for each name, from zero, with its figure at the end

The same plot gives the same SVG everywhere, and its text stays text. A file is as wide as a phone shows it, so that it
can be read there.

No two colours of a drawing are alike, and each has a contrast of at least 3 : 1 against white and against #0d1117, so
that one SVG serves both. Hues are those of Okabe and Ito as far as that allows. On a page a series is drawn in
`var(--series-0)` to `var(--series-9)`, which its style sheet sets for light and for dark.
"""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Literal, NamedTuple
from zlib import crc32

from edgeconv.core.text import digits_text, visible
from edgeconv.io.files import xml_text

WIDTH, HEIGHT = 440, 300
FONT = 12
LETTER = 0.6 * FONT
"""The mean width of a letter."""
TOP, BOTTOM = 30, 42
LABEL_GAP = 15
"""Least distance between the middles of two labels."""
ROW = 20

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#2E8FC7", "#7F52A0", "#A6761D", "#5F8C2B", "#C23B50")
NAMES = tuple(f"series-{place}" for place in range(len(SERIES)))
"""What a drawing calls them; `ink`, `soft` and `grid` are its text, its limits and its axes."""
PALETTE = {"ink": "#70767d", "soft": "#8a8d91", "grid": "#8a8d9155", **dict(zip(NAMES, SERIES, strict=True))}
"""Of a file of its own."""
PAGE = {"ink": "var(--ink)", "soft": "var(--soft)", "grid": "var(--line)", **{name: f"var(--{name})" for name in NAMES}}
"""Of a drawing within a page."""

_PLACE_OF = {name: place for place, name in enumerate(("sliding", "torch", "implicit", "im2col", "cudnn", "opencv"))}

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


class Sheet:
    """The elements of an SVG, in the colours of a palette."""

    def __init__(self, palette: Mapping[str, str]) -> None:
        self.palette = palette
        self.elements: list[str] = []

    def line(self, points: Sequence[Point], colour: str, width: float = 1, dashed: bool = False) -> None:
        """A line through points."""
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
        dashes = ' stroke-dasharray="6 5"' if dashed else ""
        stroke = f'stroke="{self.palette[colour]}" stroke-width="{width}"'
        self.elements.append(f'<path d="M{path}" fill="none" {stroke}{dashes}/>')

    def block(self, corner: Point, size: Point, colour: str, corners: float = 0) -> None:
        """A filled rectangle; a dot is one with round corners."""
        place = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]}"'
        rounded = f' rx="{corners}"' if corners else ""
        self.elements.append(f'<rect {place}{rounded} fill="{self.palette[colour]}"/>')

    def word(
        self, point: Point, text: str, colour: str = "ink", anchor: Anchor = "start", strong: bool = False
    ) -> None:
        """Text, in the middle of whose height the point is."""
        place = f'x="{point[0]:.1f}" y="{point[1] + 0.35 * FONT:.1f}" text-anchor="{anchor}"'
        weight = ' font-weight="600"' if strong else ""
        self.elements.append(f'<text {place}{weight} fill="{self.palette[colour]}">{_text(text)}</text>')


@dataclass(frozen=True)
class Drawing(ABC):
    """A plot: its part of a file's name, and what it shows in words (also for who cannot see it)."""

    name: str
    title: str
    caption: str

    @abstractmethod
    def draw(self, sheet: Sheet, width: int, height: int) -> int:
        """Draw it within `width`; how high it is."""


class Curve(NamedTuple):
    """A line of a plot, its points ascending; a limit is dashed and has no dots."""

    label: str
    points: Mapping[int, float]
    colour: str
    limit: bool = False


@dataclass(frozen=True)
class Lines(Drawing):
    """Curves, labelled at their ends."""

    across: str
    up: str
    curves: tuple[Curve, ...]

    def draw(self, sheet: Sheet, width: int, height: int) -> int:
        """In the frame's whole height."""
        values = [value for curve in self.curves for value in curve.points.values()]
        places = sorted({place for curve in self.curves for place in curve.points})
        low, high = _round_below(min(values)), max(values) * 1.15
        left = 14 + LETTER * max(len(digits_text(value, 3)) for value in (low, high))
        right = width - 26 - LETTER * max(len(visible(curve.label)) for curve in self.curves)
        bottom = height - BOTTOM
        x_of, y_of = _scale(places[0], places[-1], left, right), _scale(low, high, bottom, TOP)
        sheet.word((left, 12), self.up)
        for value in _ticks(low, high):
            sheet.line(((left, y_of(value)), (right, y_of(value))), "grid")
            sheet.word((left - 8, y_of(value)), digits_text(value, 3), anchor="end")
        for place in _apart_enough(places, x_of):
            sheet.line(((x_of(place), TOP), (x_of(place), bottom)), "grid")
            sheet.word((x_of(place), bottom + 14), f"{place:g}", anchor="middle")
        sheet.word(((left + right) / 2, height - 10), self.across, anchor="middle")
        ends = [y_of(list(curve.points.values())[-1]) for curve in self.curves]
        for curve, middle in zip(self.curves, _spread(ends, bottom), strict=True):
            points = [(x_of(place), y_of(value)) for place, value in curve.points.items()]
            sheet.line(points, curve.colour, 1.4 if curve.limit else 2, curve.limit)
            for across, down in [] if curve.limit else points:
                sheet.block((across - 3, down - 3), (6, 6), curve.colour, 3)
            end = points[-1]
            sheet.line(((end[0] + 5, end[1]), (right + 13, middle)), curve.colour)
            sheet.word((right + 17, middle), curve.label, curve.colour)
        return height


@dataclass(frozen=True)
class Bars(Drawing):
    """Bars from zero, each with its figure at its end; names that are long stand above theirs."""

    across: str
    values: Mapping[str, float]
    text: Callable[[float], str]

    def draw(self, sheet: Sheet, width: int, height: int) -> int:
        """As high as its bars need."""
        names = max(len(visible(label)) for label in self.values) * LETTER
        above = names > 0.36 * width
        left, row = (4.0, 2 * ROW - 4) if above else (names + 10, ROW)
        room = width - left - 12 - LETTER * max(len(self.text(value)) for value in self.values.values())
        longest = max(self.values.values()) or 1.0
        sheet.word((4, 12), self.across)
        for number, (label, value) in enumerate(self.values.items()):
            top = TOP + number * row
            sheet.word((4 if above else left - 6, top + 8), label, anchor="start" if above else "end")
            top += ROW - 3 if above else 0
            length = max(1.0, value / longest * room)
            sheet.block((left, top), (length, 12 if above else ROW - 5), "series-0")
            sheet.word((left + length + 6, top + (6 if above else 8)), self.text(value))
        return TOP + len(self.values) * row + 6


def colours_of(candidates: Iterable[str]) -> dict[str, str]:
    """The names of the colours of a drawing's candidates, each its own as far as there are colours.

    A candidate has the same in every drawing, whatever its options, unless one before it has that already.
    """
    found: dict[str, str] = {}
    for candidate in candidates:
        name = candidate.partition(":")[0]
        first = _PLACE_OF.get(name, crc32(name.encode(errors="surrogatepass")))
        places = [(first + step) % len(NAMES) for step in range(len(NAMES))]
        free = [NAMES[place] for place in places if NAMES[place] not in found.values()]
        found[candidate] = free[0] if free else NAMES[places[0]]
    return found


def svg(
    drawing: Drawing,
    palette: Mapping[str, str] = PALETTE,
    width: int = WIDTH,
    height: int = HEIGHT,
    titled: bool = True,
) -> str:
    """The drawing as SVG; without its title below a heading that a page has."""
    head, body = Sheet(palette), Sheet(palette)
    for line in textwrap.wrap(visible(drawing.title), int(width / LETTER) - 8) if titled else []:
        head.word((4, 12 + ROW * len(head.elements)), line, strong=True)
    above = ROW * len(head.elements)
    whole = above + drawing.draw(body, width, height)
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}"'
    label = f'role="img" aria-label="{_text(drawing.title)}" font-family="system-ui, sans-serif" font-size="{FONT}">'
    moved = f'<g transform="translate(0 {above})">'
    return "\n".join((f"{start} {label}", *head.elements, moved, *body.elements, "</g>", "</svg>", ""))


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


def _spread(middles: Sequence[float], bottom: float) -> list[float]:
    """The middles of labels, moved as far as they would cover each other, within the frame where there is room."""
    order = sorted(range(len(middles)), key=lambda index: middles[index])
    places = list(middles)
    for above, below in pairwise(order):
        places[below] = max(places[below], places[above] + LABEL_GAP)
    for index in reversed(order):  # those that were moved below the frame go up again, and push the others
        places[index] = min(places[index], bottom)
        bottom = places[index] - LABEL_GAP
    return places
