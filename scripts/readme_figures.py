"""Draw the README's plot of results from committed records, as its table is made from them.

    python3 scripts/readme_figures.py            RECORD and LADDER → docs/pictures/gflops_light.svg, gflops_dark.svg
    python3 scripts/readme_figures.py --check    writes nothing; exit 1 where a plot is not what the records give

The case is the same for everyone: float32, 3→3 channels, random weights, stride 1, cold L2. Of a library that was
measured in several ways (layouts of PyTorch, algorithms of cuDNN) the fastest at each size counts. The plots are
drawn here, not by matplotlib, so that the same record gives the same bytes everywhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import committed
from script_options import PROJECT, Arguments

RECORD, LADDER = "bench/h200/gpu", "bench_conv_h200"
"""Of `edgeconv bench` and of `edgeconv bench conv`, the latter on another day on a GPU of the same kind."""
PICTURES = PROJECT / "docs" / "pictures"
STRIDE, LEAD_STATE = 1, "cold"
TABLE_SIZES = (1024, 2048, 4096)
NOMINAL_FLOPS_PER_PIXEL = 2 * 3 * 3 * 3 * 3

Seconds = dict[int, float]
"""Median seconds by the side of the picture."""


@dataclass(frozen=True)
class Line:
    """One row of the table, and where `label` is set one line of the plot."""

    words: str
    names: tuple[str, ...]
    """In the record; the fastest of them counts at each size."""
    label: str = ""
    library: bool = False
    """Neither the project's nor written by hand for just this case."""


LINES = (
    Line("a plain copy of the same bytes, which is the limit", ("copy",), "limit: a plain copy"),
    Line("edgeconv `sliding`", ("sliding",), "edgeconv sliding"),
    Line("edgeconv `implicit`", ("implicit",), "edgeconv implicit"),
    Line("edgeconv `im2col`", ("im2col",)),
    Line("a plain kernel: one thread per pixel, weights as parameters", ("bench conv",), "a plain kernel"),
    Line("a stencil in Triton, tile and warps tuned", ("triton",)),
    Line("27 shifted multiply-adds under `torch.compile`", ("torch-compile",)),
    Line("27 shifted multiply-adds under `jax.jit`", ("jax-shifts",)),
    Line("edgeconv `textbook`: one thread per output value", ("textbook",)),
    Line("PyTorch `conv2d`, the faster of both layouts", ("torch", "torch-nchw"), "PyTorch conv2d", library=True),
    Line("cuDNN, the fastest of its algorithms", ("cudnn", "cudnn:find", "cudnn-graph"), "cuDNN", library=True),
    Line("JAX `conv_general_dilated`", ("jax",), library=True),
    Line("CuPy `ndimage.correlate`", ("cupy-ndimage",), library=True),
)
PLAIN_STEP = "constant"
"""The step of `edgeconv bench conv` that anyone who knows CUDA writes in twenty lines."""


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a committed record, packed by xz or not."""
    found: list[dict[str, Any]] = committed.record(name)["rows"]
    return found


def measured() -> dict[str, Seconds]:
    """Medians of everything that was measured at the case, by name and size."""
    return {"bench conv": plain_kernel(), **medians(RECORD)}


def medians(name: str) -> dict[str, Seconds]:
    """Those of one record of `edgeconv bench` on a GPU, in the state of the cache that leads."""
    found: dict[str, Seconds] = {}
    for row in rows_of(name):
        case = row["work"]
        kind = (case["dtype"], case["filter"], case["channels"], case["stride"])
        if row["status"] == "measured" and row["device"] == "cuda" and kind == ("float32", "random", "mix", STRIDE):
            seconds = row["timings"][LEAD_STATE]["median_seconds"]
            found.setdefault(row["entrant"], {})[int(case["size"])] = float(seconds)
    return found


def plain_kernel() -> Seconds:
    """Medians of the ladder's plain kernel with the best shape of thread block at each size."""
    best: Seconds = {}
    for row in rows_of(LADDER):
        if row["step"] == PLAIN_STEP and row["stride"] == STRIDE and row["timing"]:
            seconds = float(row["timing"]["median_seconds"])
            best[row["size"]] = min(seconds, best.get(row["size"], math.inf))
    return best


def fastest(found: dict[str, Seconds], names: Sequence[str]) -> Seconds:
    """The least median at each size among those of `names`."""
    times = [found.get(name, {}) for name in names]
    return {size: min(of[size] for of in times if size in of) for size in sorted({size for of in times for size in of})}


def rows() -> list[list[str]]:
    """The table, the fastest at the largest size first."""
    found = measured()
    timed = [(line.words, fastest(found, line.names)) for line in LINES]
    lines = sorted((line for line in timed if line[1]), key=lambda line: line[1][TABLE_SIZES[-1]])
    copy = found["copy"]
    table = []
    for words, seconds in lines:
        last = TABLE_SIZES[-1]
        gflops = NOMINAL_FLOPS_PER_PIXEL * last**2 / seconds[last] / 1e9
        is_copy = seconds == copy
        table.append(
            [
                words,
                *(f"{seconds[size] * 1e6:,.1f}" for size in TABLE_SIZES),
                "–" if is_copy else f"{gflops:,.0f}",
                f"{100 * copy[last] / seconds[last]:.0f}",
            ]
        )
    return table


