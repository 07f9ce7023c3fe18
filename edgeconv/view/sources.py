"""What a side of the view may show: the picture itself, an output of it, or another file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeconv.methods import METHODS
from edgeconv.view.parameters import Parameters

Kind = Literal["input", "output", "method", "file"]


@dataclass(frozen=True)
class Source:
    """`input`: the picture. `output`: by the method that is chosen. `method`: by `name` on `device`. `file`: `name`."""

    kind: Kind
    name: str = ""
    device: str = ""

    @property
    def needs_filter(self) -> bool:
        """Whether it is computed."""
        return self.kind in ("output", "method")

    def method_of(self, parameters: Parameters) -> tuple[str, str]:
        """(method, device) that computes it."""
        return (self.name, self.device) if self.kind == "method" else (parameters.method, parameters.device)

    @property
    def label(self) -> str:
        """What lists call it."""
        if self.kind == "file":
            return self.name.replace("\\", "/").rpartition("/")[2] or self.name
        if self.kind == "method":
            return f"{self.name} on {self.device.upper()}"
        return {"input": "input", "output": "output"}[self.kind]


INPUT = Source("input")
OUTPUT = Source("output")
REFERENCE_OUTPUT = Source("method", "reference", "cpu")
"""What everything else may be compared with, as `edgeconv compare` does."""


def computed_sources() -> tuple[Source, ...]:
    """Input, output, and the output of every method of the table, the reference first."""
    methods = [Source("method", entry.name, entry.device) for entry in METHODS]
    methods.sort(key=lambda source: source != REFERENCE_OUTPUT)
    return (INPUT, OUTPUT, *methods)
