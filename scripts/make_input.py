"""Draw the source picture, images/input_4096.png, and its smaller sizes.

    python scripts/make_input.py [--output images] [--sizes 128:4096]

`python` is one that has edgeconv installed: .venv/bin/python after scripts/bootstrap.py.

4096×4096 RGB, 8 bits, a chart of what an edge filter answers to: a zone plate (every direction, frequencies up
to half of Nyquist, which is Nyquist at 2048), slanted edges, text, gradients, thin lines, small steps of contrast,
colour edges of equal luma, texture, a little noise. Smaller sizes are its area averages: all show the same thing.

Whole numbers throughout, with one table of cosines rounded to 8 bits, so that every machine draws the same bytes;
only the letters come from Pillow's own font and may differ by some levels with another FreeType.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from edgeconv.io.encoding import write_image
from edgeconv.io.resize import parse_sizes, resize

PROJECT = Path(__file__).resolve().parent.parent
SIDE = 4096
PANEL = SIDE // 4
"""The chart is four by four panels; the zone plate takes two by two."""

Plane = NDArray[Any]
"""int64, (side, side) grey or (side, side, 3)."""

WHEEL = 4096
COSINE = np.array([round(127.5 + 127.5 * math.cos(2 * math.pi * step / WHEEL)) for step in range(WHEEL)], np.int64)
"""One period, 0 to 255, in WHEEL steps."""

TEXT_PANEL = (slice(PANEL, 2 * PANEL), slice(2 * PANEL, 3 * PANEL))
"""Rows and columns of the letters: the one part whose bytes depend on a font renderer."""

WORDS = ("Edges", "3x3 kernel", "RGB, HWC, stride 1 2 3", "The quick brown fox jumps over the lazy dog. 0123456789")


def grid(side: int) -> tuple[Plane, Plane]:
    """Rows and columns 0 to side - 1, as (side, 1) and (1, side), to be broadcast."""
    line = np.arange(side, dtype=np.int64)
    return line[:, None], line[None, :]


def zone_plate(side: int) -> Plane:
    """Grey rings round the middle whose frequency grows evenly to a quarter of a period a pixel at the edges."""
    y, x = grid(side)
    radius_squared = (2 * y + 1 - side) ** 2 + (2 * x + 1 - side) ** 2  # in quarter pixels
    plate: Plane = COSINE[(radius_squared * WHEEL // (16 * side)) % WHEEL]
    return plate


def slanted_edges(side: int) -> Plane:
    """A dark square turned by about 5 degrees (slope 1 in 11) in the light, with smooth (antialiased) sides."""
    y, x = grid(side)
    across, down = 2 * x + 1 - side, 2 * y + 1 - side
    reach = np.maximum(np.abs(11 * across + down), np.abs(11 * down - across))
    square: Plane = np.clip((reach - 11 * side * 5 // 8) * 8 + 128, 40, 215)
    return square


def colours(side: int) -> Plane:
    """Four by four patches: the upper half of equal luma (BT.601), the lower half the corners of the RGB cube."""
    equal_luma = ((204, 64, 64), (32, 150, 32), (96, 96, 210), (104, 104, 104)) * 2
    cube = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0), (0, 255, 255), (255, 0, 255), (255, 255, 0), (255,) * 3)
    patches = np.array(equal_luma + cube, np.int64).reshape(4, 4, 3)
    return np.repeat(np.repeat(patches, side // 4, axis=0), side // 4, axis=1)


def text(side: int) -> Plane:
    """Letters from large to small, dark on light above and light on dark below."""
    page = Image.new("L", (side, side), 235)
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, side // 2, side, side), fill=20)
    for half, ink in ((0, 20), (1, 235)):
        top = half * side // 2 + side // 64
        for words, share in zip(WORDS, (5, 9, 16, 40), strict=True):
            font = ImageFont.truetype(_bundled_font(), side // share, layout_engine=ImageFont.Layout.BASIC)
            draw.text((side // 32, top), words, fill=ink, font=font)
            top += side // share + side // 80
    return np.asarray(page).astype(np.int64)


def gradients(side: int) -> Plane:
    """Four ramps: grey across, grey down, and two of colour; a Laplacian of each is nearly nothing."""
    y, x = grid(side)
    ramp, fall = np.broadcast_to(256 * x // side, (side, side)), np.broadcast_to(256 * y // side, (side, side))
    out = np.stack([ramp, ramp, ramp], axis=-1)
    half = side // 2
    out[:half, half:] = np.stack([fall] * 3, axis=-1)[:half, half:] * 2
    out[half:, :half] = np.stack([ramp * 2, 2 * fall - 256, 255 - 2 * ramp], axis=-1)[half:, :half]
    out[half:, half:] = np.stack([511 - 2 * ramp, 2 * fall - 256, 0 * ramp + 128], axis=-1)[half:, half:]
    return out


def rings(side: int) -> Plane:
    """Discs one in the other whose steps grow from 1 level to 64."""
    y, x = grid(side)
    radius_squared = (2 * y + 1 - side) ** 2 + (2 * x + 1 - side) ** 2
    out = np.full((side, side), 192, np.int64)
    for ring, step in enumerate((64, 32, 16, 8, 4, 2, 1)):
        out -= step * (radius_squared < ((8 - ring) * side // 9) ** 2)
    return out


def lines(side: int) -> Plane:
    """Bars 2, 4, 8 and 16 pixels wide with gaps as wide, upright, level, and checked."""
    y, x = grid(side)
    out = np.empty((side, side), np.int64)
    band = side // 4
    for index, width in enumerate((2, 4, 8, 16)):
        rows = slice(index * band, (index + 1) * band)
        upright, level = x // width % 2, y[rows] // width % 2
        third = np.broadcast_to(3 * x // side, (band, side))
        out[rows] = np.select([third == 0, third == 1], [upright, level], upright ^ level)
    return 30 + 195 * out


def spokes(side: int) -> Plane:
    """Wedges of four colours that meet in the middle: edges of every slope that a small whole ratio gives."""
    y, x = grid(side)
    across, down = 2 * x + 1 - side, 2 * y + 1 - side
    sector = np.zeros((side, side), np.int64)
    for rise, run in ((0, 1), (1, 3), (1, 1), (3, 1), (1, 0), (-3, 1), (-1, 1), (-1, 3)):
        sector += run * down > rise * across
    palette = np.array(((220, 60, 40), (40, 70, 160), (235, 200, 70), (30, 120, 90)), np.int64)
    wheel: Plane = palette[(sector + 2 * (down > 0)) % 4]
    return wheel


def weave(side: int) -> Plane:
    """Cloth: two threads, over and under, with a coarse pattern of colour."""
    y, x = grid(side)
    warp, weft = COSINE[x * (WHEEL // 16) % WHEEL], COSINE[y * (WHEEL // 16) % WHEEL]
    over = (x // 16 + y // 16) % 2
    height = np.where(over == 1, warp, weft) // 2 + 64
    tint = np.array(((10, 6, 4), (5, 8, 10)), np.int64)[(x // 128 + y // 128) % 2]
    cloth: Plane = height[:, :, None] * tint // 10
    return cloth


def scrambled(y: Plane, x: Plane, salt: int) -> Plane:
    """Bytes that look random: a whole-number hash of the place (the finaliser of MurmurHash3), the same everywhere."""
    state = (y * SIDE + x + salt * SIDE * SIDE).astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ (state >> np.uint32(shift))) * np.uint32(factor)
    return ((state ^ (state >> np.uint32(16))) & np.uint32(255)).astype(np.int64)


def noise(side: int) -> Plane:
    """Four patches of colour noise, weak to full, on flat grey; a quarter of the panel, as noise does not compress."""
    y, x = grid(side)
    out = np.full((side, side, 3), 128, np.int64)
    patch = side // 4
    for index, strength in enumerate((8, 32, 96, 255)):
        top, left = (1 + 2 * (index // 2)) * side // 4 - patch // 2, (1 + 2 * (index % 2)) * side // 4 - patch // 2
        place = (slice(top, top + patch), slice(left, left + patch))
        for channel in range(3):
            grain = scrambled(y[place[0]], x[:, place[1]], channel)
            out[(*place, channel)] = 128 + (grain - 128) * strength // 256
    return out


def hills(side: int) -> Plane:
    """Smooth waves in the three channels, each in another direction: what is not an edge."""
    y, x = grid(side)
    turn = WHEEL // side
    phases = (3 * x + y, 2 * y - 2 * x, x + 4 * y)
    return np.stack([COSINE[phase * turn % WHEEL] * 3 // 4 + 32 for phase in phases], axis=-1)


PANELS = (
    (0, 0, zone_plate, 2),
    (0, 2, slanted_edges, 1),
    (0, 3, colours, 1),
    (1, 2, text, 1),
    (1, 3, gradients, 1),
    (2, 0, rings, 1),
    (2, 1, lines, 1),
    (2, 2, weave, 1),
    (2, 3, noise, 1),
    (3, 0, spokes, 1),
    (3, 1, hills, 2),
)
"""Row, column, what is drawn, and over how many panels a side (what hangs over the edge is cut off)."""


def make_input() -> NDArray[np.uint8]:
    """The whole chart, HWC uint8. The last panel of the bottom row is the slanted square once more, in colour."""
    out = np.zeros((SIDE, SIDE, 3), np.uint8)
    for row, column, draw, panels in PANELS:
        place = out[row * PANEL : (row + panels) * PANEL, column * PANEL : (column + panels) * PANEL]
        drawn: NDArray[Any] = draw(panels * PANEL)
        place[:] = (drawn if drawn.ndim == 3 else drawn[:, :, None])[: place.shape[0], : place.shape[1]]
    square = slanted_edges(PANEL)
    out[3 * PANEL :, 3 * PANEL :] = np.stack([square, 255 - square, np.full_like(square, 90)], axis=-1)
    return out


def _bundled_font() -> Any:
    """Pillow's own font file, as a stream; a Pillow without FreeType has none."""
    stream = ImageFont.load_default(16).path  # type: ignore[union-attr]
    if not isinstance(stream, str | bytes):
        stream.seek(0)  # type: ignore[union-attr]
    return stream


def main() -> None:
    """Draw, and write every size that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=PROJECT / "images", help="Where the pictures go.")
    words = "Sides in pixels: '128,256', or '128:4096' for every doubling."
    parser.add_argument("--sizes", type=parse_sizes, default="128:4096", help=words)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    picture = make_input()
    for size in arguments.sizes:
        path = arguments.output / f"input_{size}.png"
        write_image(resize(picture, size), path, overwrite=True)
        print(f"{path} ({path.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
