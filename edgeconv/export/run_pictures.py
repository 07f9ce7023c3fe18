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

from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.difference import maps
from edgeconv.difference.pictures import thumbnail
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
    for title, file, sha256, rgb in dict.fromkeys(_named(reports)):
        webp = _thumbnail(Path(file), sha256, folders, rgb) if len(shown) < MOST else None
        if webp is None:
            missing[file] = None
        else:
            shown.append((title, webp))
    return shown, list(missing)


def _named(reports: Sequence[RunReport]) -> Iterator[tuple[str, str, str | None, bool]]:
    """A title, a file, the hash of its bytes or pixels, and whether a grey one was read as RGB."""
    for name, report in zip(labels(reports), reports, strict=True):
        source, result = report.input, report.output
        digest = source.file_sha256 or source.sha256
        yield f"{source.file}, as it was read", source.file, digest, source.channels == RGB_CHANNELS
        for each in result.files:
            yield f"{Path(each.file).name}: {each.filter}, by {name}", each.file, each.file_sha256, False
        if not result.files:
            title = f"{Path(result.file).name}: {report.problem.filter.name}, by {name}"
            yield title, result.file, result.file_sha256, False


def _thumbnail(file: Path, sha256: str | None, folders: Sequence[Path], rgb: bool) -> bytes | None:
    """A small picture of the first file that is the one of the run."""
    rules = replace(DEFAULT_RULES, rgb=rgb)
    for path in dict.fromkeys([file, Path(file.name), *(folder / file.name for folder in folders)]):
        with suppress(ImageReadError, MemoryLimitError):
            data = read_picture_bytes(path, rules)
            pixels = decode_image(data, str(path), rules).pixels
            if sha256 in (hashlib.sha256(data).hexdigest(), sha256_of(pixels)):
                return thumbnail(pixels, *maps.display_range(pixels), side=SIDE)
    return None
