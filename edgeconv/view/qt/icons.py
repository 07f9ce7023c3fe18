"""Icons as lines on a grid of 24, drawn in the text's colour at any density."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

SIDE, DENSITY = 20, 2
"""Logical pixels, and how many physical ones each is drawn with; Qt scales them to the screen's."""

PATHS: dict[str, str] = {
    "open": '<path d="M3 18V6h6l2 2h9v3"/><path d="M3 18l3-7h15l-3 7z"/>',
    "save": '<path d="M12 4v11"/><path d="M7.5 10.5L12 15l4.5-4.5"/><path d="M4 16v4h16v-4"/>',
    "copy-command": '<path d="M4 7l5 5-5 5"/><path d="M12 18h8"/>',
    "single": '<rect x="4" y="5" width="16" height="14" rx="1.5"/>',
    "split": '<rect x="4" y="5" width="16" height="14" rx="1.5"/><path d="M12 3v18"/>'
    '<path d="M4 12h8v7H4z" fill="FILL" stroke="none"/><path d="M4 5h8v8H4z" fill="FILL" stroke="none"/>',
    "side": '<rect x="3" y="5" width="8" height="14" rx="1.5"/><rect x="13" y="5" width="8" height="14" rx="1.5"/>',
    "difference": '<rect x="4" y="5" width="16" height="14" rx="1.5"/><path d="M12 8v5M9.5 10.5h5M9.5 16h5"/>',
    "swap": '<path d="M4 9h15M15.5 5.5L19 9l-3.5 3.5"/><path d="M20 16H5M8.5 12.5L5 16l3.5 3.5"/>',
    "fit": '<path d="M4 9V5h4M16 5h4v4M20 15v4h-4M8 19H4v-4"/><rect x="8" y="9" width="8" height="6" rx="1"/>',
    "actual": '<path d="M6 7v10M4.5 8.5L6 7"/><path d="M18 7v10M16.5 8.5L18 7"/><path d="M12 10v.6M12 14v.6"/>',
    "zoom-in": '<circle cx="10.5" cy="10.5" r="6"/><path d="M15 15l5 5M10.5 8v5M8 10.5h5"/>',
    "zoom-out": '<circle cx="10.5" cy="10.5" r="6"/><path d="M15 15l5 5M8 10.5h5"/>',
    "undo": '<path d="M8 5L4 9l4 4"/><path d="M4 9h10a5.5 5.5 0 0 1 0 11H9"/>',
    "redo": '<path d="M16 5l4 4-4 4"/><path d="M20 9H10a5.5 5.5 0 0 0 0 11h5"/>',
}
"""`FILL` is the text's colour, half as strong."""

FRAME = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><g fill="none" stroke="{colour}" '
    'stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">{paths}</g></svg>'
)


def icon(name: str, colour: QColor) -> QIcon:
    """An icon in the colour of the text; Qt draws it fainter while its command is disabled."""
    paths = PATHS[name].replace('fill="FILL"', f'fill="{colour.name()}" fill-opacity="0.5"')
    pixmap = QPixmap(QSize(SIDE, SIDE) * DENSITY)
    pixmap.setDevicePixelRatio(DENSITY)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    svg = FRAME.format(colour=colour.name(), paths=paths)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, QRectF(0, 0, SIDE, SIDE))
    painter.end()
    return QIcon(pixmap)
