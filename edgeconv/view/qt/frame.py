"""The window's widgets, menus and bars and their layout. Their behaviour is in window.py, their state in the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QEvent, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QActionGroup, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QTabWidget,
    QToolBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from edgeconv.core.timing import Clock
from edgeconv.view.qt import actions, icons
from edgeconv.view.qt.busy import BusyIndicator
from edgeconv.view.qt.canvas import Canvas
from edgeconv.view.qt.controls import Controls
from edgeconv.view.qt.history import HistoryPanel
from edgeconv.view.qt.memory import Memory
from edgeconv.view.qt.plain_text import plain_label
from edgeconv.view.qt.rows import DifferencePanel
from edgeconv.view.qt.speed import SpeedPanel
from edgeconv.view.state import MODES

FIRST_SIZE = QSize(1320, 860)
MOST_OF_SCREEN = 0.95
"""The rest is for the frame that the window manager draws."""
PANEL_WIDTH = 350
LEAST_PANEL_WIDTH = 220
CONTROLS_HEIGHT = 545
"""Fits all of the usual controls without scrolling."""
LEAST_SOURCE_WIDTH, SOURCE_WIDTH = 68, 150
"""Narrow enough for every command to fit in a window of 900 pixels."""
ZOOM_WIDTH = 52
BUSY_AFTER_MILLISECONDS = 150
"""Quicker computations are not announced, as a message that flickers cannot be read."""
NOTICE_MILLISECONDS = 8000


class Frame(QMainWindow):
    """All widgets; `does` maps each command of actions.py to what it does."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.setWindowTitle("edgeconv")
        self.setAcceptDrops(True)
        self.busy = BusyIndicator(clock)
        self.canvas = Canvas()
        self.controls = Controls()
        self.speed, self.difference, self.history = SpeedPanel(), DifferencePanel(), HistoryPanel()
        self.actions_by_name: dict[str, QAction] = {}
        self._busy_text = ""

    def build(self, does: Mapping[str, Callable[[], Any]]) -> None:
        """Put it all together."""
        self._make_actions(does)
        self._draw_icons()
        self._make_menus()
        self._make_tool_bar()
        self._make_status_bar()
        self._make_message_bar()
        self._lay_out()

    def complain(self, message: str) -> None:
        """One line above the picture, until something else is asked for."""
        self.message_text.setText(message)
        self.message.show()

    def notice(self, message: str) -> None:
        """One line in the status bar, for a while."""
        self.statusBar().showMessage(message, NOTICE_MILLISECONDS)

    def show_busy(self, what: str) -> None:
        """Show what is being done, if it takes long enough to be read; nothing for an empty text."""
        self._busy_text = what
        self.actions_by_name["stop"].setEnabled(bool(what))
        if not what:
            self._busy.stop()
            self.busy_label.setText("")
            self.busy.end()
        elif self.busy_label.text():
            self.busy_label.setText(what)
        else:
            self._busy.start()
        if what and not self.busy.running:
            self.busy.begin()
        self.busy.show_share(None)

    def show_writing(self, files: int) -> None:
        """Show how many saves and exports are under way."""
        self.writing_label.setText(
            "" if not files else "writing …" if files == 1 else f"writing, {files - 1} more to come …"
        )

    def changeEvent(self, event: QEvent) -> None:
        """Icons have the colour of the text, which follows the system between light and dark."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.actions_by_name:
            self._draw_icons()

    def _draw_icons(self) -> None:
        colour = self.palette().color(QPalette.ColorRole.ButtonText)
        for command in actions.COMMANDS:
            if command.icon is not None:
                self.actions_by_name[command.name].setIcon(icons.icon(command.icon, colour))

    def restore_places(self, memory: Memory) -> None:
        """Restore size, position and splits of the last session, or use defaults."""
        geometry = memory.load_bytes("geometry")
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(FIRST_SIZE.boundedTo(self.screen().availableSize() * MOST_OF_SCREEN))
        self.splitter.setSizes([FIRST_SIZE.width() - PANEL_WIDTH, PANEL_WIDTH])
        self.side.setSizes([CONTROLS_HEIGHT, FIRST_SIZE.height() - CONTROLS_HEIGHT])
        for name, splitter in (("splitter", self.splitter), ("side", self.side)):
            state = memory.load_bytes(name)
            if state is not None:
                splitter.restoreState(state)
        self.show_panel(memory.load("panel") is not False)

    def show_panel(self, shown: bool) -> None:
        """Show or hide controls and figures; without them the picture has all of the window."""
        self.side.setVisible(shown)
        self.actions_by_name["panel"].setChecked(shown)

    def keep_places(self, memory: Memory) -> None:
        """Store them."""
        memory.keep_bytes("geometry", self.saveGeometry())
        memory.keep_bytes("splitter", self.splitter.saveState())
        memory.keep_bytes("side", self.side.saveState())
        memory.keep("panel", self.side.isVisibleTo(self))

    def _make_actions(self, does: Mapping[str, Callable[[], Any]]) -> None:
        for command in actions.COMMANDS:
            action = QAction(command.text, self)
            action.setShortcuts([QKeySequence(keys) for keys in command.keys])
            action.setCheckable(command.checkable)
            words = command.text.replace("&", "").rstrip("…")
            action.setToolTip(f"{words} ({command.keys[0]})" if command.keys else words)
            action.setIconVisibleInMenu(not command.checkable)  # there a mark says what is checked, in any colours
            action.triggered.connect(lambda checked=False, do=does[command.name]: do())
            self.addAction(action)
            self.actions_by_name[command.name] = action
        group = QActionGroup(self)
        for mode in MODES:
            group.addAction(self.actions_by_name[mode.name])

    def _make_menus(self) -> None:
        self.recent_menu = QMenu("Open &recent", self)
        for title, names in actions.MENUS:
            menu = self.menuBar().addMenu(title)
            for name in names.split():
                if name == "-":
                    menu.addSeparator()
                elif name == "recent":
                    menu.addMenu(self.recent_menu)
                else:
                    menu.addAction(self.actions_by_name[name])

    def _make_tool_bar(self) -> None:
        bar = QToolBar("Tools")
        bar.setObjectName("tools")
        bar.setMovable(False)
        bar.setIconSize(QSize(icons.SIDE, icons.SIDE))
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.left_label, self.right_label = plain_label("dim"), plain_label("dim")
        self.left_box, self.right_box = QComboBox(), QComboBox()
        for label, box in ((self.left_label, self.left_box), (self.right_label, self.right_box)):
            label.setContentsMargins(6, 0, 4, 0)
            label.setBuddy(box)
            box.setMinimumWidth(LEAST_SOURCE_WIDTH)
            box.setMaximumWidth(SOURCE_WIDTH)
            box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.zoom_label = plain_label()
        self.zoom_label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.zoom_label.setMinimumWidth(ZOOM_WIDTH)
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._add_to(bar, actions.TOOL_BAR_START)
        bar.addSeparator()
        self.left_parts = [bar.addWidget(self.left_label), bar.addWidget(self.left_box)]
        bar.addAction(self.actions_by_name["swap"])
        for widget in (self.right_label, self.right_box, gap):
            bar.addWidget(widget)
        self._add_to(bar, actions.TOOL_BAR_END)
        for button in bar.findChildren(QToolButton):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.addToolBar(bar)

    def _add_to(self, bar: QToolBar, names: str) -> None:
        for name in names.split():
            if name == "-":
                bar.addSeparator()
            elif name == "zoom":
                bar.addWidget(self.zoom_label)
            else:
                bar.addAction(self.actions_by_name[name])

    def _make_message_bar(self) -> None:
        self.message = QFrame()
        self.message.setAutoFillBackground(True)
        self.message.setBackgroundRole(QPalette.ColorRole.ToolTipBase)
        self.message_text = plain_label()
        self.message_text.setWordWrap(True)
        self.message_text.setForegroundRole(QPalette.ColorRole.ToolTipText)
        self.message_text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.message_text.setAccessibleName("Message")
        close = QToolButton()
        close.setText("✕")
        close.setAutoRaise(True)
        close.setAccessibleName("Dismiss the message")
        close.clicked.connect(self.message.hide)
        row = QHBoxLayout(self.message)
        row.setContentsMargins(12, 6, 6, 6)
        row.addWidget(self.message_text, 1)
        row.addWidget(close)
        self.message.hide()

    def _make_status_bar(self) -> None:
        self.picture_label, self.busy_label, self.values_label = plain_label("dim"), plain_label("dim"), plain_label()
        self.writing_label = plain_label("dim")
        self.values_label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        bar = self.statusBar()
        bar.setSizeGripEnabled(False)
        bar.setContentsMargins(10, 0, 10, 0)
        bar.addWidget(self.picture_label)
        bar.addWidget(self.busy_label)
        bar.addWidget(self.busy)
        bar.addWidget(self.writing_label)
        bar.addPermanentWidget(self.values_label)
        self._busy = QTimer(self)
        self._busy.setSingleShot(True)
        self._busy.setInterval(BUSY_AFTER_MILLISECONDS)
        self._busy.timeout.connect(lambda: self.busy_label.setText(self._busy_text))

    def _lay_out(self) -> None:
        scroll = QScrollArea()
        scroll.setWidget(self.controls)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        for title, panel in (
            ("Speed", self.speed),
            ("Difference", self.difference),
            ("History", self.history),
        ):
            self.tabs.addTab(panel, title)
        self.side = QSplitter(Qt.Orientation.Vertical)
        self.side.addWidget(scroll)
        self.side.addWidget(self.tabs)
        self.side.setMinimumWidth(LEAST_PANEL_WIDTH)
        self.side.setStretchFactor(1, 1)  # where there is little room, the figures give way, not the controls
        self.tabs.setMinimumHeight(self.tabs.tabBar().sizeHint().height())
        middle = QWidget()
        column = QVBoxLayout(middle)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.canvas, 1)
        over = QVBoxLayout(self.canvas.viewport())  # a message lies over the picture, and does not move it
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.message)
        over.addStretch(1)
        self.splitter = QSplitter()
        self.splitter.addWidget(middle)
        self.splitter.addWidget(self.side)
        self.splitter.setStretchFactor(0, 1)
        for splitter in (self.side, self.splitter):
            splitter.setHandleWidth(1)
            splitter.setChildrenCollapsible(False)
        self.setCentralWidget(self.splitter)
