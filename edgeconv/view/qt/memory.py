"""Settings that are stored between sessions: geometry of the window, controls, mode, recent pictures."""

from __future__ import annotations

import json
import os
from typing import Any

from PySide6.QtCore import QByteArray, QSettings

PLACE_VARIABLE = "EDGECONV_VIEW_SETTINGS"
"""The environment variable that names another file (INI) to keep it in; tests never touch the user's."""


class Memory:
    """The system's usual place for settings, or the file that `PLACE_VARIABLE` names."""

    def __init__(self) -> None:
        place = os.environ.get(PLACE_VARIABLE)
        self._settings = (
            QSettings(place, QSettings.Format.IniFormat) if place else QSettings("edgeconv", "edgeconv view")
        )

    def load(self, name: str) -> Any:
        """A value of JSON, or None where nothing (or nothing readable) was kept."""
        try:
            return json.loads(str(self._settings.value(name, "null")))
        except ValueError:
            return None

    def keep(self, name: str, value: Any) -> None:
        """Keep a value of JSON."""
        self._settings.setValue(name, json.dumps(value))

    def load_bytes(self, name: str) -> QByteArray | None:
        """What Qt says of a window's or splitter's state, or None."""
        text = self.load(name)
        return QByteArray.fromBase64(text.encode()) if isinstance(text, str) else None

    def keep_bytes(self, name: str, state: QByteArray) -> None:
        """Keep such a state."""
        self.keep(name, bytes(state.toBase64().data()).decode())

    def write(self) -> None:
        """Put it on the disk now."""
        self._settings.sync()
