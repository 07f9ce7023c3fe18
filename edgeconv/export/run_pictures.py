"""The pictures of runs for a page: what was filtered and what came out, from the files that the reports name.

A report holds no pixels. So a file is shown where it is still found and is still that of the run, by the hash in the
report; of any other the page says that it is not shown. Files are looked for where the report says, seen from here, and
by their bare names here and beside the reports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.difference import maps
from edgeconv.difference.gallery import thumbnail
from edgeconv.errors import ImageReadError, MemoryLimitError
from edgeconv.export.rows import labels
from edgeconv.io.read_limits import DEFAULT_RULES
from edgeconv.io.reading import decode_image, read_picture_bytes
from edgeconv.run.report import RunReport, sha256_of

SIDE = 560
"""Longest side of a picture on the page."""
MOST = 24
"""Pictures that a page shows."""


def run_pictures(reports: Sequence[RunReport], folders: Sequence[Path]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """What can be shown, as title and WebP, each input once and before what came of it; and the names of the others."""
    shown: list[tuple[str, bytes]] = []
    missing: dict[str, None] = {}
    for named in dict.fromkeys(_named(reports)):
        webp = _thumbnail(named, folders) if len(shown) < MOST else None
        if webp is None:
            missing[named.file] = None
        else:
            shown.append((named.title, webp))
    return shown, list(missing)


class _Named(NamedTuple):
    """A file of a run, and the hash of its bytes or of its pixels."""

    file: str
    title: str
    sha256: str | None
    rgb: bool = False


def _named(reports: Sequence[RunReport]) -> Iterator[_Named]:
    for name, report in zip(labels(reports), reports, strict=True):
        source, result, filter = report.input, report.output, report.problem.filter.name
        digest = source.file_sha256 or source.sha256
        yield _Named(source.file, f"{source.file}, as it was read", digest, source.channels == RGB_CHANNELS)
        for each in result.files:
            yield _Named(each.file, f"{Path(each.file).name}: {each.filter}, by {name}", each.file_sha256)
        if not result.files:
            yield _Named(result.file, f"{Path(result.file).name}: {filter}, by {name}", result.file_sha256)


def _thumbnail(named: _Named, folders: Sequence[Path]) -> bytes | None:
    """A small picture of the first file that is the one of the run."""
    file, rules = Path(named.file), replace(DEFAULT_RULES, rgb=named.rgb)
    for path in dict.fromkeys([file, Path(file.name), *(folder / file.name for folder in folders)]):
        with suppress(ImageReadError, MemoryLimitError):
            data = read_picture_bytes(path, rules)
            pixels = decode_image(data, str(path), rules).pixels
            if named.sha256 in (hashlib.sha256(data).hexdigest(), sha256_of(pixels)):
                return thumbnail(pixels, *maps.display_range(pixels), side=SIDE)
    return None
