"""Regions that a comparison does not judge: rectangles in a JSON file, which the page of a comparison draws and saves.

A region names the picture that it is for, by its relative name in two folders, or none and is for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from edgeconv.core.records import Meta, Natural, Part
from edgeconv.difference.figures import Box
from edgeconv.errors import UsageError
from edgeconv.io.records import read_record

KIND: Literal["ignored_regions"] = "ignored_regions"


class IgnoredRegion(Part, omit_defaults=True):
    """A rectangle of pixels, counted from 0 at the top left; bounds are inclusive."""

    left: Natural
    top: Natural
    right: Natural
    bottom: Natural
    picture: Annotated[
        str | None, Meta(description="its relative name in the two folders; null or absent: every picture")
    ] = None

    def box(self) -> Box:
        """The same as figures take it."""
        return Box(self.left, self.top, self.right, self.bottom)


class IgnoredRegions(Part):
    """What the page of `edgeconv diff` saves and `--ignore` reads."""

    schema_version: Literal[1]
    kind: Literal["ignored_regions"]
    regions: list[IgnoredRegion]

    def of(self, picture: str | None) -> tuple[Box, ...]:
        """Those of one picture by its relative name, or of a picture that has none."""
        return tuple(region.box() for region in self.regions if region.picture in (None, picture))

    def refuse_unknown(self, names: Iterable[str]) -> None:
        """Raise UsageError for a region of a picture that is none of `names`."""
        known = set(names)
        for region in self.regions:
            if region.picture is not None and region.picture not in known:
                raise UsageError(
                    f"--ignore: a region is for '{region.picture}', and no such picture is compared: take it out."
                )


NO_REGIONS = IgnoredRegions(1, KIND, [])


def read_ignored(path: Path) -> IgnoredRegions:
    """The regions in a file; raises UsageError."""
    return read_record(path, {KIND: IgnoredRegions})
