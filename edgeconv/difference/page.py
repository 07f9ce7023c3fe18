"""One self-contained page that shows where pictures differ: no network, no framework, opens from disk.

    page.html   the template, on the frame that all pages share (page/base.html)
    page.css    the style of the viewer and the gallery
    viewer/     the script in parts (SCRIPTS), joined when a page is written: decodes tiles, draws, zooms, reacts to
                mouse, touch and keyboard
    tiles.py    pictures as compressed tiles of exact values, with a pyramid for the view from afar
    gallery.py  the pairs of two folders with thumbnails

The page holds one or more sets, a reference and its inputs each: one for some pictures, several for folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, ClassVar

from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.core.safe_text import visible
from edgeconv.difference import maps, text
from edgeconv.difference.compare import Compared, Comparison
from edgeconv.difference.figures import CHANNEL_NAMES
from edgeconv.difference.gallery import GalleryEntry
from edgeconv.difference.inputs import Input
from edgeconv.difference.scale import Scale, scale_for
from edgeconv.difference.text import number, share
from edgeconv.difference.tiles import TILE, TileWriter
from edgeconv.errors import UsageError
from edgeconv.page import page

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


@dataclass(frozen=True)
class _Table:
    """Rows of text, as page/tables.html draws them."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    most: ClassVar[int] = 12

    @property
    def kinds(self) -> list[str]:
        """Words in every column."""
        return ["short"] * len(self.header)

    @staticmethod
    def tone(first: str) -> str:
        """No row is coloured."""
        return ""


class Page:
    """Gathers sets, then `encode`s the page. `limit_bytes` bounds what the pictures take."""

    def __init__(self, title: str, limit_bytes: int) -> None:
        self._title = title
        self._limit = limit_bytes
        self._blocks: list[bytes] = []
        self._sets: list[dict[str, Any]] = []
        self._sections: list[dict[str, Any]] = []
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
        self._sections.append(_section(name, record))
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

    def encode(self, verdict: str, same: bool, remarks: Sequence[str] = (), can_ignore: bool = True) -> bytes:
        """The whole page as UTF-8; `remarks` stand with the figures.

        `can_ignore` offers to draw regions that are then not judged, where something differs.
        """
        from markupsafe import Markup

        content = {
            "tile": TILE,
            "sets": self._sets,
            "pairs": [entry.record() for entry in self._pairs],
            "canIgnore": can_ignore,
        }
        # JSON reads back what `visible` escapes, so that a picture's own name stands in it and no terminal obeys it.
        data = visible(json.dumps(content, ensure_ascii=False)).replace("<", "\\u003c")
        frame = page(
            "difference/page.html",
            title=self._title,
            verdict=re.sub("^(same|differs): ", "", verdict).replace(" %", "\N{NO-BREAK SPACE}%"),
            same=same,
            pairs=_Table("Pairs", ("picture", "status", "what"), [_cells(entry) for entry in self._pairs]),
            remarks=remarks,
            sets=self._sections,
            version=__version__,
            data=Markup(data),
            script=Markup(viewer_script()),
        )
        before, after = frame.split(b"<!--TILES-->")
        return before + b"\n".join(self._blocks) + after


def _cells(entry: GalleryEntry) -> tuple[str, ...]:
    return entry.name, entry.status, entry.detail


def _section(name: str, record: Compared) -> dict[str, Any]:
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
    return {
        "name": name,
        "about": f"Against {reference_label}, {record.reference.layout}; difference = input − reference{allowed}",
        "table": _Table(f"{name} against {reference_label}".lstrip(), ("input", *columns), rows),
        "details": [_Table(label, ("figure", "value"), text.rows(record, index)) for index, label in enumerate(labels)],
    }


def _set(
    name: str, record: Compared, shape: tuple[int, ...], low: float, high: float, tiles: TileWriter
) -> dict[str, Any]:
    """What the viewer must know of a set."""
    reference_label, *labels = map(visible, record.labels)
    pictures: list[dict[str, Any]] = [{"name": reference_label}]
    for label, found in zip(labels, record.comparisons, strict=True):
        boxes = [[box.left, box.top, box.right, box.bottom, box.pixels] for box in found.regions]
        worst = None if found.worst is None else [found.worst.x, found.worst.y]
        facts = {"same": found.same, "worst": worst, "regionCount": found.region_count, "regions": boxes}
        pictures.append({"name": label, **facts})
    channels = list(record.comparisons[0].channels)
    ignored = [[box.left, box.top, box.right, box.bottom] for box in record.allowed.ignored_regions]
    return _facts(name, shape, low, high, tiles, channels, record.scale, pictures) | {
        "picture": name,
        "ignored": ignored,
    }


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
            "unit": scale.unit,
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
