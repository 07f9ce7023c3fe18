"""The steps of a run, the same for a picture that is filtered at once (whole.py) and by tiles (tiled/filtering.py).

    open ── choose ── prepare ── filter ── check ── write ── report ── into place

Nothing has its final name before the end: a run that is stopped, whose input is damaged, or whose report cannot be
written leaves nothing behind, and one that is killed leaves no picture without its report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack

from edgeconv.run.outputs import OutputFiles, Replaceable
from edgeconv.run.report import RunReport


class Run(ABC):
    """One job, from its input to its report."""

    def run(self) -> RunReport:
        """Take all steps; returns the report. Raises EdgeconvError; then nothing is written."""
        with ExitStack() as resources:
            self.open(resources)
            outputs = self.choose()
            outputs.refuse_to_replace()
            outputs.remove_left_overs()
            self.prepare(resources)
            self.filter()
            self.check()
            replaceable = outputs.replaceable()
            put_picture = self.write(replaceable, resources)
            record = self.report()
            outputs.publish(record, replaceable, put_picture)
        return record

    @abstractmethod
    def open(self, resources: ExitStack) -> None:
        """Open the input; what must be closed at the end goes into `resources`."""

    @abstractmethod
    def choose(self) -> OutputFiles:
        """Settle problem, method, device and the names of the outputs."""

    @abstractmethod
    def prepare(self, resources: ExitStack) -> None:
        """Set up what filters."""

    @abstractmethod
    def filter(self) -> None:
        """Compute the output."""

    @abstractmethod
    def check(self) -> None:
        """Measure, and compare with the oracle or a second computation."""

    @abstractmethod
    def write(self, replaceable: Replaceable, resources: ExitStack) -> Callable[[], None]:
        """Complete the picture under a temporary name; what is returned moves it into place."""

    @abstractmethod
    def report(self) -> RunReport:
        """The record of the run."""
