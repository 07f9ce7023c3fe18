"""Whether widgets can be tested here; they are drawn off the screen."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

from edgeconv.errors import UnavailableError
from edgeconv.view.qt.start import require_qt

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@cache
def qt_reason() -> str | None:
    """Why not, or None."""
    if find_spec("pytestqt") is None:
        return "pytest-qt is not installed (extra dev)"
    try:
        require_qt()
    except UnavailableError as error:
        return str(error)
    return None
