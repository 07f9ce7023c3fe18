"""Tests of widgets are the files `test_qt_*.py`; where Qt is missing they are skipped with the reason, unimported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from problems import random_image
from qt_here import qt_reason

from edgeconv.core.timing import Budget
from edgeconv.io.encoding import write_image


class _WithoutQt(pytest.Module):
    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip(str(qt_reason()), allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if module_path.name.startswith("test_qt_") and qt_reason() is not None:
        return _WithoutQt.from_parent(parent, path=module_path)
    return None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rest before a measurement, and few samples."""
    if qt_reason() is None:
        monkeypatch.setattr("edgeconv.view.render.REST_SECONDS", 0.01)
        monkeypatch.setattr("edgeconv.view.render.BUDGET", Budget(min_samples=1, max_samples=2))


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's settings are never touched."""
    monkeypatch.setenv("EDGECONV_VIEW_SETTINGS", str(tmp_path / "settings.ini"))


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A file with `windows.PIXELS`."""
    write_image(random_image(90, 120, np.uint8), tmp_path / "picture.png")
    return tmp_path / "picture.png"