def leads() -> str:
    """A sentence: by how much `sliding` is ahead of the fastest library."""
    found, last = measured(), TABLE_SIZES[-1]
    libraries = [name for line in LINES if line.library for name in line.names]
    lead = fastest(found, libraries)[last] / found["sliding"][last]
    return f"At {last}², `sliding` is {lead:.1f} times as fast as the fastest library in this table.\n"


HEADER = (
    "float32, 3→3 channels, stride 1",
    *(f"{size}², µs" for size in TABLE_SIZES),
    f"{TABLE_SIZES[-1]}², nominal GFLOPS",
    f"{TABLE_SIZES[-1]}², share of the copy's speed, %",
)


# ---- the plot


@dataclass(frozen=True)
class Theme:
    """Colours on one background: text, grid, and the lines in their order."""

    name: str
    text: str
    grid: str
    lines: tuple[str, ...]


THEMES = (
    Theme("light", "#24292f", "#d0d7de", ("#6e7781", "#0550ae", "#1a7f37", "#953800", "#8250df", "#cf222e")),
    Theme("dark", "#e6edf3", "#30363d", ("#8b949e", "#58a6ff", "#3fb950", "#f0883e", "#bc8cff", "#ff7b72")),
)

WIDTH, HEIGHT = 860, 400
LEFT, RIGHT, TOP, BOTTOM = 66, 176, 34, 46
LABEL_GAP = 17
"""Least distance between the middles of two labels."""


def svg(theme: Theme) -> str:
    """GFLOPS over size, both axes logarithmic, at most six lines that are labelled at their ends."""
    found = measured()
    shown = [(line.label, fastest(found, line.names)) for line in LINES if line.label]
    sides = sorted(set.intersection(*(set(seconds) for _, seconds in shown)))
    curves = [
        (label, {side: NOMINAL_FLOPS_PER_PIXEL * side**2 / seconds[side] / 1e9 for side in sides})
        for label, seconds in shown
    ]
    every = [value for _, curve in curves for value in curve.values()]
    low, high = 10.0 ** math.floor(math.log10(min(every))), max(every) * 1.4

    def x(side: float) -> float:
        share = math.log(side / sides[0]) / math.log(sides[-1] / sides[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(gflops: float) -> float:
        share = math.log(gflops / low) / math.log(high / low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' role="img" font-family="system-ui, sans-serif" font-size="13" fill="{theme.text}">',
        "<title>GFLOPS over the side of the picture on one NVIDIA H200; float32, 3→3 channels, stride 1</title>",
        f'<text x="{LEFT}" y="18" font-weight="600">GFLOPS (nominal), float32, 3→3 channels, stride 1</text>',
    ]
    for exponent in range(round(math.log10(low)), math.floor(math.log10(high)) + 1):
        height = y(10**exponent)
        parts.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="{theme.grid}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{10**exponent:,}</text>')
    for side in sides:
        parts.append(f'<path d="M{x(side):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{theme.grid}"/>')
        parts.append(f'<text x="{x(side):.1f}" y="{HEIGHT - BOTTOM + 19}" text-anchor="middle">{side}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">side of the picture, pixels</text>')
    places = _apart([y(curve[max(curve)]) for _, curve in curves])
    for (label, curve), colour, place in zip(curves, theme.lines, places, strict=True):
        points = [(x(side), y(value)) for side, value in sorted(curve.items())]
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
        dashes = ' stroke-dasharray="6 5"' if label.startswith("limit") else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.2"{dashes}/>')
        if not dashes:
            parts += [f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3.2" fill="{colour}"/>' for across, down in points]
        end_x, end_y = points[-1]
        parts.append(f'<path d="M{end_x + 5:.1f} {end_y:.1f}L{end_x + 14:.1f} {place:.1f}" stroke="{colour}"/>')
        parts.append(f'<text x="{end_x + 18:.1f}" y="{place + 4:.1f}" fill="{colour}">{escape(label)}</text>')
    return "\n".join((*parts, "</svg>", ""))


def _apart(places: Sequence[float]) -> list[float]:
    """The places of labels, moved down as far as they would cover each other."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda index: places[index])
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + LABEL_GAP)
    return moved


def plots() -> dict[Path, str]:
    """Every plot and its place."""
    return {PICTURES / f"gflops_{theme.name}.svg": svg(theme) for theme in THEMES}


def main() -> int:
    """Draw, or with --check name what is out of date and exit 1."""
    parser = Arguments(__doc__)
    parser.add_argument("--check", action="store_true", help="Write nothing; end with 1 where a plot is out of date.")
    check = parser.parse_args().check
    code = 0
    for path, text in plots().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            if check:
                print(f"Out of date: {path}. Run python3 scripts/readme_figures.py.", file=sys.stderr)
                code = 1
            else:
                path.write_text(text, encoding="utf-8", newline="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
