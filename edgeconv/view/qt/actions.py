"""Every command of the window: name, label, keys and icon, in one table; menus and the tool bar are built from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """`keys` are in Qt's portable notation; the first is shown in the menu. Icons have the same names."""

    name: str
    text: str
    keys: tuple[str, ...]
    needs_picture: bool = False

    @property
    def label(self) -> str:
        """The text without what menus add to it."""
        return self.text.replace("&", "").rstrip("…")


COMMANDS: tuple[Command, ...] = (
    Command("open", "&Open…", ("Ctrl+O",)),
    Command("paste", "&Paste picture", ("Ctrl+V",)),
    Command("next", "&Next picture", ("Ctrl+PgDown",), needs_picture=True),
    Command("previous", "Pre&vious picture", ("Ctrl+PgUp",), needs_picture=True),
    Command("reload", "Re&load", ("F5",), needs_picture=True),
    Command("save", "&Save picture and report…", ("Ctrl+S",), needs_picture=True),
    Command("export", "Export page of the &two sides…", ("Ctrl+E",), needs_picture=True),
    Command("quit", "&Quit", ("Ctrl+Q",)),
    Command("undo", "&Undo", ("Ctrl+Z",)),
    Command("redo", "&Redo", ("Ctrl+Shift+Z", "Ctrl+Y")),
    Command("reset", "Reset &parameters", ("Ctrl+R",)),
    Command("load-kernel", "Load &kernel…", ("Ctrl+K",)),
    Command("copy-picture", "&Copy picture", ("Ctrl+C",), needs_picture=True),
    Command("copy-command", "Copy co&mmand line", ("Ctrl+Shift+C",), needs_picture=True),
    Command("single", "&Single", ("1",)),
    Command("split", "S&plit", ("2",)),
    Command("side", "Side &by side", ("3",)),
    Command("difference", "&Difference", ("4",)),
    Command("swap", "S&wap sides", ("Ctrl+Shift+X", "X")),
    Command("bar-left", "Bar to the left", ("[",)),
    Command("bar-right", "Bar to the right", ("]",)),
    Command("zoom-in", "Zoom &in", ("Ctrl++", "+", "Ctrl+=")),
    Command("zoom-out", "Zoom &out", ("Ctrl+-", "-")),
    Command("fit", "&Fit", ("Ctrl+0", "0")),
    Command("actual", "Actual size, &1:1", ("Ctrl+1", "9")),
    Command("focus-picture", "Go to the picture", ("F6",)),
    Command("focus-controls", "Go to the controls", ("F7",)),
    Command("focus-figures", "Go to the figures", ("F8",)),
    Command("panel", "Controls and figures", ("F9",)),
    Command("stop", "S&top what is computed", ("Esc",)),
)

MENUS: tuple[tuple[str, str], ...] = (
    ("&File", "open paste - next previous reload - save export - quit"),
    ("&Edit", "undo redo reset load-kernel - copy-picture copy-command"),
    (
        "&View",
        "single split side difference - swap bar-left bar-right - zoom-in zoom-out fit actual - "
        "panel focus-picture focus-controls focus-figures - stop",
    ),
)
"""`-` is a separator."""

TOOL_BAR = "open save copy-command - undo redo - single split side difference - left swap right gap zoom-out zoom "
TOOL_BAR += "zoom-in fit actual"
"""`left` and `right` are lists of what is shown, `zoom` is the zoom factor between the two buttons."""


def listed_keys() -> list[tuple[str, tuple[str, ...]]]:
    """(label, keys) of every command, for a person."""
    return [(command.label, command.keys) for command in COMMANDS]
