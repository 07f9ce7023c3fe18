"""Text that is shown literally: a file name may look like Qt's markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QLabel, QTextBrowser


def plain_label(role: str = "", text: str = "") -> QLabel:
    """A label; `role` is `heading`, `dim` or nothing."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if role == "dim":
        label.setForegroundRole(QPalette.ColorRole.PlaceholderText)
    elif role:
        font = label.font()
        font.setBold(True)
        label.setFont(font)
    return label


def tip(text: str) -> str:
    """What a tool tip, which finds out by itself whether it is told markup, shows as `text`."""
    return f"<p>{_literal(text)}</p>" if "<" in text else text


def _literal(text: str) -> str:
    return escape(text).replace("\n", "<br>")


class FiguresPanel(QTextBrowser):
    """A head and a line, then names and values in two columns; all of it may be selected and copied."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[str, str] = {}
        """The rows."""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(12)

    def show_rows(self, rows: Sequence[tuple[str, str]], head: str = "", line: str = "") -> None:
        """Show others."""
        self.shown = dict(rows)
        place = self.verticalScrollBar().value()
        cells = "".join(
            f"<tr><td style='padding-right: 12px'>{_literal(name)}</td><td>{_literal(value)}</td></tr>"
            for name, value in rows
        )
        head = f"<p style='font-size: x-large'><b>{_literal(head)}</b></p>" if head else ""
        line = f"<p>{_literal(line)}</p>" if line else ""
        self.setHtml(f"{head}{line}<table>{cells}</table>")
        self.verticalScrollBar().setValue(place)
