"""The colours of plots: no two alike in a drawing, readable on light and on dark pages.

Each has a contrast of at least 3 : 1 against white and against #0d1117, so that one SVG serves both. Hues are those of
Okabe and Ito as far as that allows; a label at the end of each line tells them apart without hues. On a page a series
is drawn in `var(--series-0)` to `var(--series-9)`, which its style sheet sets for light and for dark.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#2E8FC7", "#7F52A0", "#A6761D", "#5F8C2B", "#C23B50")
NAMES = tuple(f"series-{place}" for place in range(len(SERIES)))
"""What a drawing calls them; `ink`, `soft` and `grid` are its text, its limits and its axes."""
PALETTE = {"ink": "#70767d", "soft": "#8a8d91", "grid": "#8a8d9155", **dict(zip(NAMES, SERIES, strict=True))}
"""Of a file of its own."""
PAGE = {"ink": "var(--ink)", "soft": "var(--soft)", "grid": "var(--line)", **{name: f"var(--{name})" for name in NAMES}}
"""Of a drawing within a page."""

_PLACE_OF = {name: place for place, name in enumerate(("sliding", "torch", "implicit", "im2col", "cudnn", "opencv"))}


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
