"""The colours of plots: one for each method and peer, the same in every drawing, readable on light and on dark pages.

Each has a contrast of at least 3 : 1 against white and against #0d1117, so that one SVG serves both. Hues are those of
Okabe and Ito as far as that allows; markers and dashes tell series apart without them. In a page a series is drawn in
`var(--series-0)` to `var(--series-9)`, which a style sheet may set; what stands here is the fallback.
"""

from __future__ import annotations

from zlib import crc32

INK = "#70767d"
"""Axes and text: a text that occurs nowhere else in a drawing, which a page replaces by its own text colour."""
FLOOR = "#8a8d91"
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#2E8FC7", "#7F52A0", "#A6761D", "#5F8C2B", "#C23B50")

_PLACES = (
    ("sliding", "torch", "openvino"),
    ("im2col", "torch-nchw", "onnxruntime"),
    ("implicit", "jax", "pyvips"),
    ("cudnn", "cupy-ndimage", "scipy"),
    ("opencv", "torch-half", "kornia-rs"),
    ("textbook", "npp", "opencv-filter2d"),
    ("reference", "cvcuda", "skimage"),
    ("cucim",),
    ("torch-unfold",),
    ("copy",),
)
"""Who has which of `SERIES`; methods are drawn solid and peers dashed, so that one of each may share a colour."""
_PLACE_OF = {name: place for place, names in enumerate(_PLACES) for name in names}


def place_of(candidate: str) -> int:
    """Which of `SERIES` a candidate has, whatever its options; of a name that is not known, always the same too."""
    name = candidate.partition(":")[0]
    return _PLACE_OF.get(name, crc32(name.encode(errors="surrogatepass")) % len(SERIES))


def colour_of(candidate: str) -> str:
    """The colour of a candidate."""
    return SERIES[place_of(candidate)]


def with_variables(svg: str) -> str:
    """An SVG for a page: ink in the page's text colour, series by variables."""
    for number, colour in enumerate(SERIES):
        svg = svg.replace(colour.lower(), f"var(--series-{number}, {colour})")
    return svg.replace(INK, "currentColor")
