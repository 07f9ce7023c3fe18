"""Text that is shown literally: a file name may look like Qt's markup."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel


def plain_label(role: str = "", text: str = "") -> QLabel:
    """A label; `role` is that of the style sheet."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        label.setProperty("role", role)
    return label


def tip(text: str) -> str:
    """What a tool tip, which finds out by itself whether it is told markup, shows as `text`."""
    lines = escape(text).replace("\n", "<br>")
    return f"<p>{lines}</p>" if "<" in text else text
