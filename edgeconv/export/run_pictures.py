"""The pictures of runs for a page: what was filtered and what came out, from the files that the reports name.

A report holds no pixels. So a file is shown where it is still found and is still that of the run, by the hash in the
report; of any other the page says that it is not shown. Files are looked for where the report says, seen from here, and
by their bare names here and beside the reports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.diff import maps
from edgeconv.diff.html.gallery import thumbnail
from edgeconv.errors import ImageReadError, MemoryLimitError
from edgeconv.export.runs import labels
from edgeconv.io.image import decode_image, read_picture_bytes
from edgeconv.io.read_limits import DEFAULT_RULES
from edgeconv.run.report import RunReport, sha256_of

SIDE = 560
"""Longest side of a picture on the page."""
MOST = 24
"""Pictures that a page shows."""


class ShownPicture(NamedTuple):
    """A picture and what it is."""

    title: str
    webp: bytes


class _Named(NamedTuple):
    """A file of a run, and the hash of its bytes or of its pixels."""

    file: str
    title: str
    file_sha256: str | None
    sha256: str | None
    channels: int


def run_pictures(reports: Sequence[RunReport], folders: Sequence[Path]) -> tuple[list[ShownPicture], list[str]]:
    """The pictures that can be shown, each input once and before what came of it, and the names of the others."""
    found: list[ShownPicture] = []
    missing: dict[str, None] = {}
    for named in dict.fromkeys(_named(reports)):
        webp = _thumbnail(named, (Path(), *folders)) if len(found) < MOST else None
        if webp is None:
            missing[named.file] = None
        else:
            found.append(ShownPicture(named.title, webp))
    return found, list(missing)


def _named(reports: Sequence[RunReport]) -> Iterator[_Named]:
    for name, report in zip(labels(reports), reports, strict=True):
        source, result, filter = report.input, report.output, report.problem.filter.name
        title = f"{source.file}, as it was read"
        yield _Named(source.file, title, source.file_sha256, source.sha256, source.channels)
        outputs = [(each.file, each.file_sha256, each.filter) for each in result.files]
        for file, digest, words in outputs or [(result.file, result.file_sha256 or "", filter)]:
            yield _Named(file, f"{Path(file).name}: {words}, by {name}", digest, None, result.channels)


def _thumbnail(named: _Named, folders: Sequence[Path]) -> bytes | None:
    """A small picture of the first file that is the one of the run."""
    rules = replace(DEFAULT_RULES, rgb=named.channels == RGB_CHANNELS)
    for path in dict.fromkeys([Path(named.file), *(folder / Path(named.file).name for folder in folders)]):
        if not path.is_file():
            continue
        try:
            data = read_picture_bytes(path, rules)
            if named.file_sha256 not in (None, hashlib.sha256(data).hexdigest()):
                continue
            pixels = decode_image(data, str(path), rules).pixels
        except (ImageReadError, MemoryLimitError):
            continue
        if named.file_sha256 is None and sha256_of(pixels) != named.sha256:
            continue
        return thumbnail(pixels, *maps.display_range(pixels), side=SIDE)
    return None
