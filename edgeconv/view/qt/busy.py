"""What lasts longer than a moment: what it is, for how long already, how far it is, and a way to stop it."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QWidget

from edgeconv.core.timing import Clock
from edgeconv.view.qt.plain_text import plain_label

SHOWN_AFTER_SECONDS, COUNTED_AFTER_SECONDS = 0.25, 1
"""What is over sooner is not announced, as a message that flickers cannot be read; nor is a bar that comes and goes."""
LOOK_MILLISECONDS = 100
"""Between two looks at the clock."""
BAR_WIDTH, BAR_HEIGHT = 120, 8
HEIGHT = 18
"""No higher than a line of the status bar, which would grow."""
PER_CENT = 100


class BusyIndicator(QWidget):
    """Hidden unless what has begun lasts; `stop` is the button."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.what = ""
        """What is being done; empty while nothing is."""
        self.text = plain_label("dim")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedSize(BAR_WIDTH, BAR_HEIGHT)
        self.bar.setAccessibleName("Progress")
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("Stop what is computed (Esc)")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        self.setFixedHeight(HEIGHT)
        for widget in (self.text, self.bar, self.stop):
            row.addWidget(widget)
        self._clock, self._since = clock, clock()
        self._looks = QTimer(self)
        self._looks.setInterval(LOOK_MILLISECONDS)
        self._looks.timeout.connect(self._look)
        self._share: float | None = None
        self.hide()

    def begin(self, what: str) -> None:
        """Something else begins."""
        self._since = self._clock()
        self.hide()
        self.go_on(what)

    def go_on(self, what: str, share: float | None = None) -> None:
        """It goes on with `what`, of which a share (0 to 1) is done, or nobody knows how much; it ends with nothing."""
        self.what, self._share = what, share
        if what:
            self._looks.start()
            self._look()
        else:
            self._looks.stop()
            self.hide()

    def _look(self) -> None:
        seconds = self._clock() - self._since
        counted = seconds >= COUNTED_AFTER_SECONDS
        known = self._share is not None
        self.bar.setRange(0, PER_CENT if known else 0)  # 0 to 0 moves to and fro
        self.bar.setValue(round(PER_CENT * (self._share or 0)))
        done = f", {self.bar.value()} %" if known else ""
        self.text.setText(f"{self.what} {int(seconds)} s{done}" if counted else self.what)
        self.bar.setVisible(counted)
        self.stop.setVisible(counted)
        self.setVisible(seconds >= SHOWN_AFTER_SECONDS)
