"""The window's state without a window: pictures, parameters with their past, what is shown, requests and runs.

Every change that needs other pixels creates a new request with a higher generation; results of older ones are not
accepted. Nothing here depends on Qt, threads or pixels.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from edgeconv.core.timing import Clock
from edgeconv.io.read_limits import DEFAULT_RULES, ReadRules
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, REFERENCE_OUTPUT, ViewSource, computed_sources
from edgeconv.view.timeline import Timeline

if TYPE_CHECKING:
    from edgeconv.api.figures import RunFigures

SIDES = (INPUT, OUTPUT)
"""What the two sides show at first."""
MOST_RUNS = 200
MOST_RECENT = 12


@dataclass(frozen=True)
class Mode:
    """A way to look; `sides` are the names of what it shows."""

    name: str
    label: str
    sides: tuple[str, ...]
    """One name: the right side alone is shown."""

    @property
    def needs_both(self) -> bool:
        """Whether it shows two sources."""
        return len(self.sides) > 1


MODES: tuple[Mode, ...] = (
    Mode("single", "Single", ("Show",)),
    Mode("split", "Split", ("Left", "Right")),
    Mode("side", "Side by side", ("Left", "Right")),
    Mode("blink", "Blink", ("First", "Second")),
    Mode("difference", "Difference", ("Reference", "Other")),
)


def find_mode(name: str) -> Mode:
    """The mode of a name; the first where settings hold a word of another version."""
    return next((mode for mode in MODES if mode.name == name), MODES[0])


@dataclass(frozen=True)
class ViewRequest:
    """What the window wants to see: enough to compute it anywhere."""

    generation: int
    picture: str
    parameters: Parameters
    mode: Mode
    left: ViewSource
    right: ViewSource


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
        self._timeline = Timeline(parameters or Parameters(), clock)
        self.pictures: list[str] = []
        self.picture: str | None = None
        self._visited: list[str] = []
        """Pictures of the list in the order in which they were last gone to."""
        self.mode = MODES[0]
        self.left, self.right = SIDES
        self._difference: tuple[ViewSource, ViewSource] | None = None
        """The sides that the difference view began with."""
        self.generation = 0
        self.runs: list[MeasuredRun] = []
        self.recent: list[str] = []

    # --- pictures -----------------------------------------------------------------------------------------------

    def open(self, paths: Iterable[str]) -> bool:
        """Add pictures to the list and go to the first of them."""
        added = self.add(paths)
        return bool(added) and self.go_to(added[0])

    def add(self, paths: Iterable[str]) -> list[str]:
        """Add pictures to the list, each once; returns their full names."""
        added = [os.path.abspath(path) for path in paths]
        self.pictures = list(dict.fromkeys([*self.pictures, *added]))
        return added

    def go_to(self, path: str) -> bool:
        """Make a picture of the list the current one."""
        if path == self.picture:
            return False
        self.picture = path
        self._visited = [*(other for other in self._visited if other != path), path]
        return True

    def step(self, by: int) -> bool:
        """Go to the next (1) or previous (−1) picture of the list, round its ends."""
        if self.picture is None or len(self.pictures) < 2:
            return False
        place = self.pictures.index(self.picture) + by
        return self.go_to(self.pictures[place % len(self.pictures)])

    def forget(self, path: str) -> None:
        """Take a picture that could not be read from the list; whoever showed it shows what was there before."""
        for paths in (self.pictures, self.recent, self._visited):
            if path in paths:
                paths.remove(path)
        if self.picture == path:
            self.picture = None
            for before in [*self.pictures[:1], *self._visited][-1:]:
                self.go_to(before)
        gone = ViewSource("file", path)
        self.left = INPUT if self.left == gone else self.left
        self.right = OUTPUT if self.right == gone else self.right

    def inputs(self) -> list[str]:
        """Every file that is open here, which nothing may replace."""
        kernel_file = self.parameters.kernel_file
        return [*self.pictures, *([] if kernel_file is None else [kernel_file])]

    def remember(self, path: str) -> None:
        """Put a picture that was read at the top of the recent ones."""
        self.recent = [path, *(other for other in self.recent if other != path)][:MOST_RECENT]

    # --- parameters ---------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """Those that hold now."""
        return self._timeline.present

    def edit(self, **changes: Any) -> bool:
        """Change parameters by name; quick changes of the same ones are undone together."""
        return self.set_parameters(replace(self.parameters, **changes), key=",".join(changes))

    def set_parameters(self, parameters: Parameters, key: str | None = None) -> bool:
        """Put all of them in place at once. Raises UsageError, and changes nothing, for words without meaning."""
        parameters.request()
        parameters.options()
        return self._timeline.change(parameters, key)

    def undo(self) -> bool:
        """Take the last change of parameters back."""
        return self._timeline.undo()

    def redo(self) -> bool:
        """Make it again."""
        return self._timeline.redo()

    @property
    def can_undo(self) -> bool:
        """There is a change to take back."""
        return self._timeline.can_undo

    @property
    def can_redo(self) -> bool:
        """There is one to make again."""
        return self._timeline.can_redo

    # --- what is shown ------------------------------------------------------------------------------------------

    def sources(self) -> tuple[ViewSource, ...]:
        """What a side may show: what is computed from the picture, then the other pictures of the list."""
        others = (ViewSource("file", path) for path in self.pictures if path != self.picture)
        return (*computed_sources(), *others)

    def show(self, mode: Mode | None = None, left: ViewSource | None = None, right: ViewSource | None = None) -> bool:
        """Change the mode or a side."""
        before = (self.mode, self.left, self.right)
        if mode is not None and mode.name != self.mode.name:
            self._follow_mode(mode)
        self.mode, self.left, self.right = mode or self.mode, left or self.left, right or self.right
        return before != (self.mode, self.left, self.right)

    def _follow_mode(self, mode: Mode) -> None:
        """A difference begins with what one asks about, and gives way again; what a user has chosen stays.

        That is the second file, if there is one, and else how far the output is from the float64 reference: input
        minus output says nothing.
        """
        if mode.name == "difference" and (self.left, self.right) == SIDES:
            others = [path for path in self.pictures if path != self.picture]
            self._difference = (INPUT, ViewSource("file", others[0])) if others else (REFERENCE_OUTPUT, OUTPUT)
            self.left, self.right = self._difference
        elif mode.name != "difference" and (self.left, self.right) == self._difference:
            self.left, self.right = SIDES

    def swap(self) -> None:
        """Exchange the sides."""
        self.left, self.right = self.right, self.left

    def next_request(self) -> ViewRequest | None:
        """A request for what is to be displayed now, newer than all before; None where no picture is open."""
        self.generation += 1
        return self.request()

    def request(self) -> ViewRequest | None:
        """What is to be displayed now, as in the newest request."""
        if self.picture is None:
            return None
        sides = {"left": self.left, "right": self.right}
        for name, side in sides.items():  # the current picture as a file of the list is the input itself
            if side == ViewSource("file", self.picture):
                sides[name] = INPUT
        return ViewRequest(self.generation, self.picture, self.parameters, self.mode, **sides)

    def abandon(self) -> None:
        """Accept no answer to the newest request any more."""
        self.generation += 1

    def accepts(self, generation: int) -> bool:
        """Whether an answer belongs to the newest request."""
        return generation == self.generation

    # --- runs ---------------------------------------------------------------------------------------------------

    def add_run(self, picture: str, parameters: Parameters, record: RunFigures) -> MeasuredRun:
        """Keep a measured run, the newest last."""
        number = self.runs[-1].number + 1 if self.runs else 1
        run = MeasuredRun(number, picture, parameters, record)
        self.runs = [*self.runs, run][-MOST_RUNS:]
        return run

    def restore(self, run: MeasuredRun) -> bool:
        """Go back to a run's parameters and picture; undo leads back."""
        changed = self._timeline.change(run.parameters)
        return self.open([run.picture]) or changed

    def command(self, rules: ReadRules = DEFAULT_RULES) -> str | None:
        """The command line that computes what `output` shows; None where no picture is open."""
        return None if self.picture is None else self.parameters.command(self.picture, rules)
