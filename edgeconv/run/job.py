"""What `edgeconv run` is asked to do: one picture file in, its edges in another."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgeconv.core.option import AUTO
from edgeconv.core.request import Request
from edgeconv.errors import UsageError
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.methods.options import Options

CHECKS = ("sample", "full", "none")


@dataclass(frozen=True)
class Job:
    """One picture to filter and where its output goes. Raises UsageError for an unknown `check`."""

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
    time_limit_seconds: float = 0.15
    rules: ReadRules = DEFAULT_RULES
    check: str = "sample"
    """One of `CHECKS`."""

    def __post_init__(self) -> None:
        if self.check not in CHECKS:
            raise UsageError(f"--check '{self.check}' is not one of {', '.join(CHECKS)}.")
