"""What a side of the view may show: the picture itself, an output of it, or another file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from edgeconv.difference.inputs import labels_of
from edgeconv.methods import all_methods, find
from edgeconv.methods.options import special_options
from edgeconv.view.parameters import Parameters

Kind = Literal["input", "output", "method", "file"]


@dataclass(frozen=True)
class ViewSource:
    """`input`: the picture. `output`: by the method that is chosen. `method`: by `name` on `device`. `file`: `name`."""

    kind: Kind
    name: str = ""
    device: str = ""

    @property
    def needs_filter(self) -> bool:
        """Whether it is computed."""
        return self.kind in ("output", "method")

    def parameters_of(self, chosen: Parameters) -> Parameters:
        """Those by which it is computed: a method other than the chosen one gets the options that apply to it."""
        if self.kind != "method":
            return chosen
        entry = find(self.name, "cuda" if self.device == "cuda" else "cpu")
        others = (option for option in special_options() if option.name not in entry.special_options)
        defaults = {option.parameter: option.default for option in others}
        return replace(chosen, method=self.name, device=self.device, **defaults)

    @property
    def label(self) -> str:
        """What it is called by itself."""
        if self.kind == "file":
            return labels_of([self.name])[0] or self.name
        if self.kind == "method":
            return f"{self.name} on {self.device.upper()}"
        return {"input": "input", "output": "output"}[self.kind]


INPUT = ViewSource("input")
OUTPUT = ViewSource("output")
REFERENCE_OUTPUT = ViewSource("method", "reference", "cpu")
"""What everything else may be compared with, as `edgeconv compare` does."""


def computed_sources() -> tuple[ViewSource, ...]:
    """Input, output, and the output of every method of the registry, the reference first."""
    methods = [ViewSource("method", entry.name, entry.device) for entry in all_methods()]
    methods.sort(key=lambda source: source != REFERENCE_OUTPUT)
    return (INPUT, OUTPUT, *methods)


def labels(sources: Iterable[ViewSource]) -> dict[ViewSource, str]:
    """What they are called together: files of one name with as much of their folders as tells them apart."""
    every = list(dict.fromkeys(sources))
    alike: dict[str, list[ViewSource]] = {}
    for source in every:
        alike.setdefault(source.label, []).append(source)
    names: dict[ViewSource, str] = {}
    for label, found in alike.items():
        paths = [source.name if source.kind == "file" else label for source in found]
        names |= zip(found, labels_of(paths), strict=True)
    return {source: names[source] for source in every}
