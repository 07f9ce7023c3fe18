"""The window's widgets, menus and bars and their layout. Their behaviour is in window.py, their state in the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QMainWindow,
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
from edgeconv.view.qt.plain_text import FiguresPanel, plain_label
from edgeconv.view.qt.runs import HistoryPanel
from edgeconv.view.state import MODES

FIRST_SIZE = QSize(1320, 860)
MAX_OF_SCREEN = 0.95
"""The rest is for the frame that the window manager draws."""
PANEL_WIDTH, MIN_PANEL_WIDTH = 350, 220
CONTROLS_HEIGHT = 480
"""Fits all of the usual controls without scrolling."""
MIN_SOURCE_WIDTH, SOURCE_WIDTH = 68, 180
"""Narrow enough for every command to fit in a window of 900 pixels."""
ZOOM_WIDTH = 52
NOTICE_MILLISECONDS = 8000


class Frame(QMainWindow):
    """All widgets; `does` maps each command of actions.py to what it does."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.setAcceptDrops(True)
        self.busy = BusyIndicator(clock)
        self.canvas = Canvas()
        self.controls = Controls()
        self.speed, self.difference, self.history = FiguresPanel(), FiguresPanel(), HistoryPanel()
        self.actions_by_name: dict[str, QAction] = {}

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
        """One line above the picture, until something else is asked for, or Esc."""
        self.message.setText(message)
        self.message.show()

    def notice(self, message: str) -> None:
        """One line in the status bar, for a while."""
        self.statusBar().showMessage(message, NOTICE_MILLISECONDS)

    def changeEvent(self, event: QEvent) -> None:
        """Icons have the colour of the text, which follows the system between light and dark."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self.actions_by_name:
            self._draw_icons()

    def _draw_icons(self) -> None:
        colour = self.palette().color(QPalette.ColorRole.ButtonText)
        for command in actions.COMMANDS:
            if command.name in icons.PATHS:
                self.actions_by_name[command.name].setIcon(icons.icon(command.name, colour))

    def allow(self, has_picture: bool, **allowed: bool) -> None:
        """Enable what needs a picture where there is one, and of the rest what is `allowed`, by name."""
        for command in actions.COMMANDS:
            wanted = allowed.get(command.name, has_picture or not command.needs_picture)
            self.actions_by_name[command.name].setEnabled(wanted)

    def show_panel(self, shown: bool) -> None:
        """Show or hide controls and figures; without them the picture has all of the window."""
        self.side.setVisible(shown)
        self.actions_by_name["panel"].setChecked(shown)

    def _make_actions(self, does: Mapping[str, Callable[[], Any]]) -> None:
        group = QActionGroup(self)
        for command in actions.COMMANDS:
            action = QAction(command.text, self)
            action.setShortcuts([QKeySequence(keys) for keys in command.keys])
            action.setToolTip(f"{command.label} ({command.keys[0]})")
            action.setCheckable(command.name in MODES or command.name == "panel")
            action.setIconVisibleInMenu(not action.isCheckable())  # there a mark says what is checked, in any colours
            action.triggered.connect(lambda checked=False, do=does[command.name]: do())
            if command.name in MODES:
                group.addAction(action)
            self.addAction(action)
            self.actions_by_name[command.name] = action

    def _make_menus(self) -> None:
        for title, names in actions.MENUS:
            menu = self.menuBar().addMenu(title)
            for name in names.split():
                menu.addSeparator() if name == "-" else menu.addAction(self.actions_by_name[name])

    def _make_tool_bar(self) -> None:
        bar = QToolBar("Tools")
        bar.setObjectName("tools")
        bar.setMovable(False)
        bar.setIconSize(QSize(icons.SIDE, icons.SIDE))
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.left_box, self.right_box = _source_list("Left side"), _source_list("Right side")
        self.zoom_label = plain_label()
        self.zoom_label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.zoom_label.setMinimumWidth(ZOOM_WIDTH)
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        widgets = {"left": self.left_box, "right": self.right_box, "gap": gap, "zoom": self.zoom_label}
        placed: dict[str, QAction] = {}
        for name in actions.TOOL_BAR.split():
            if name == "-":
                bar.addSeparator()
            elif name in widgets:
                placed[name] = bar.addWidget(widgets[name])
            else:
                bar.addAction(self.actions_by_name[name])
        self.left_part = placed["left"]
        for button in bar.findChildren(QToolButton):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.addToolBar(bar)

    def _make_message_bar(self) -> None:
        self.message = plain_label()
        self.message.setAutoFillBackground(True)
        self.message.setBackgroundRole(QPalette.ColorRole.ToolTipBase)
        self.message.setForegroundRole(QPalette.ColorRole.ToolTipText)
        self.message.setMargin(8)
        self.message.setWordWrap(True)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.message.setAccessibleName("Message")
        self.message.hide()

    def _make_status_bar(self) -> None:
        self.picture_label, self.task_label, self.values_label = (
            plain_label("dim"),
            plain_label("dim"),
            plain_label(),
        )
        self.values_label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        bar = self.statusBar()
        bar.setSizeGripEnabled(False)
        bar.setContentsMargins(10, 0, 10, 0)
        for widget in (self.picture_label, self.busy, self.task_label):
            bar.addWidget(widget)
        bar.addPermanentWidget(self.values_label)

    def _lay_out(self) -> None:
        scroll = QScrollArea()
        scroll.setWidget(self.controls)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.speed, "Speed")
        self.tabs.addTab(self.difference, "Difference")
        self.tabs.addTab(self.history, "History")
        self.tabs.setMinimumHeight(self.tabs.tabBar().sizeHint().height())
        self.side = QSplitter(Qt.Orientation.Vertical)
        self.side.addWidget(scroll)
        self.side.addWidget(self.tabs)
        self.side.setMinimumWidth(MIN_PANEL_WIDTH)
        self.side.setStretchFactor(1, 1)  # where there is little room, the figures give way, not the controls
        over = QVBoxLayout(self.canvas.viewport())  # a message lies over the picture, and does not move it
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self.message)
        over.addStretch(1)
        self.splitter = QSplitter()
        self.splitter.addWidget(self.canvas)
        self.splitter.addWidget(self.side)
        self.splitter.setStretchFactor(0, 1)
        for splitter in (self.side, self.splitter):
            splitter.setHandleWidth(1)
            splitter.setChildrenCollapsible(False)
        self.resize(FIRST_SIZE.boundedTo(self.screen().availableSize() * MAX_OF_SCREEN))
        self.splitter.setSizes([FIRST_SIZE.width() - PANEL_WIDTH, PANEL_WIDTH])
        self.side.setSizes([CONTROLS_HEIGHT, FIRST_SIZE.height() - CONTROLS_HEIGHT])
        self.setCentralWidget(self.splitter)


def _source_list(name: str) -> QComboBox:
    """The list of what a side may show."""
    box = QComboBox()
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setMinimumWidth(MIN_SOURCE_WIDTH)
    box.setMaximumWidth(SOURCE_WIDTH)
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
    return box
