"""Every command of the window: name, label, keys and icon, in one table; menus and the tool bar are built from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """`keys` are in Qt's portable notation; the first is shown in the menu."""

    name: str
    text: str
    keys: tuple[str, ...] = ()
    icon: str | None = None
    checkable: bool = False


COMMANDS: tuple[Command, ...] = (
    Command("open", "&Open…", ("Ctrl+O",), "open"),
    Command("paste", "&Paste picture", ("Ctrl+V",)),
    Command("next", "&Next picture", ("Ctrl+PgDown",)),
    Command("previous", "Pre&vious picture", ("Ctrl+PgUp",)),
    Command("reload", "Re&load", ("F5",)),
    Command("save", "&Save picture and report…", ("Ctrl+S",), "save"),
    Command("export-diff", "Export page of the two &sides…", ("Ctrl+E",)),
    Command("export-methods", "Export page of every &method…", ("Ctrl+Shift+E",)),
    Command("quit", "&Quit", ("Ctrl+Q",)),
    Command("undo", "&Undo", ("Ctrl+Z",), "undo"),
    Command("redo", "&Redo", ("Ctrl+Shift+Z", "Ctrl+Y"), "redo"),
    Command("reset", "Reset &parameters", ("Ctrl+R",)),
    Command("load-kernel", "Load &kernel…", ("Ctrl+K",)),
    Command("copy-picture", "&Copy picture", ("Ctrl+C",)),
    Command("copy-command", "Copy co&mmand line", ("Ctrl+Shift+C",), "copy"),
    Command("single", "&Single", ("1",), "single", True),
    Command("split", "S&plit", ("2",), "split", True),
    Command("side", "Side &by side", ("3",), "side", True),
    Command("blink", "B&link", ("4",), "blink", True),
    Command("difference", "&Difference", ("5",), "difference", True),
    Command("swap", "S&wap sides", ("Ctrl+Shift+X", "X"), "swap"),
    Command("bar-left", "Bar to the le&ft", ("[",)),
    Command("bar-right", "Bar to the ri&ght", ("]",)),
    Command("zoom-in", "Zoom &in", ("Ctrl++", "+", "Ctrl+="), "zoom-in"),
    Command("zoom-out", "Zoom &out", ("Ctrl+-", "-"), "zoom-out"),
    Command("fit", "&Fit", ("Ctrl+0", "0"), "fit"),
    Command("actual", "Actual size, &1:1", ("Ctrl+1", "9"), "actual"),
    Command("focus-picture", "Go to the pict&ure", ("F6",)),
    Command("focus-controls", "Go to the c&ontrols", ("F7",)),
    Command("focus-figures", "Go to the fi&gures", ("F8",)),
    Command("panel", "Controls and figures", ("F9",), None, True),
    Command("stop", "&Stop what is computed", ("Esc",)),
    Command("keys", "&Keys", ("F1",)),
)

MENUS: tuple[tuple[str, str], ...] = (
    ("&File", "open recent paste - next previous reload - save export-diff export-methods - quit"),
    ("&Edit", "undo redo reset load-kernel - copy-picture copy-command"),
    (
        "&View",
        "single split side blink difference - swap bar-left bar-right - zoom-in zoom-out fit actual - "
        "panel focus-picture focus-controls focus-figures - stop",
    ),
    ("&Help", "keys"),
)
"""`-` is a separator; `recent` is a sub-menu."""

TOOL_BAR_START = "open save copy-command - undo redo - single split side blink difference"
TOOL_BAR_END = "zoom-out zoom zoom-in fit actual"
"""`zoom` is the zoom factor between the two buttons."""


def find(name: str) -> Command:
    """The command of a name."""
    return next(command for command in COMMANDS if command.name == name)


def listed_keys() -> list[tuple[str, tuple[str, ...]]]:
    """(label, keys) of every command that has a key, for a person."""
    return [(command.text.replace("&", "").rstrip("…"), command.keys) for command in COMMANDS if command.keys]
