"""The window's state without a window: pictures, parameters with their past, what is shown, requests and runs.

Every change that needs other pixels creates a new request with a higher generation; results of older ones are not
accepted. Nothing here depends on Qt, threads or pixels.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from edgeconv.core.timing import Clock
from edgeconv.difference.inputs import labels_of
from edgeconv.methods import all_methods, find
from edgeconv.methods.options import special_options
from edgeconv.view.parameters import Parameters
from edgeconv.view.timeline import Timeline

if TYPE_CHECKING:
    from edgeconv.api.figures import RunFigures

MAX_RUNS = 200


@dataclass(frozen=True)
class ViewSource:
    """`input`: the picture. `output`: by the method that is chosen. `method`: by `name` on `device`. `file`: `name`."""

    kind: Literal["input", "output", "method", "file"]
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
        return f"{self.name} on {self.device.upper()}" if self.kind == "method" else self.kind


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
    names: dict[ViewSource, str] = {}
    for label in {source.label for source in every}:
        alike = [source for source in every if source.label == label]
        names |= zip(
            alike, labels_of([source.name if source.kind == "file" else label for source in alike]), strict=True
        )
    return {source: names[source] for source in every}


MODES = ("single", "split", "side", "difference")
"""Ways to look; the first shows the right side alone, the others both."""


@dataclass(frozen=True)
class ViewRequest:
    """What the window wants to see: enough to compute it anywhere."""

    generation: int
    picture: str
    parameters: Parameters
    mode: str
    left: ViewSource
    right: ViewSource

    @property
    def shown(self) -> tuple[ViewSource, ...]:
        """The sides that the mode shows."""
        return (self.right,) if self.mode == "single" else (self.left, self.right)

    def wants_too(self, older: ViewRequest, source: ViewSource) -> bool:
        """Whether it shows what an older request computes for `source`, perhaps with another threshold."""
        same = replace(self.parameters, threshold=None) == replace(older.parameters, threshold=None)
        return same and self.picture == older.picture and source in self.shown


@dataclass(frozen=True)
class MeasuredRun:
    """A measured output: `record` is the report of `edgeconv run` without its files."""

    number: int
    picture: str
    parameters: Parameters
    record: RunFigures

    @property
    def method_label(self) -> str:
        """Method and device that ran."""
        return f"{self.record.method.name} on {self.record.device.kind.upper()}"


class Model:
    """The complete state. Methods that change what is displayed return whether anything changed."""

    def __init__(self, parameters: Parameters | None = None, clock: Clock = time.monotonic) -> None:
        self.timeline = Timeline(parameters or Parameters(), clock)
        self.pictures: list[str] = []
        self.picture: str | None = None
        self._before: str | None = None
        """The picture that was current before."""
        self.mode = MODES[0]
        self.left, self.right = INPUT, OUTPUT
        self._difference: tuple[ViewSource, ViewSource] | None = None
        """The sides that the difference view began with."""
        self.generation = 0
        self.runs: list[MeasuredRun] = []

    # --- pictures -----------------------------------------------------------------------------------------------

    def open(self, paths: Iterable[str]) -> bool:
        """Add pictures to the list, each once, and go to the first of them."""
        added = [os.path.abspath(path) for path in paths]
        self.pictures = list(dict.fromkeys([*self.pictures, *added]))
        return bool(added) and self.go_to(added[0])

    def go_to(self, path: str) -> bool:
        """Make a picture of the list the current one."""
        if path == self.picture:
            return False
        self.picture, self._before = path, self.picture
        return True

    def step(self, by: int) -> bool:
        """Go to the next (1) or previous (−1) picture of the list, round its ends."""
        if self.picture is None or len(self.pictures) < 2:
            return False
        place = self.pictures.index(self.picture) + by
        return self.go_to(self.pictures[place % len(self.pictures)])

    def forget(self, path: str) -> None:
        """Take a picture that could not be read from the list; whoever showed it shows what was there before."""
        self.pictures = [other for other in self.pictures if other != path]
        if self.picture == path:
            self.picture = self._before if self._before in self.pictures else next(iter(self.pictures), None)
        gone = ViewSource("file", path)
        self.left = INPUT if self.left == gone else self.left
        self.right = OUTPUT if self.right == gone else self.right

    # --- parameters and what is shown ---------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """Those that hold now."""
        return self.timeline.present

    def edit(self, **changes: Any) -> bool:
        """Change parameters by name; quick changes of the same ones are undone together."""
        return self.set_parameters(replace(self.parameters, **changes), key=",".join(changes))

    def set_parameters(self, parameters: Parameters, key: str | None = None) -> bool:
        """Put all of them in place at once. Raises UsageError, and changes nothing, for words without meaning."""
        parameters.request()
        parameters.options()
        return self.timeline.change(parameters, key)

    def sources(self) -> tuple[ViewSource, ...]:
        """What a side may show: what is computed from the picture, then the other pictures of the list."""
        others = (ViewSource("file", path) for path in self.pictures if path != self.picture)
        return (*computed_sources(), *others)

    def show(self, mode: str | None = None, left: ViewSource | None = None, right: ViewSource | None = None) -> bool:
        """Change the mode or a side."""
        before = (self.mode, self.left, self.right)
        if mode is not None and mode != self.mode:
            self._follow_mode(mode)
        self.mode, self.left, self.right = mode or self.mode, left or self.left, right or self.right
        return before != (self.mode, self.left, self.right)

    def _follow_mode(self, mode: str) -> None:
        """A difference begins with what one asks about, and gives way again; what a user has chosen stays.

        That is the second file, if there is one, and else how far the output is from the float64 reference: input
        minus output says nothing.
        """
        if mode == "difference" and (self.left, self.right) == (INPUT, OUTPUT):
            others = [path for path in self.pictures if path != self.picture]
            self._difference = (INPUT, ViewSource("file", others[0])) if others else (REFERENCE_OUTPUT, OUTPUT)
            self.left, self.right = self._difference
        elif mode != "difference" and (self.left, self.right) == self._difference:
            self.left, self.right = INPUT, OUTPUT

    def next_request(self) -> ViewRequest | None:
        """A request for what is to be displayed now, newer than all before; None where no picture is open."""
        self.generation += 1
        return self.request()

    def request(self) -> ViewRequest | None:
        """What is to be displayed now, as in the newest request."""
        if self.picture is None:
            return None
        current = ViewSource("file", self.picture)  # as a file of the list it is the input itself
        left, right = (INPUT if side == current else side for side in (self.left, self.right))
        return ViewRequest(self.generation, self.picture, self.parameters, self.mode, left, right)

    # --- runs ---------------------------------------------------------------------------------------------------

    def add_run(self, picture: str, parameters: Parameters, record: RunFigures) -> MeasuredRun:
        """The measured run of a record, which is kept once, the newest last."""
        known = next((run for run in self.runs if run.record is record), None)
        if known is not None:
            return known
        run = MeasuredRun(self.runs[-1].number + 1 if self.runs else 1, picture, parameters, record)
        self.runs = [*self.runs, run][-MAX_RUNS:]
        return run

    def restore(self, run: MeasuredRun) -> bool:
        """Go back to a run's parameters and picture; undo leads back."""
        changed = self.timeline.change(run.parameters)
        return self.open([run.picture]) or changed
