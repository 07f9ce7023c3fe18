"""Marks and shared fixtures."""

from __future__ import annotations

import os

import pytest
from qt_here import qt_reason

from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.runtime.profile import PLACE_VARIABLE

os.environ[PLACE_VARIABLE] = os.devnull + ".none"
"""No test depends on what `edgeconv tune` has measured for the person who runs it."""

pytest_plugins = () if qt_reason() else ("pytestqt.plugin",)
"""Loaded here and not by itself (see addopts): on a machine without Qt it would stop every test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU, with the reason why there is none."""
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            reason = cuda_unavailable_reason()
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
