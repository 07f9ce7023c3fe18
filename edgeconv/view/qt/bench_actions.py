"""“Bench this” in the window: starts, follows, stops, and hands its record to the panel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from edgeconv.errors import EdgeconvError
from edgeconv.view.compute import Workshop
from edgeconv.view.latest_request import Token
from edgeconv.view.qt.bench_panel import BenchPanel
from edgeconv.view.qt.tasks import After, Tasks
from edgeconv.view.state import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeconv.bench.record import BenchRecord
    from edgeconv.view.picture_bench import SpeedCurve


class BenchTask:
    """At most one at a time; `record` is that of the last one that finished."""

    def __init__(self, panel: BenchPanel, model: Model, workshop: Workshop, tasks: Tasks) -> None:
        self._panel, self._model, self._workshop, self._tasks = panel, model, workshop, tasks
        self._token: Token | None = None
        self.record: BenchRecord | None = None
        panel.started.connect(self.start)
        panel.stopped.connect(self.stop)

    def start(self) -> None:
        """GFLOPS over size for the current picture and parameters."""
        path, parameters = self._model.picture, self._model.parameters
        if path is None or self._token is not None:
            return
        token = self._token = Token()
        self._panel.show_running(True)

        def progress(share: float, note: str) -> None:
            self._tasks.call(lambda: self._panel.show_progress(share, note))

        def work() -> After:
            from edgeconv.view import picture_bench  # the whole bench: not before somebody wants one

            try:
                todo = picture_bench.plan(path, self._workshop.decode(path), parameters)
                with self._workshop.measuring:
                    record = picture_bench.measure(todo, token, progress)
            except EdgeconvError as error:
                reason = str(error)
                return lambda: self._end(reason)
            except BaseException:
                self._tasks.call(lambda: self._end(""))
                raise
            title = f"{os.path.basename(path)}: {parameters.summary()}"
            return lambda: self._end(title, record, picture_bench.series(record))

        self._tasks.start(work)

    def stop(self) -> None:
        """Measure no further size."""
        if self._token is not None:
            self._token.cancel()

    def _end(self, note: str, record: BenchRecord | None = None, lines: Sequence[SpeedCurve] = ()) -> None:
        self._token = None
        self._panel.show_running(False)
        if record is None:
            self._panel.note.setText(note)
        else:
            self.record = record
            self._panel.show_lines(lines, note)
