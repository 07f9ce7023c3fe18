"""Text that is shown literally: a file name may look like Qt's markup."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QLabel

FIGURE_SIZE = 1.7
"""Of the usual letters."""


def plain_label(role: str = "", text: str = "") -> QLabel:
    """A label; `role` is `heading`, `dim`, `figure` (large) or nothing."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role == "dim":
        label.setForegroundRole(QPalette.ColorRole.PlaceholderText)
    elif role:
        font = label.font()
        font.setBold(True)
        if role == "figure":
            font.setPointSizeF(FIGURE_SIZE * font.pointSizeF())
        label.setFont(font)
    return label


def tip(text: str) -> str:
    """What a tool tip, which finds out by itself whether it is told markup, shows as `text`."""
    lines = escape(text).replace("\n", "<br>")
    return f"<p>{lines}</p>" if "<" in text else text
