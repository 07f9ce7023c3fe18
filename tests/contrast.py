"""WCAG's contrast of two colours, and the pages that drawings have to be read on."""

from __future__ import annotations

import re

PAGES = ("#ffffff", "#0d1117")
"""White, and GitHub's dark page."""


def contrast(one: str, other: str) -> float:
    """Of two colours as #rrggbb or rgb(r, g, b), from 1 to 21 (WCAG 2.2, contrast ratio and relative luminance)."""
    darker, brighter = sorted(map(_luminance, (one, other)))
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    if colour.startswith("#"):
        samples = [float(int(colour[place : place + 2], 16)) for place in (1, 3, 5)]
    else:
        samples = [float(part) for part in re.findall(r"[\d.]+", colour)[:3]]
    parts = [sample / 255 for sample in samples]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
