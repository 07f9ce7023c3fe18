"""Checks before Qt is imported: is it installed, can its libraries be loaded, is there a screen? One line where not.

Qt itself terminates the process with a long message where its platform plugin cannot start, so this is tested first:
the plugin is loaded as Qt would load it, and the X server is contacted once.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from importlib import import_module
from pathlib import Path

from edgeconv.core.optional import install
from edgeconv.errors import UnavailableError

NEED = "edgeconv view needs"

PACKAGES = {"libglib-2.0.so.0": "libglib2.0-0", "libgthread-2.0.so.0": "libglib2.0-0"}
"""Debian's and Ubuntu's packages of libraries that are not named by their rule."""


def require_parts(*parts: str) -> None:
    """Raise UnavailableError with what to install where a part of PySide6 cannot be imported.

    Qt's bindings go through `sys.modules` while the first part is loaded, and end the process where another thread
    imports meanwhile: so before any other thread begins.
    """
    try:
        for part in parts:
            import_module(f"PySide6.{part}")
    except ModuleNotFoundError:
        raise UnavailableError(f"{NEED} PySide6: {install('gui')}.") from None
    except ImportError as error:
        raise UnavailableError(f"{NEED} {missing_library(str(error))}.") from None


def require_qt() -> None:
    """Raise UnavailableError with what to install where a window cannot be opened here."""
    require_parts("QtCore", "QtGui", "QtSvg", "QtWidgets")
    if sys.platform == "linux":
        reason = _platform_reason()
        if reason is not None:
            raise UnavailableError(f"{NEED} {reason}.")


def missing_library(loader_words: str) -> str:
    """The dynamic loader's complaint as a library and the package that has it."""
    found = re.search(r"(lib[\w.+-]+\.so[.\d]*): cannot open shared object", loader_words)
    if found is None:
        return f"a Qt that can be loaded: {' '.join(loader_words.split())}"
    library = found[1]
    name, _, version = library.partition(".so.")
    by_rule = f"{name.lower()}{'-' if name[-1].isdigit() else ''}{version}"
    return f"the system library {library}: apt install {PACKAGES.get(library, by_rule)}"


def _platform_reason() -> str | None:
    """Why neither of the screens that the environment names can be used; None where one can, or another was named."""
    named = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if named not in ("", "xcb", "wayland"):
        return None
    reasons = []
    if named == "wayland" or (not named and os.environ.get("WAYLAND_DISPLAY")):
        reasons.append(plugin_reason("wayland"))
    if named == "xcb" or (not named and os.environ.get("DISPLAY")):
        reasons.append(plugin_reason("xcb") or _x_server_reason())
    if not reasons:
        return "a screen: neither DISPLAY nor WAYLAND_DISPLAY is set (over ssh, use ssh -X)"
    return None if None in reasons else reasons[0]


def plugin_reason(platform: str) -> str | None:
    """Why Qt's plugin for a platform cannot be loaded."""
    from PySide6.QtCore import QLibraryInfo

    folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)) / "platforms"
    plugin = folder / f"libq{platform}.so"
    if not plugin.exists():
        return f"Qt's plugin for {platform}, which this PySide6 does not have"
    try:
        ctypes.CDLL(str(plugin))
    except OSError as error:
        return missing_library(str(error))
    return None


def _x_server_reason() -> str | None:
    """Why the X server of DISPLAY does not answer."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError as error:
        return missing_library(str(error))
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = (ctypes.c_void_p,)
    connection = xcb.xcb_connect(None, None)
    refused = xcb.xcb_connection_has_error(connection) != 0
    xcb.xcb_disconnect(connection)
    display = os.environ.get("DISPLAY", "")
    return f"an X server, and none answers at DISPLAY '{display}'" if refused else None
