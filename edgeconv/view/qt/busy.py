"""What takes longer than a second: for how long already, how far it is where that is known, and a way to stop it."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QSizePolicy, QWidget

from edgeconv.core.timing import Clock
from edgeconv.view.qt.plain_text import plain_label

SHOWN_AFTER_SECONDS = 1
LOOK_MILLISECONDS = 250
"""Between two looks at the clock."""
BAR_WIDTH, BAR_HEIGHT = 120, 8
STOP_HEIGHT = 18
"""No higher than a line of the status bar, which would grow."""
PER_CENT = 100


class BusyIndicator(QWidget):
    """Hidden unless what has begun lasts; `stop` is the button."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__()
        self.seconds = plain_label("dim")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setFixedSize(BAR_WIDTH, BAR_HEIGHT)
        self.bar.setAccessibleName("Progress")
        self.stop = QPushButton("Stop")
        self.stop.setFixedHeight(STOP_HEIGHT)
        self.stop.setToolTip("Stop what is computed (Esc)")
        self.stop.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for widget in (self.bar, self.seconds, self.stop):
            row.addWidget(widget)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._clock, self._since = clock, clock()
        self._looks = QTimer(self)
        self._looks.setInterval(LOOK_MILLISECONDS)
        self._looks.timeout.connect(self._look)
        self._share: float | None = None
        self.hide()

    @property
    def running(self) -> bool:
        """Whether something has begun and not ended."""
        return self._looks.isActive()

    def begin(self) -> None:
        """Something begins."""
        self._since = self._clock()
        self._looks.start()

    def show_share(self, share: float | None) -> None:
        """How much is done, 0 to 1; None where that is not known."""
        self._share = share
        if self.isVisible():
            self._look()

    def end(self) -> None:
        """It is over."""
        self._looks.stop()
        self.hide()

    def _look(self) -> None:
        seconds = self._clock() - self._since
        if seconds < SHOWN_AFTER_SECONDS:
            return
        known = self._share is not None
        self.bar.setRange(0, PER_CENT if known else 0)  # 0 to 0 moves to and fro
        if self._share is not None:
            self.bar.setValue(round(PER_CENT * self._share))
        share = f", {self.bar.value()} %" if known else ""
        self.seconds.setText(f"{int(seconds)} s{share}")
        self.show()
