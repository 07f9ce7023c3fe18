"""Draw the README's picture, a lighthouse on a coast, and its edges: ray-marched with NumPy, no model, no photograph.

    python3 scripts/draw_coast.py docs/pictures                 those of the README; some minutes on two cores
    python3 scripts/draw_coast.py /tmp --width 240 --samples 1

The scene is a distance function (houses, lighthouse, walls) and a height field (the land, from noise), lit by a sun
with soft shadows, a sky that is dimmed in corners, and haze. Metres: x to the right, y up, z away from the camera.
The same numbers on every machine but for rounding, so tests compare a small drawing with the committed one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from script_options import Arguments

import edgeconv
from edgeconv.io.files import write_bytes_atomically
from edgeconv.io.image import encode_image

Floats = NDArray[Any]
"""float32: points and directions as 3 × rays, everything else a number per ray."""

SEED = 16
WIDTH, ASPECT = 640, 1.6
SAMPLES = 2
"""Rays along each side of a pixel."""
PICTURE, PICTURE_QUALITY = "coast.jpg", 85
EDGES, EDGES_QUALITY = "coast_edges.webp", 44
FILTER, CHANNELS, BORDER = "sobel", "luma", "replicate"
CANNY = "coast_canny.png"
LOW, HIGH, BLUR = 60, 150, 5
CHUNK = 1 << 14
"""Rays at once: their arrays stay in the cache."""


def vector(*numbers: float) -> Floats:
    """Of length 1."""
    found = np.array(numbers, np.float32)
    return found / np.float32(np.linalg.norm(found))


CAMERA, LOOK_AT = np.array([-13, 7.5, -25], np.float32), np.array([-1.5, 8.6, 30], np.float32)
LENS = 0.80
"""Half the picture's width over its distance."""
SUN = vector(-0.70, 0.40, -0.42)
SUN_COLOUR, SKY_COLOUR = np.array([1.50, 1.22, 0.88], np.float32), np.array([0.34, 0.44, 0.60], np.float32)
HAZE = np.array([0.74, 0.80, 0.86], np.float32)


def noise_tile(size: int, slope: float, seed: int) -> Floats:
    """Periodic noise whose spectrum falls as frequency to the power −slope; mean 0, deviation 1."""
    white = np.fft.rfft2(np.random.default_rng(seed).standard_normal((size, size)))
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None])
    frequency[0, 0] = 1
    tile = np.fft.irfft2(white * frequency**-slope * (frequency > 1.5 / size))
    return np.asarray((tile - tile.mean()) / tile.std(), np.float32)


ROUGH, SOFT, CLOUDS, STONE = (
    noise_tile(512, slope, SEED + number) for number, slope in enumerate((1.1, 1.7, 1.75, 1.9))
)


def sampled(tile: Floats, x: Floats, z: Floats, metres: float) -> Floats:
    """A periodic tile that is `metres` wide, between its samples by straight lines."""
    size = np.int32(tile.shape[0])
    u, v = x * np.float32(size / metres), z * np.float32(size / metres)
    column, row = np.floor(u), np.floor(v)
    a, b = u - column, v - row
    column, row = column.astype(np.int32) % size, row.astype(np.int32) % size
    right, below = (column + 1) % size, (row + 1) % size
    upper = tile[row, column] * (1 - a) + tile[row, right] * a
    lower = tile[below, column] * (1 - a) + tile[below, right] * a
    return np.asarray(upper * (1 - b) + lower * b)


