"""The processor time of each test file, its children's with it: to read, at the end of a run; no test judges it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

KEY, SHOWN = "processor_seconds", 15


def _seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system + _of_running(os.getpid())


def _of_running(parent: int) -> float:
    """Of children that have not ended, such as the process with the sanitizers; 0 where the system has no /proc."""
    found = 0.0
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):  # ended meanwhile
            for child in map(int, listed.read_text().split()):
                times = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:15]
                found += sum(map(int, times)) / os.sysconf("SC_CLK_TCK") + _of_running(child)
    return found


class ProcessorTime:
    """Notes in a test's last report what it took, as a property that xdist hands on; adds up where all reports are."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """What a test takes with its fixtures; a child counts in the test in which it has ended."""
        self.started = _seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        """At the end of all, when the test has taken back whatever it replaced."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((KEY, max(0.0, _seconds() - self.started)))
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The files with the most, and the sum of all."""
        spent: Counter[str] = Counter()
        for reports in terminalreporter.stats.values():
            for report in reports:
                for key, value in getattr(report, "user_properties", ()):
                    if key == KEY:
                        spent[report.nodeid.partition("::")[0]] += value
        if spent:
            terminalreporter.section("processor time")
            for name, seconds in spent.most_common(SHOWN):
                terminalreporter.line(f"{seconds:7.1f} s {name}")
            terminalreporter.line(f"{sum(spent.values()):7.1f} s {len(spent)} files")
