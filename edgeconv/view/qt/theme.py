"""Light and dark. Where the style is Qt's own (Fusion, on a plain Linux), these are the colours; else the system's."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

SCHEMES: dict[str, Qt.ColorScheme] = {
    "system": Qt.ColorScheme.Unknown,
    "light": Qt.ColorScheme.Light,
    "dark": Qt.ColorScheme.Dark,
}


@dataclass(frozen=True)
class Colours:
    """Colours of custom-drawn elements, for one scheme."""

    window: str
    base: str
    text: str
    dim: str
    line: str
    button: str
    accent: str
    on_accent: str
    canvas: str
    warning: str
    warning_text: str
    curves: tuple[str, ...]
    """Of plots: Okabe and Ito's palette, which works on light and dark and for colour-blind people."""


CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F52A0", "#A6761D")

LIGHT = Colours(
    window="#f3f3f4",
    base="#ffffff",
    text="#1d1e21",
    dim="#6b6e75",
    line="#d5d6da",
    button="#fbfbfc",
    accent="#2563c9",
    on_accent="#ffffff",
    canvas="#dcdde0",
    warning="#fbe6c8",
    warning_text="#6b3d00",
    curves=CURVES,
)
DARK = Colours(
    window="#27282c",
    base="#1e1f22",
    text="#e6e6e9",
    dim="#9a9ca3",
    line="#3d3f45",
    button="#34363b",
    accent="#5b9bff",
    on_accent="#0d1524",
    canvas="#17181a",
    warning="#4a3413",
    warning_text="#ffdca3",
    curves=("#56A9E0", *CURVES[1:]),
)

STYLE_SHEET = """
QToolBar {{ border: 0; border-bottom: 1px solid {line}; padding: 4px 6px; spacing: 2px; background: {window}; }}
QToolBar QToolButton {{ padding: 4px; border: 1px solid transparent; border-radius: 5px; }}
QToolBar QToolButton:hover {{ background: {button}; border-color: {line}; }}
QToolBar QToolButton:checked {{ background: {accent}; color: {on_accent}; }}
QToolBar QToolButton#qt_toolbar_ext_button {{ padding: 0; min-width: 14px; }}
QToolBar QToolButton:focus {{ border-color: {accent}; }}
QToolBar::separator {{ background: {line}; width: 1px; margin: 4px 6px; }}
QStatusBar {{ border-top: 1px solid {line}; }}
QStatusBar::item {{ border: 0; }}
QTabWidget::pane {{ border: 0; border-top: 1px solid {line}; }}
QTabBar::tab {{ padding: 6px 10px; border: 0; border-bottom: 2px solid transparent; color: {dim}; }}
QTabBar::tab:selected {{ color: {text}; border-bottom-color: {accent}; }}
QTabBar::tab:focus {{ color: {accent}; }}
QScrollArea, QWidget[role="panel"] {{ border: 0; background: {window}; }}
QTableView {{ border: 0; background: {base}; alternate-background-color: {window}; gridline-color: {line}; }}
QTableView::item {{ padding: 0 4px; border: 0; }}
QHeaderView::section {{ border: 0; border-bottom: 1px solid {line}; padding: 3px 4px; background: {window}; }}
QHeaderView::section {{ color: {dim}; }}
QScrollBar:vertical {{ border: 0; background: transparent; width: 10px; margin: 2px; }}
QScrollBar::handle:vertical {{ background: {line}; border-radius: 3px; min-height: 24px; }}
QScrollBar::handle:vertical:hover {{ background: {dim}; }}
QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: transparent; }}
QSplitter::handle {{ background: {line}; }}
QLabel[role="heading"] {{ color: {dim}; font-weight: 600; }}
QLabel[role="dim"] {{ color: {dim}; }}
QLabel[role="figure"] {{ font-size: 17pt; font-weight: 600; }}
QLineEdit[wrong="true"] {{ border: 1px solid #c7362b; border-radius: 3px; }}
QFrame#message {{ background: {warning}; }}
QFrame#message QLabel {{ color: {warning_text}; }}
"""


def is_dark() -> bool:
    """Whether the application shows light text on dark now."""
    palette = QApplication.palette()
    return (
        palette.color(QPalette.ColorRole.WindowText).lightness() > palette.color(QPalette.ColorRole.Window).lightness()
    )


def colours() -> Colours:
    """Those of the scheme that holds now."""
    return DARK if is_dark() else LIGHT


def apply(scheme: str) -> None:
    """Make the whole application `light`, `dark` or as the `system` is."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    hints = app.styleHints()
    wanted = SCHEMES.get(scheme, Qt.ColorScheme.Unknown)
    hints.setColorScheme(wanted)
    if _is_fusion(app):
        dark = (wanted if wanted != Qt.ColorScheme.Unknown else hints.colorScheme()) == Qt.ColorScheme.Dark
        app.setPalette(_palette(DARK if dark else LIGHT))
    chosen = colours()
    sheet = STYLE_SHEET.format_map(vars(chosen))
    if app.styleSheet() != sheet:  # 60 ms for each open window
        app.setStyleSheet(sheet)


def _is_fusion(app: QApplication) -> bool:
    """Whether the style is Qt's own; once there is a style sheet, Qt names it no more, so that is kept."""
    if app.property("plain style") is None:
        app.setProperty("plain style", app.style().objectName())
    return str(app.property("plain style")) == "fusion"


def _palette(chosen: Colours) -> QPalette:
    role = QPalette.ColorRole
    palette = QPalette()
    for place, colour in {
        role.Window: chosen.window,
        role.WindowText: chosen.text,
        role.Base: chosen.base,
        role.AlternateBase: chosen.window,
        role.Text: chosen.text,
        role.Button: chosen.button,
        role.ButtonText: chosen.text,
        role.ToolTipBase: chosen.base,
        role.ToolTipText: chosen.text,
        role.PlaceholderText: chosen.dim,
        role.Highlight: chosen.accent,
        role.HighlightedText: chosen.on_accent,
        role.Accent: chosen.accent,
        role.Link: chosen.accent,
        role.Light: chosen.button,
        role.Midlight: chosen.button,
        role.Mid: chosen.line,
        role.Dark: chosen.line,
    }.items():
        palette.setColor(place, QColor(colour))
    for place in (role.Text, role.WindowText, role.ButtonText):
        faded = QColor(chosen.dim)
        faded.setAlphaF(0.55)
        palette.setColor(QPalette.ColorGroup.Disabled, place, faded)
    return palette
