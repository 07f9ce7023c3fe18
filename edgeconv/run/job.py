"""What `edgeconv run` is asked to do: one picture file in, its edges in another."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgeconv.core.choices import CHECKS
from edgeconv.core.option import AUTO
from edgeconv.core.request import Request
from edgeconv.errors import UsageError
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods.options import Options

MAX_SAMPLING_SECONDS = 0.15
TILE_STEP = 16
"""Sides of a TIFF's tiles are multiples of it."""


def sampling_seconds(job_seconds: float) -> float:
    """How long timed runs may take unless a user says so: with the copy and the check no longer than the job did."""
    return min(MAX_SAMPLING_SECONDS, job_seconds / 2)


@dataclass(frozen=True)
class Job:
    """One picture to filter and where its output goes. Raises UsageError for values that make no sense."""

    source: str
    request: Request
    method: str = AUTO
    device: str = AUTO
    output: str | None = None
    """A file, an existing folder or a name that ends in a separator, or None for the current folder; a device or a pipe
    gets the picture without a report."""
    overwrite: bool = False
    options: Options = field(default_factory=Options)
    samples: int = 200
    """Most timed runs after the first; 0 for none."""
    time_limit_seconds: float | None = None
    """Of the timed runs; None for `sampling_seconds` of what the picture took."""
    format: str | None = None
    """A suffix without its dot, for an output that no name gives a format; None keeps every bit."""
    quality: int | None = None
    """1 to 100 for JPEG and WebP; None is the format's own default."""
    rules: ReadRules = DEFAULT_RULES
    check: str = "sample"
    """One of `CHECKS`."""
    tile: int | None = None
    """By tiles: their side in pixels; None chooses by the limit."""
    limit_bytes: int | None = None
    """By tiles: most memory of the process."""

    def __post_init__(self) -> None:
        if self.tile is not None and (self.tile < TILE_STEP or self.tile % TILE_STEP):
            below = max(TILE_STEP, self.tile // TILE_STEP * TILE_STEP)
            raise UsageError(
                f"--tile {self.tile} is not a multiple of {TILE_STEP}, as TIFF asks of its tiles: "
                f"use {below} or {below + TILE_STEP}."
            )
        if self.limit_bytes is not None and self.limit_bytes < 1:
            raise UsageError("--memory-limit 0 leaves no memory at all: write 1GiB, 512MiB or a number of bytes.")
        if self.check not in CHECKS:
            raise UsageError(f"--check '{self.check}' is not one of {', '.join(CHECKS)}.")
