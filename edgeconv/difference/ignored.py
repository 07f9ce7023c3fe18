"""Regions that a comparison does not judge: rectangles as `x,y,w,h`, or in a JSON file that the page draws and saves.

A region names the picture that it is for, by its relative name in two folders, or none and is for all of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from edgeconv.core.records import Meta, Part
from edgeconv.difference.figures import Box
from edgeconv.errors import UsageError
from edgeconv.io.records import read_record

KIND: Literal["ignored_regions"] = "ignored_regions"


class IgnoredRegion(Box, omit_defaults=True):
    """A rectangle that is not judged."""

    picture: Annotated[
        str | None, Meta(description="its relative name in the two folders; null or absent: every picture")
    ] = None


class IgnoredRegions(Part):
    """What the page of `edgeconv diff` saves and `--ignore` reads."""

    schema_version: Literal[1]
    kind: Literal["ignored_regions"]
    regions: list[IgnoredRegion]

    def of(self, picture: str | None) -> tuple[Box, ...]:
        """Those of one picture by its relative name, or of a picture that has none."""
        return tuple(region for region in self.regions if region.picture in (None, picture))


NO_REGIONS = IgnoredRegions(1, KIND, [])


def read_ignored(text: str) -> IgnoredRegions:
    """The regions in a file, or those that are written `x,y,w,h` with semicolons between them; raises UsageError."""
    rectangles = [re.fullmatch(r"\s*(\d+),(\d+),([1-9]\d*),([1-9]\d*)\s*", part) for part in text.split(";")]
    if not all(rectangles):
        if not Path(text).exists():
            raise UsageError(f"--ignore '{text}' is neither a file nor regions: write x,y,width,height, no side 0.")
        return read_record(Path(text), {KIND: IgnoredRegions})
    regions = []
    for rectangle in filter(None, rectangles):
        x, y, width, height = map(int, rectangle.groups())
        regions.append(IgnoredRegion(x, y, x + width - 1, y + height - 1))
    return IgnoredRegions(1, KIND, regions)
