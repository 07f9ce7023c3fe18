"""Marks and shared fixtures."""

from __future__ import annotations

import os
from collections import Counter

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped, in three lines at most: the two most frequent reasons, and how many there are besides."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    if not reasons:
        return
    terminalreporter.section("skipped")
    for reason, count in reasons.most_common(2):
        terminalreporter.line(f"{count:,}: {' '.join(reason.split())}")
    rest = reasons.total() - sum(count for _, count in reasons.most_common(2))
    if rest:
        terminalreporter.line(f"{rest:,}: {len(reasons) - 2} other reasons, which -rs lists")
