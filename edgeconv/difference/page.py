"""One self-contained page that shows where pictures differ: no network, no framework, opens from disk.

    page.html   the frame, with a place for each part
    page.css    light and dark
    viewer/     the script in parts (SCRIPTS), joined when a page is written: decodes tiles, draws, zooms, reacts to
                mouse, touch and keyboard
    tiles.py    pictures as compressed tiles of exact values, with a pyramid for the view from afar
    tables.py   the figures as HTML, which need no script
    gallery.py  the pairs of two folders with thumbnails

The page holds one or more sets, a reference and its inputs each: one for some pictures, several for folders.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.core.safe_text import markup, visible
from edgeconv.difference import maps, tables
from edgeconv.difference.compare import Compared
from edgeconv.difference.figures import CHANNEL_NAMES
from edgeconv.difference.gallery import GalleryEntry, without_script
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import Scale, scale_for
from edgeconv.difference.tiles import TILE, TileWriter
from edgeconv.errors import UsageError
from edgeconv.io.files import utf8

SCRIPTS = (
    "state",
    "tiles",
    "values",
    "layers",
    "panes",
    "drawing",
    "moving",
    "controls",
    "gallery",
    "ignored",
    "pointer",
    "start",
)
"""The parts of the viewer, in the order in which they are joined: each uses what stands before it when it starts."""

Rows = Sequence[tuple[str, str]]


class Page:
    """Gathers sets, then `encode`s the page. `limit_bytes` bounds what the pictures take."""

    def __init__(self, title: str, limit_bytes: int) -> None:
        self._title = title
        self._limit = limit_bytes
        self._blocks: list[bytes] = []
        self._sets: list[dict[str, Any]] = []
        self._sections: list[str] = []
        self._bytes = 0
        self._pairs: list[GalleryEntry] = []

    @property
    def count(self) -> int:
        """How many sets it has; the number of the next one."""
        return len(self._sets)

    def add(self, name: str, record: Compared, reference: Input, others: Sequence[Input]) -> bool:
        """Take a set with its name into the page; False, and nothing added, where it does not fit under the limit."""
        number = len(self._sets)
        tiles = TileWriter(number, self._limit - self._bytes)
        pixels = reference.load().pixels
        low, high = maps.display_range(pixels)
        fits = tiles.add_reference(pixels, low, high) and all(
            tiles.add_input(index, other.load().pixels) for index, other in enumerate(others, 1)
        )
        if not fits:
            return False
        self._blocks += tiles.blocks
        self._bytes += tiles.written_bytes
        self._sets.append(_set(name, record, pixels.shape, low, high, tiles))
        self._sections.append(tables.figures(name, number, record))
        return True

    def add_alone(self, name: str, label: str, pixels: NDArray[Any]) -> bool:
        """The same for a picture (HWC) that nothing is compared with."""
        tiles = TileWriter(len(self._sets), self._limit - self._bytes)
        low, high = maps.display_range(pixels)
        if not tiles.add_reference(pixels, low, high):
            return False
        self._blocks += tiles.blocks
        self._bytes += tiles.written_bytes
        channels, scale = CHANNEL_NAMES[pixels.shape[2]], scale_for(pixels.dtype)
        self._sets.append(_facts(name, pixels.shape, low, high, tiles, channels, scale, [{"name": visible(label)}]))
        return True

    def list_pair(self, entry: GalleryEntry) -> None:
        """Show a pair in the gallery; without its thumbnails where they do not fit under the limit."""
        blocks = entry.blocks(len(self._pairs))
        needed = sum(map(len, blocks))
        if self._bytes + needed > self._limit:
            entry, blocks, needed = replace(entry, thumbnails=()), [], 0
        self._pairs.append(entry)
        self._blocks += blocks
        self._bytes += needed

    def require(self, name: str, record: Compared, reference: Input, others: Sequence[Input]) -> None:
        """The same as `add`; raises UsageError where it does not fit."""
        if not self.add(name, record, reference, others):
            raise UsageError(
                f"The page would be larger than --page-limit ({self._limit / 2**20:.4g} MiB): raise it, or compare "
                "fewer or smaller pictures."
            )

    def encode(self, verdict: str, remarks: str = "") -> bytes:
        """The whole page as UTF-8; `remarks` is HTML that stands with the figures."""
        content = {"tile": TILE, "sets": self._sets, "pairs": [entry.record() for entry in self._pairs]}
        # JSON reads back what `visible` escapes, so that a picture's own name stands in it and no terminal obeys it.
        data = visible(json.dumps(content, ensure_ascii=False)).replace("<", "\\u003c")
        parts = {
            "TITLE": markup(self._title),
            "VERDICT": markup(verdict),
            "STYLE": _text("page.css"),
            "PAIRS": without_script(self._pairs) if self._pairs else "",
            "REMARKS": remarks,
            "FIGURES": "\n".join(self._sections),
            "VERSION": markup(__version__),
            "DATA": data,
            "SCRIPT": viewer_script(),
        }
        frame = _text("page.html")
        before, after = frame.split("<!--TILES-->")
        return _filled(before, parts) + b"\n".join(self._blocks) + _filled(after, parts)


def _set(
    name: str, record: Compared, shape: tuple[int, ...], low: float, high: float, tiles: TileWriter
) -> dict[str, Any]:
    """What the viewer must know of a set."""
    reference_label, *labels = map(visible, record.labels)
    pictures: list[dict[str, Any]] = [{"name": reference_label}]
    for label, found in zip(labels, record.comparisons, strict=True):
        boxes = [[box.left, box.top, box.right, box.bottom, box.pixels] for box in found.regions]
        pictures.append({"name": label, "same": found.same, "regionCount": found.region_count, "regions": boxes})
    channels = list(record.comparisons[0].channels)
    ignored = [[box.left, box.top, box.right, box.bottom] for box in record.allowed.ignored_regions]
    facts = _facts(name, shape, low, high, tiles, channels, record.scale, pictures)
    return facts | {"picture": name, "ignored": ignored}


def _facts(
    name: str,
    shape: tuple[int, ...],
    low: float,
    high: float,
    tiles: TileWriter,
    channels: Sequence[str],
    scale: Scale,
    pictures: list[dict[str, Any]],
) -> dict[str, Any]:
    signed = maps.signed_colours(scale)
    return {
        "name": visible(name),
        "height": shape[0],
        "width": shape[1],
        "channels": list(channels),
        "dtype": tiles.dtype,
        "low": low,
        "high": high,
        "levels": tiles.levels,
        "pictures": pictures,
        "scale": {
            "lower": [bound if bound != float("inf") else None for bound in scale.lower_bounds],
            "labels": scale.labels,
            "heat": scale.colours,
            "plus": signed[1].tolist(),
            "minus": signed[-1].tolist(),
        },
    }


def viewer_script() -> str:
    """The viewer: its parts in one function, so that the page has no global names of it."""
    return '"use strict";\n(() => {\n' + "\n".join(_text(f"viewer/{name}.js") for name in SCRIPTS) + "})();\n"


def _text(name: str) -> str:
    return files("edgeconv.difference").joinpath(name).read_text(encoding="utf-8")


def _filled(frame: str, parts: dict[str, str]) -> bytes:
    """`frame` with each `<!--NAME-->` replaced; one pass, so that no part is searched for another's name."""
    pieces = frame.split("<!--")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, closing, rest = piece.partition("-->")
        filled.append(parts[name] + rest if closing and name in parts else f"<!--{piece}")
    return utf8("".join(filled))
