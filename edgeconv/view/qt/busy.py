"""What lasts longer than a moment: what it is, for how long already, and a way to stop it."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from edgeconv.core.timing import Clock
from edgeconv.view.qt.plain_text import plain_label

SHOWN_AFTER_SECONDS, COUNTED_AFTER_SECONDS = 0.25, 1
"""What is over sooner is not announced, as a message that flickers cannot be read."""
LOOK_MILLISECONDS = 100
"""Between two looks at the clock."""
HEIGHT = 18
"""No higher than a line of the status bar, which would grow."""


class BusyIndicator(QWidget):
    """Hidden unless what has begun lasts; `stop` is the button."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.what = ""
        """What is being done; empty while nothing is."""
        self.text = plain_label("dim")
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("Stop what is computed (Esc)")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        self.setFixedHeight(HEIGHT)
        row.addWidget(self.text)
        row.addWidget(self.stop)
        self._clock, self._since = clock, clock()
        self._looks = QTimer(self)
        self._looks.setInterval(LOOK_MILLISECONDS)
        self._looks.timeout.connect(self._look)
        self.hide()

    def begin(self, what: str) -> None:
        """Something else begins."""
        self._since = self._clock()
        self.hide()
        self.go_on(what)

    def go_on(self, what: str) -> None:
        """It goes on with `what`; it ends with nothing."""
        self.what = what
        if what:
            self._looks.start()
            self._look()
        else:
            self._looks.stop()
            self.hide()

    def _look(self) -> None:
        seconds = self._clock() - self._since
        counted = seconds >= COUNTED_AFTER_SECONDS
        self.text.setText(f"{self.what} {int(seconds)} s" if counted else self.what)
        self.stop.setVisible(counted)
        self.setVisible(seconds >= SHOWN_AFTER_SECONDS)
