"""One self-contained page that shows where pictures differ: no network, no framework, opens from disk.

    page.html   the template, on the frame that all pages share (page/base.html)
    page.css    the style of the viewer and the gallery
    viewer/     the script in parts, which the template joins: decodes tiles, draws, zooms, reacts to mouse, touch and
                keyboard
    tiles.py    pictures as compressed tiles of exact values, with a pyramid for the view from afar

The page holds one or more sets, a reference and its inputs each: one for some pictures, several for folders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from edgeconv import __version__
from edgeconv.core.text import visible
from edgeconv.difference import maps, text
from edgeconv.difference.compare import Compared, Comparison
from edgeconv.difference.figures import CHANNEL_NAMES, Box
from edgeconv.difference.inputs import Input
from edgeconv.difference.pictures import Thumbnails
from edgeconv.difference.scale import scale_for
from edgeconv.difference.text import number, share
from edgeconv.difference.tiles import TILE, TileWriter
from edgeconv.page import Table, page

COLUMNS: dict[str, Callable[[Comparison], str]] = {
    "verdict": lambda found: "same" if found.same else "differs",
    "differing samples": lambda found: f"{found.judged.differing_samples:,}",
    "share": lambda found: share(found.judged),
    "largest": lambda found: number(found.judged.max_abs),
    "RMSE": lambda found: f"{found.judged.rmse:.4g}",
    "PSNR dB": lambda found: "infinite" if found.judged.rmse == 0 else f"{found.judged.psnr_db:.2f}",
    "ULP": lambda found: f"{found.judged.max_ulp:,}",
    "regions": lambda found: f"{found.region_count:,}",
    "SSIM": lambda found: f"{found.ssim:.6g}",
}
"""By name; ULP is of floats alone, SSIM only where it was asked for. Each comparison's details have every figure."""

WORDS = {
    "unreadable": ("!", "unreadable"),
    "layout": ("⇔", "other size or type"),
    "changed": ("≠", "changed"),
    "new": ("+", "new"),
    "missing": ("−", "missing"),
    "same": ("=", "same"),
}
"""(sign, word) of the status of a pair of two folders."""


class Page:
    """Gathers sets, then `encode`s the page. `limit_bytes` bounds what the pictures take."""

    def __init__(self, title: str, limit_bytes: int) -> None:
        self._title = title
        self._limit = limit_bytes
        self._blocks: list[bytes] = []
        self._sets: list[dict[str, Any]] = []
        self._sections: list[dict[str, Any]] = []
        self._bytes = 0
        self._pairs: list[dict[str, Any]] = []

    def add(self, name: str, reference: Input, others: Sequence[Input], record: Compared) -> int | None:
        """Take a set into the page; its number, or None, and nothing added, where it does not fit under the limit."""
        number = len(self._sets)
        tiles = TileWriter(number)
        pixels = reference.load().pixels
        low, high = maps.display_range(pixels)
        tiles.add(pixels, low, high)
        for other in others:
            tiles.add(other.load().pixels, low, high)
        if not self._fits(tiles.blocks):
            return None
        self._blocks += tiles.blocks
        scale = scale_for(pixels.dtype)
        facts: dict[str, Any] = {
            "name": visible(name),
            "picture": name,
            "height": pixels.shape[0],
            "width": pixels.shape[1],
            "channels": CHANNEL_NAMES[pixels.shape[2]],
            "dtype": tiles.dtype,
            "low": low,
            "high": high,
            "levels": tiles.levels,
            "lower": [bound if bound != float("inf") else None for bound in scale.lower_bounds],
            "unit": scale.unit,
            "colours": scale.colours,
            "legend": scale.legend,
            "pictures": list(map(_picture, record.labels, [None, *record.comparisons])),
            "ignored": list(map(_corners, record.allowed.ignored_regions)),
        }
        self._sections.append(_section(number, name, record))
        self._sets.append(facts)
        return number

    def list_pair(self, name: str, status: str, detail: str, thumbnails: Thumbnails, opens: int | None) -> None:
        """Show a pair in the gallery, whose set is `opens`; without thumbnails that do not fit under the limit."""
        sign, word = WORDS[status]
        pair = {"name": name, "status": status, "sign": sign, "word": word, "detail": detail, "set": opens}
        self._pairs.append(pair | {"thumbnails": thumbnails if self._fits(thumbnails.values()) else {}})

    def _fits(self, parts: Iterable[bytes | str]) -> bool:
        """Whether the page stays within the limit with these parts, which then count."""
        needed = sum(map(len, parts))
        fits = self._bytes + needed <= self._limit
        self._bytes += needed if fits else 0
        return fits

    def encode(self, verdict: str, same: bool, remarks: Sequence[str] = (), can_ignore: bool = True) -> bytes:
        """The whole page as UTF-8; `remarks` stand with the figures.

        `can_ignore` offers to draw regions that are then not judged, where something differs.
        """
        frame = page(
            "difference/page.html",
            title=self._title,
            verdict=re.sub("^(same|differs): ", "", verdict).replace(" %", "\N{NO-BREAK SPACE}%"),
            same=same,
            pairs=self._pairs,
            remarks=remarks,
            sets=self._sections,
            version=__version__,
            data={"tile": TILE, "sets": self._sets, "canIgnore": can_ignore},
        )
        before, after = frame.split(b"<!--TILES-->")
        return before + b"\n".join(self._blocks) + after


def _picture(label: str, found: Comparison | None) -> dict[str, Any]:
    """What the viewer must know of a picture, the reference (None) or one that is compared with it."""
    if found is None:
        return {"name": visible(label)}
    return {
        "name": visible(label),
        "same": found.same,
        "worst": None if found.worst is None else [found.worst.x, found.worst.y],
        "regionCount": found.region_count,
        "regions": list(map(_corners, found.regions)),
    }


def _corners(box: Box) -> list[int]:
    return [box.left, box.top, box.right, box.bottom]


def _section(number: int, name: str, record: Compared) -> dict[str, Any]:
    """The figures of a set: all inputs in one table, then every figure of each."""
    reference_label, *labels = record.labels
    columns = dict(COLUMNS)
    if record.comparisons[0].judged.max_ulp is None:
        del columns["ULP"]
    if record.comparisons[0].ssim is None:
        del columns["SSIM"]
    rows = [
        (label, *(shown(found) for shown in columns.values()))
        for label, found in zip(labels, record.comparisons, strict=True)
    ]
    allowed = text.allowed_text(record.allowed)
    details = [tuple(text.rows(record, index)) for index in range(len(labels))]
    return {
        "number": number,
        "name": name,
        "about": f"Against {reference_label}, {record.reference.layout}; difference = input − reference{allowed}",
        "table": Table(f"{name} against {reference_label}".lstrip(), ("input", *columns), tuple(rows)),
        "details": [Table(label, ("figure", "value"), rows) for label, rows in zip(labels, details, strict=True)],
    }
