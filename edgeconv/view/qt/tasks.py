"""Work that nothing cancels: saving and exporting. Each has a thread; its end is on the interface thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from edgeconv.errors import EdgeconvError, one_line_with_class

After = Callable[[], None]
"""What is left to do on the interface thread."""


class Tasks(QObject):
    """`complained` delivers the message of a task that failed."""

    complained = Signal(str)
    changed = Signal(int)
    """How many tasks write files now, or wait to."""
    _called = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running: list[threading.Thread] = []
        self._writing = 0
        self._called.connect(lambda after: after())

    def write(self, work: Callable[[], After]) -> None:
        """The same as `start`, for what ends in a file: counted as long as it lasts."""

        def counted() -> After:
            try:
                return work()
            finally:
                self.call(partial(self._count, -1))

        self._count(1)
        self.start(counted)

    def _count(self, by: int) -> None:
        self._writing += by
        self.changed.emit(self._writing)

    def start(self, work: Callable[[], After]) -> None:
        """Call `work` on a new thread, then what it returns on this one."""
        thread = threading.Thread(target=self._do, args=(work,), name="edgeconv-task")
        self._running.append(thread)
        thread.start()

    def call(self, after: After) -> None:
        """From any thread: do `after` on the interface thread."""
        self._called.emit(after)

    @property
    def busy(self) -> bool:
        """Whether a task is running, or its end was not delivered yet."""
        return bool(self._running)

    def join(self) -> None:
        """Wait until all files are written."""
        for thread in list(self._running):
            thread.join()

    def _do(self, work: Callable[[], After]) -> None:
        try:
            self.call(work())
        except EdgeconvError as error:
            self.complained.emit(str(error))
        except Exception as error:  # an unexpected one of any library must not close the window
            self.complained.emit(f"Unexpected error ({one_line_with_class(error)}).")
        self.call(partial(self._running.remove, threading.current_thread()))