def step(low: float, high: float, value: Floats) -> Floats:
    """0 below `low`, 1 above `high`, smooth between."""
    t = np.clip((value - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


# ---- the land, once on a grid

GRID, LEFT, NEAR, SIDE = 1536, -80.0, -30.0, 160.0


@dataclass(frozen=True)
class House:
    """A house with a gable roof: where it stands, how it is turned, half its sides, the height of walls and ridge."""

    x: float
    z: float
    turn: float
    half_width: float
    half_length: float
    walls: float
    ridge: float
    roof: tuple[float, float, float]
    plaster: tuple[float, float, float] = (0.86, 0.83, 0.76)


SLATE, TILES = (0.20, 0.22, 0.26), (0.46, 0.18, 0.10)
HOUSES = (
    House(-8.5, 22, 0.55, 2.7, 4.2, 3.1, 5.6, TILES),
    House(3.2, 27, -0.35, 3.0, 5.0, 5.3, 8.1, SLATE, (0.88, 0.80, 0.66)),
    House(12.5, 31, 0.25, 2.5, 3.8, 3.0, 5.4, TILES, (0.84, 0.86, 0.86)),
    House(10.5, 21, 1.15, 1.9, 2.8, 2.3, 3.9, SLATE),
    House(21.5, 36, -0.6, 2.7, 4.4, 3.1, 5.6, TILES, (0.80, 0.72, 0.62)),
)
TOWER_X, TOWER_Z, TOWER = -22.0, 31.0, 15.5


@cache
def land() -> Floats:
    """Heights of the land above the sea, row by row away from the camera; made when the first is asked for."""
    x, z = np.meshgrid(
        np.linspace(LEFT, LEFT + SIDE, GRID, dtype=np.float32), np.linspace(NEAR, NEAR + SIDE, GRID, dtype=np.float32)
    )
    coast = 1 - ((x - 8) / 42) ** 2 - ((z - 36) / 29) ** 2 + 0.20 * sampled(SOFT, x, z, 90)
    coast -= 0.5 * (1 - step(-46, -36, x))  # no islets beside the lighthouse
    foreground = 1.15 - ((x + 30) / 25) ** 2 - ((z + 14) / 15) ** 2 + 0.22 * sampled(SOFT, x + 31, z, 60)
    rise = step(-0.05, 0.20, coast)
    cliff = rise * (1 - step(0.15, 0.5, coast))
    height = rise * (5.4 + 3.0 * step(20, 45, z) + 0.5 * sampled(SOFT, x, z + 9, 45))
    height += cliff * (0.9 * sampled(STONE, x, z, 30) - 1.3 * np.abs(sampled(STONE, z, x, 16)))
    height += rise * (0.10 * sampled(STONE, x, z, 12) + 0.25 * cliff * sampled(STONE, x + z, x - z, 7))
    near = step(-0.1, 0.5, foreground)
    stones = 2.7 + 0.8 * sampled(STONE, x, z, 26) - 0.6 * np.abs(sampled(STONE, z + 5, x, 12))
    stones += 0.12 * sampled(STONE, x - z, z + x, 6)
    height = np.maximum(height - 1.2, near * stones - 1.2)
    for place_x, place_z, flat in ((TOWER_X, TOWER_Z, 4.5), *((h.x, h.z, h.half_length + 1.2) for h in HOUSES)):
        distance = np.hypot(x - place_x, z - place_z)
        here = height[round((place_z - NEAR) / SIDE * (GRID - 1)), round((place_x - LEFT) / SIDE * (GRID - 1))]
        inside = 1 - step(flat, flat + 4.5, distance)
        height = height * (1 - inside) + max(float(here), 4.6) * inside
    return np.asarray(height, np.float32)


def land_at(x: Floats, z: Floats) -> Floats:
    """The height of the land; far below the sea off the grid."""
    u = np.clip((x - LEFT) * ((GRID - 1) / SIDE), 0, GRID - 1.001)
    v = np.clip((z - NEAR) * ((GRID - 1) / SIDE), 0, GRID - 1.001)
    column, row = u.astype(np.int32), v.astype(np.int32)
    a, b = u - column, v - row
    heights = land()
    upper = heights[row, column] * (1 - a) + heights[row, column + 1] * a
    return np.asarray(upper * (1 - b) + (heights[row + 1, column] * (1 - a) + heights[row + 1, column + 1] * a) * b)


def ground(x: float, z: float) -> float:
    """The height under a building."""
    return float(land_at(np.array([x], np.float32), np.array([z], np.float32))[0])


@cache
def tower_y() -> float:
    """The height at which the lighthouse stands."""
    return ground(TOWER_X, TOWER_Z)


@cache
def house_y() -> tuple[float, ...]:
    """The heights at which the houses stand."""
    return tuple(ground(house.x, house.z) - 0.1 for house in HOUSES)


# ---- distances; each part gives metres to its surface

LAND_PART, SEA_PART, TOWER_PART, LANTERN_PART, DOME_PART, RAIL_PART, WALL_PART, ROOF_PART = range(8)
PERIOD = 2.1
"""Metres from window to window."""


def box(x: Floats, y: Floats, z: Floats, half: tuple[float, float, float]) -> Floats:
    """A box around the origin."""
    a, b, c = np.abs(x) - half[0], np.abs(y) - half[1], np.abs(z) - half[2]
    outside = np.sqrt(np.maximum(a, 0) ** 2 + np.maximum(b, 0) ** 2 + np.maximum(c, 0) ** 2)
    return np.asarray(outside + np.minimum(np.maximum(a, np.maximum(b, c)), 0))


def in_house(house: House, base: float, p: Floats) -> tuple[Floats, Floats, Floats]:
    """Coordinates of a house: across, up, along its ridge."""
    x, z = p[0] - np.float32(house.x), p[2] - np.float32(house.z)
    c, s = np.float32(np.cos(house.turn)), np.float32(np.sin(house.turn))
    return c * x - s * z, p[1] - np.float32(base), s * x + c * z


def window_rows(house: House) -> tuple[float, ...]:
    """Heights of the windows' middles."""
    return (1.6,) if house.walls < 4 else (1.5, 3.9)


def house_parts(house: House, x: Floats, y: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Walls with their windows cut out, and the roof with its chimney."""
    walls = box(x, y - house.walls / 2, z, (house.half_width, house.walls / 2, house.half_length))
    slope = np.hypot(house.half_width, house.ridge - house.walls)
    sine, cosine = (house.ridge - house.walls) / slope, house.half_width / slope
    under = np.abs(x) * sine + (y - house.ridge) * cosine
    gable = np.maximum(np.maximum(under, house.walls - 0.1 - y), np.abs(z) - house.half_length)
    walls = np.minimum(walls, gable)
    along_z = (z + PERIOD / 2) % PERIOD - PERIOD / 2
    along_x = (x + PERIOD / 2) % PERIOD - PERIOD / 2
    for middle in window_rows(house):
        side = box(np.abs(x) - house.half_width, y - middle, along_z, (0.16, 0.62, 0.42))
        end = box(along_x, y - middle, np.abs(z) - house.half_length, (0.42, 0.62, 0.16))
        side = np.where(np.abs(z) < house.half_length - 0.4, side, 1.0)
        end = np.where(np.abs(x) < house.half_width - 0.4, end, 1.0)
        walls = np.maximum(walls, -np.minimum(side, end))
    tiles = 0.03 * np.abs((np.abs(x) * (slope / house.half_width) / 0.32) % 1 - 0.2)
    slab = np.maximum(np.abs(under - 0.14) - 0.14 + tiles, np.abs(x) - house.half_width - 0.45)
    slab = np.maximum(slab, np.abs(z) - house.half_length - 0.3)
    chimney = box(x - 0.5, y - house.ridge - 0.15, z - house.half_length * 0.55, (0.38, 0.85, 0.5))
    cap = box(x - 0.5, y - house.ridge - 1.02, z - house.half_length * 0.55, (0.46, 0.09, 0.58))
    return np.minimum(walls, np.minimum(chimney, cap)), slab


def tower_parts(p: Floats) -> dict[int, Floats]:
    """The lighthouse: shaft, lantern, dome, gallery with its rail."""
    x, y, z = p[0] - np.float32(TOWER_X), p[1] - np.float32(tower_y()), p[2] - np.float32(TOWER_Z)
    radius = np.hypot(x, z)
    shaft = np.maximum(radius - (2.75 - 0.075 * y), np.abs(y - TOWER / 2) - TOWER / 2) * 0.98
    foot = np.maximum(radius - 3.3, np.abs(y - 0.4) - 0.5)
    turn = np.arctan2(z, x)
    for middle, at in ((3.2, -1.9), (8.2, -1.5), (12.2, -1.9)):
        away = (turn - at) * 2.3
        shaft = np.maximum(shaft, -np.maximum(np.maximum(np.abs(away) - 0.32, np.abs(y - middle) - 0.6), 1.7 - radius))
    gallery = np.maximum(radius - 2.5, np.abs(y - TOWER) - 0.16)
    bracket = np.maximum(radius - 1.55 - (y - TOWER + 0.9), np.abs(y - TOWER + 0.5) - 0.4) * 0.7
    post = np.hypot((((turn + 3.1416) * (24 / 6.2832)) % 1 - 0.5) * 0.62, radius - 2.38) - 0.035
    post = np.maximum(post, np.abs(y - TOWER - 0.6) - 0.55)
    rails = np.hypot(radius - 2.38, np.abs(y - TOWER - 0.85) - 0.28) - 0.045
    lantern = np.maximum(radius - 1.25, np.abs(y - TOWER - 1.25) - 1.15)
    dome = np.maximum(np.sqrt(radius**2 + ((y - TOWER - 2.4) * 1.05) ** 2) - 1.52, TOWER + 2.4 - y)
    knob = np.sqrt(radius**2 + (y - TOWER - 4.05) ** 2) - 0.24
    mast = np.maximum(radius - 0.05, np.abs(y - TOWER - 4.6) - 0.7)
    return {
        TOWER_PART: np.minimum(shaft, foot),
        LANTERN_PART: lantern,
        DOME_PART: np.minimum(np.minimum(dome, knob), mast),
        RAIL_PART: np.minimum(np.minimum(gallery, bracket), np.minimum(post, rails)),
    }


def parts(p: Floats, sea: bool = True) -> dict[int, Floats]:
    """Metres from each point to each part; houses are numbered from WALL_PART on, walls and roof by turns."""
    found = {LAND_PART: (p[1] - land_at(p[0], p[2])) * np.float32(0.62), **tower_parts(p)}
    if sea:
        found[SEA_PART] = p[1]
    for number, (house, base) in enumerate(zip(HOUSES, house_y(), strict=True)):
        walls, roof = house_parts(house, *in_house(house, base, p))
        found[WALL_PART + 2 * number], found[ROOF_PART + 2 * number] = walls, roof
    return found


def nearest(p: Floats, sea: bool = True) -> Floats:
    """Metres to whatever is nearest."""
    return np.asarray(np.minimum.reduce(list(parts(p, sea).values())))


# ---- light


def march(origin: Floats, way: Floats, most: float, steps: int, sea: bool = True) -> tuple[Floats, NDArray[np.bool_]]:
    """How far each ray goes until it meets something, and whether it does."""
    distance = np.full(origin.shape[1], 0.05, np.float32)
    alive = np.arange(origin.shape[1])
    hit = np.zeros(origin.shape[1], bool)
    for _ in range(steps):
        gap = nearest(origin[:, alive] + way[:, alive] * distance[alive], sea)
        distance[alive] += gap * np.float32(0.9)
        close = gap < 0.0006 * distance[alive]
        hit[alive[close]] = True
        alive = alive[~close & (distance[alive] < most)]
        if not alive.size:
            break
    hit[alive] = True  # grazing rays that ran out of steps
    return distance, hit


def shadow(p: Floats) -> Floats:
    """How much of the sun is seen, with a soft edge."""
    distance, light = np.full(p.shape[1], 0.06, np.float32), np.ones(p.shape[1], np.float32)
    for _ in range(44):
        gap = nearest(p + SUN[:, None] * distance, sea=False)
        light = np.minimum(light, np.clip(0.5 + 0.5 * gap / (0.022 * distance), 0, 1))
        distance += np.clip(gap, 0.05, 3)
    return light * light * (3 - 2 * light)


def openness(p: Floats, normal: Floats) -> Floats:
    """How much of the sky a point sees, from the room in front of it."""
    closed = np.zeros(p.shape[1], np.float32)
    for metres, weight in ((0.12, 1.6), (0.35, 0.8), (0.9, 0.36), (2.2, 0.13)):
        closed += weight * np.clip(metres - nearest(p + normal * np.float32(metres)), 0, None)
    return np.asarray(np.clip(1 - closed * 0.75, 0.12, 1))


def sky(way: Floats, clouds: bool = True) -> Floats:
    """The colour in a direction: blue above, pale at the horizon, clouds, far hills, the glow around the sun."""
    up = np.clip(way[1], 0, 1)
    colour = HAZE[:, None] * (1 - up**0.45) + np.array([0.20, 0.40, 0.74], np.float32)[:, None] * up**0.45
    if clouds:
        x, z = way[0] / (up + 0.10), way[2] / (up + 0.10)
        density = sampled(CLOUDS, x, z + 1.3, 13) + 0.16 * sampled(ROUGH, x, z, 7)
        towards = sampled(CLOUDS, x - 0.16, z + 1.3 - 0.10, 13)
        cover = step(0.15, 1.35, density) * step(0.01, 0.12, up)
        lit = np.clip(0.86 + 0.16 * (density - towards), 0.6, 1.12)
        white = np.array([1.02, 0.98, 0.94], np.float32)[:, None] * lit
        colour = colour * (1 - 0.88 * cover) + white * 0.88 * cover
        azimuth = np.arctan2(way[0], way[2])
        ridge = 0.028 + 0.012 * sampled(SOFT, azimuth * 20, np.zeros_like(azimuth), 30) - 0.02 * azimuth
        far = step(-0.0012, 0.0012, ridge - way[1])
        colour = colour * (1 - far) + np.array([0.50, 0.59, 0.69], np.float32)[:, None] * far
    glow = np.clip(SUN @ way, 0, 1) ** 8
    return np.asarray(colour + 0.25 * glow * SUN_COLOUR[:, None], np.float32)


def paint(colour: tuple[float, float, float] | Floats, like: Floats) -> Floats:
    """A colour for each point."""
    return np.repeat(np.asarray(colour, np.float32)[:, None], like.shape[-1], 1)


def land_colour(p: Floats, normal: Floats) -> Floats:
    """Grass where it is flat, layered rock where it is steep, wet stone and sand by the water."""
    fine, coarse = sampled(ROUGH, p[0], p[2], 3.1), sampled(SOFT, p[0], p[2], 24)
    blades = sampled(ROUGH, p[0] * 2.3, p[2] * 0.8, 2.3)
    grass = paint((0.215, 0.255, 0.085), p) * (1 + 0.16 * coarse + 0.14 * fine + 0.13 * blades)
    grass = grass + paint((0.12, 0.085, 0.02), p) * step(0.1, 1.6, coarse + 0.5 * fine)
    layers = sampled(ROUGH, (p[0] + p[2]) * 0.12, p[1] * 1.6, 6)
    rock = paint((0.34, 0.30, 0.26), p) * (1 + 0.20 * layers + 0.13 * fine)
    green = step(0.70, 0.84, normal[1] + 0.05 * fine) * step(1.3, 2.6, p[1] + 0.4 * coarse)
    colour = rock * (1 - green) + grass * green
    wet = 1 - step(0.25, 0.9, p[1] + 0.12 * fine)
    return np.asarray(colour * (1 - 0.55 * wet), np.float32)


def house_colours(house: House, base: float, p: Floats) -> tuple[Floats, Floats]:
    """Of the walls, their windows and doors; of the roof."""
    x, y, z = in_house(house, base, p)
    stain = sampled(ROUGH, x + z * 1.7, y * 0.6, 5)
    walls = paint(house.plaster, p) * (1 + 0.045 * stain - 0.20 * np.clip(1 - y / 0.8, 0, 1) * (0.5 + 0.3 * stain))
    on_side = np.abs(np.abs(x) - house.half_width) < np.abs(np.abs(z) - house.half_length)
    along = np.where(on_side, z, x)
    across = (along + PERIOD / 2) % PERIOD - PERIOD / 2
    depth = np.where(on_side, house.half_width - np.abs(x), house.half_length - np.abs(z))
    for middle in window_rows(house):
        inside = (np.abs(across) < 0.43) & (np.abs(y - middle) < 0.63) & (depth > 0.1)
        frame = (np.abs(across) > 0.36) | (np.abs(y - middle) > 0.56)
        bar = (np.abs(across) < 0.03) | (np.abs(y - middle - 0.15) < 0.03)
        pane = np.where(frame | bar, np.float32(0.82), np.float32(0.07))
        walls = np.where(inside, pane, walls)
        sill = (np.abs(across) < 0.52) & (np.abs(y - middle + 0.68) < 0.06) & (depth < 0.1)
        walls = np.where(sill, walls * np.float32(0.72), walls)
    brick = y > house.ridge - 0.5
    rows = np.floor(y / 0.16)
    mortar = ((y / 0.16) % 1 < 0.16) | (((x + z) / 0.34 + 0.5 * (rows % 2)) % 1 < 0.1)
    bricks = np.where(mortar, paint((0.50, 0.47, 0.43), p), paint((0.42, 0.20, 0.14), p) * (1 + 0.15 * stain))
    walls = np.where(brick, bricks, walls)
    down = np.abs(x) * np.hypot(house.half_width, house.ridge - house.walls) / house.half_width / 0.32
    course, column = np.floor(down), np.floor(z / 0.30 + 0.5 * (np.floor(down) % 2))
    one = np.sin(course * 12.9898 + column * 78.233 + house.x) * 43758.5453
    tint = 1 + 0.30 * (one - np.floor(one) - 0.5) + 0.08 * stain
    gap = ((z / 0.30 + 0.5 * (course % 2)) % 1 < 0.09) | (down % 1 > 0.86)
    roof = paint(house.roof, p) * tint * np.where(gap, np.float32(0.55), np.float32(1))
    return np.asarray(walls, np.float32), np.asarray(roof, np.float32)


def colours(p: Floats, normal: Floats, which: NDArray[np.int64]) -> Floats:
    """What share of red, green and blue each surface throws back."""
    found = np.zeros_like(p)

    def fill(part: int, colour: Callable[[Floats], Floats]) -> None:
        chosen = which == part
        if chosen.any():
            found[:, chosen] = colour(p[:, chosen])

    chosen = which == LAND_PART
    found[:, chosen] = land_colour(p[:, chosen], normal[:, chosen])

    def bands(q: Floats) -> Floats:
        y = q[1] - np.float32(tower_y())
        stain = sampled(ROUGH, np.arctan2(q[2] - TOWER_Z, q[0] - TOWER_X) * 3, y * 0.25, 6)
        red = (y / (TOWER / 5)) % 2 > 1
        colour = np.where(red, paint((0.62, 0.10, 0.07), q), paint((0.88, 0.86, 0.81), q)) * (1 + 0.05 * stain)
        inside = np.hypot(q[0] - TOWER_X, q[2] - TOWER_Z) < 2.75 - 0.075 * y - 0.08
        return np.asarray(np.where(inside & (y > 1), np.float32(0.05), colour), np.float32)

    def glass(q: Floats) -> Floats:
        turn = (np.arctan2(q[2] - TOWER_Z, q[0] - TOWER_X) * (10 / 6.2832)) % 1
        y = q[1] - np.float32(tower_y() + TOWER)
        bar = (turn < 0.10) | (np.abs(y - 1.25) < 0.06) | (y > 2.2) | (y < 0.4)
        return np.where(bar, paint((0.16, 0.18, 0.18), q), paint((0.62, 0.58, 0.40), q))

    fill(TOWER_PART, bands)
    fill(LANTERN_PART, glass)
    fill(DOME_PART, lambda q: paint((0.50, 0.09, 0.06), q))
    fill(RAIL_PART, lambda q: paint((0.55, 0.56, 0.55), q))
    for number, (house, base) in enumerate(zip(HOUSES, house_y(), strict=True)):
        fill(WALL_PART + 2 * number, lambda q, h=house, b=base: house_colours(h, b, q)[0])  # type: ignore[misc]
        fill(ROOF_PART + 2 * number, lambda q, h=house, b=base: house_colours(h, b, q)[1])  # type: ignore[misc]
    return found


def normals(p: Floats, distance: Floats) -> Floats:
    """The way that each surface faces, from four distances around it."""
    size = np.maximum(0.0008 * distance, 0.008)
    found = np.zeros_like(p)
    for corner in ((1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, 1, 1)):
        way = np.array(corner, np.float32)[:, None]
        found += way * nearest(p + way * size, sea=False)
    return np.asarray(found / np.maximum(np.linalg.norm(found, axis=0), 1e-9), np.float32)


def solid(p: Floats, way: Floats, distance: Floats, shadows: bool = True) -> Floats:
    """The light that comes from a surface of land or buildings."""
    found = parts(p, sea=False)
    names = np.array(list(found))
    which = names[np.argmin(np.stack(list(found.values())), axis=0)]
    normal = normals(p, distance)
    rough = which == LAND_PART
    bump = np.stack([sampled(ROUGH, p[0], p[2] + p[1], 4.5), 0 * p[0], sampled(ROUGH, p[2] - p[1], p[0], 4.5)])
    normal = normal + 0.20 * bump * rough
    normal /= np.linalg.norm(normal, axis=0)
    colour = colours(p, normal, which)
    facing = np.clip(SUN @ normal, 0, 1)
    sun = facing * (shadow(p + normal * 0.03) if shadows else 1)
    seen = openness(p, normal) if shadows else 1
    above = (0.55 + 0.45 * normal[1]) * seen
    back = np.clip(-(SUN[[0, 2]] @ normal[[0, 2]]), 0, 1) * 0.16 * seen
    light = SUN_COLOUR[:, None] * (sun * 1.25 + back * 0.6) + SKY_COLOUR[:, None] * above * 0.85
    light = light + np.array([0.10, 0.09, 0.05], np.float32)[:, None] * np.clip(-normal[1] * 0.5 + 0.5, 0, 1) * seen
    dim = np.exp(-distance * 0.0022)
    return np.asarray(colour * light * dim + HAZE[:, None] * (1 - dim), np.float32)


def sea(p: Floats, way: Floats, distance: Floats) -> Floats:
    """Water: waves that tilt it, the sky and the shore in it, foam where the land is near, the sun on the crests."""
    calm = 1 / (1 + distance * 0.012)
    wave_x = 0.10 * sampled(SOFT, p[0] * 1.4, p[2], 17) + 0.07 * sampled(ROUGH, p[0] * 1.7, p[2], 6)
    wave_z = 0.15 * sampled(SOFT, p[2], p[0] * 0.5, 15) + 0.08 * sampled(ROUGH, p[2], p[0] * 0.6, 5)
    normal = np.stack([wave_x * calm, np.ones_like(calm), wave_z * calm])
    normal /= np.linalg.norm(normal, axis=0)
    mirrored = way - 2 * np.sum(way * normal, 0) * normal
    mirrored[1] = np.abs(mirrored[1])
    seen = sky(mirrored)
    start = p + np.array([[0], [0.05], [0]], np.float32)
    reach, hit = march(start, mirrored, 120, 40, sea=False)
    met = np.flatnonzero(hit & (reach < 120))
    if met.size:
        at = start[:, met] + mirrored[:, met] * reach[met]
        seen[:, met] = solid(at, mirrored[:, met], distance[met] + reach[met], shadows=False)
    fresnel = 0.03 + 0.97 * (1 - np.clip(-np.sum(way * normal, 0), 0, 1)) ** 5
    depth = -land_at(p[0], p[2])
    shallow = np.exp(-np.clip(depth, 0, None) * 1.4)
    body = paint((0.030, 0.115, 0.150), p) * (1 - shallow) + paint((0.12, 0.27, 0.26), p) * shallow
    colour = body * (1 - fresnel) + seen * fresnel
    shade = 0.35 + 0.65 * shadow(p + np.array([[0], [0.1], [0]], np.float32))
    colour = colour * (0.55 + 0.45 * shade)
    glint = np.clip(SUN @ mirrored, 0, 1) ** 180 * shade
    foam = step(0.55, 1.0, shallow + 0.22 * sampled(ROUGH, p[0], p[2], 7) + 0.1 * sampled(SOFT, p[0], p[2], 9))
    crest = step(2.0, 2.9, sampled(ROUGH, p[0] * 0.5, p[2], 30) + sampled(SOFT, p[0], p[2], 60) * 0.6) * 0.6
    white = np.clip(foam + crest, 0, 1) * shade
    colour = colour * (1 - 0.8 * white) + np.array([0.90, 0.92, 0.92], np.float32)[:, None] * 0.8 * white
    colour = colour + SUN_COLOUR[:, None] * glint * 0.9
    dim = np.exp(-distance * 0.0028)
    return np.asarray(colour * dim + HAZE[:, None] * (1 - dim) * 0.93, np.float32)


def traced(way: Floats) -> Floats:
    """The light that comes from each direction, red, green and blue in rows."""
    origin = np.repeat(CAMERA[:, None], way.shape[1], 1)
    distance, hit = march(origin, way, 420, 150)
    colour = sky(way)
    p = origin + way * distance
    near_sea = np.float32(0.02) + np.float32(0.001) * distance  # a march stops within a share of its way
    water = hit & (p[1] < near_sea) & (land_at(p[0], p[2]) < 0.02) & (nearest(p, sea=False) > p[1])
    for chosen, shade in ((hit & ~water & (distance < 400), solid), (water, sea)):
        places = np.flatnonzero(chosen)
        if places.size:
            colour[:, places] = shade(p[:, places], way[:, places], distance[places])
    return colour


def directions(width: int, height: int, samples: int) -> Floats:
    """Where each ray goes: samples of a pixel side by side, rows from the top."""
    x = (np.arange(width * samples, dtype=np.float32) + 0.5) / (width * samples) * 2 - 1
    y = 1 - (np.arange(height * samples, dtype=np.float32) + 0.5) / (height * samples) * 2
    across, up = np.meshgrid(x * np.float32(LENS), y * np.float32(LENS / ASPECT))
    ahead = vector(*(LOOK_AT - CAMERA))
    right = vector(ahead[2], 0, -ahead[0])
    above = np.cross(ahead, right)
    way = ahead[:, None, None] + right[:, None, None] * across + above[:, None, None] * up
    return np.asarray((way / np.linalg.norm(way, axis=0)).reshape(3, -1), np.float32)


def developed(light: Floats) -> NDArray[np.uint8]:
    """Light as 8-bit samples: the filmic curve of Narkowicz (2015), the corners a little darker, fine grain."""
    height, width, _ = light.shape
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    light = light * (1 - 0.13 * (x**2 + y**2))[..., None] * 0.66
    curve = light * (2.51 * light + 0.03) / (light * (2.43 * light + 0.59) + 0.14)
    curve = np.clip(curve, 0, 1)
    curve += 0.30 * (curve * curve * (3 - 2 * curve) - curve)  # a little more contrast
    grain = np.random.default_rng(SEED).standard_normal((height, width, 1)) * 0.006
    return np.asarray(np.rint(np.clip(curve ** (1 / 2.2) + grain, 0, 1) * 255), np.uint8)


def drawn(width: int = WIDTH, samples: int = SAMPLES, threads: int | None = None) -> NDArray[np.uint8]:
    """The picture, height × width × 3."""
    height = round(width / ASPECT)
    way = directions(width, height, samples)
    chunks = [way[:, start : start + CHUNK] for start in range(0, way.shape[1], CHUNK)]
    with ThreadPoolExecutor(threads) as pool, np.errstate(all="ignore"):
        light = np.concatenate(list(pool.map(traced, chunks)), axis=1)
    averaged = light.reshape(3, height, samples, width, samples).mean(axis=(2, 4))
    return developed(np.moveaxis(averaged, 0, -1))


def write_edges(picture: Path, edges: Path) -> None:
    """Filter the file as it is, as the README says, and write what a page shows of the result."""
    found = edgeconv.convolve(edgeconv.read_image(picture).pixels, FILTER, channels=CHANNELS, border=BORDER)
    write_bytes_atomically(edges, encode_image(found, edges, quality=EDGES_QUALITY))


def write_canny(picture: Path, edges: Path) -> None:
    """The file's edges by Canny as a PNG of one bit a pixel, which is what they have."""
    found = edgeconv.canny(edgeconv.read_image(picture).pixels, LOW, HIGH, blur=BLUR)
    _, encoded = cv2.imencode(".png", found, [cv2.IMWRITE_PNG_BILEVEL, 1, cv2.IMWRITE_PNG_COMPRESSION, 9])
    write_bytes_atomically(edges, encoded.tobytes())


def main() -> None:
    """Draw, filter and write."""
    parser = Arguments(__doc__)
    parser.add_argument("folder", type=Path, help="Where the pictures go.")
    parser.add_argument("--width", type=int, default=WIDTH, help="Width of the picture, in pixels.")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="Rays along each side of a pixel.")
    parser.add_argument("--edges-only", action="store_true", help="Filter the picture that is there.")
    arguments = parser.parse_args()
    picture = arguments.folder / PICTURE
    if not arguments.edges_only:
        encoded = encode_image(drawn(arguments.width, arguments.samples), picture, quality=PICTURE_QUALITY)
        write_bytes_atomically(picture, encoded)
    write_edges(picture, arguments.folder / EDGES)
    write_canny(picture, arguments.folder / CANNY)


if __name__ == "__main__":
    main()
