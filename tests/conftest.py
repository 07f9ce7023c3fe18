"""Marks and shared fixtures."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from browser import Browser, chromium
from jitter import Jitter
from qt_here import qt_reason

from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.threads import usable_threads
from edgeconv.runtime.devices.cpu import CpuDevice

pytest_plugins = () if qt_reason() else ("pytestqt.plugin",)
"""Loaded here and not by itself (see addopts): on a machine without Qt it would stop every test."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests of a process."""
    if chromium() is None:
        pytest.skip("there is no Chromium here")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels compiled for the CPU are kept, and the compiler's header: one folder for all processes of a run.

    EDGECONV_TEST_LIBRARIES names one for several runs of the same files (.ci/run).
    """
    base = tmp_path_factory.getbasetemp()
    own = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "libraries"
    folder = Path(os.environ.get("EDGECONV_TEST_LIBRARIES", own))
    folder.mkdir(exist_ok=True)
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are processors: some tests wait, for another process or for a time to pass."""
    return usable_threads() + 1


class _NeedsGpu(pytest.Item):
    """Stands for all cases of a test that needs a GPU, where there is none: thousands that would only be skipped."""

    def runtest(self) -> None:
        """See pytest.Item; never called, as the mark skips it."""

    def reportinfo(self) -> tuple[Path, int, str]:
        """See pytest.Item."""
        return self.path, 0, self.name


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> pytest.Item | None:
    """A test function with the mark is not expanded into its cases where they cannot run."""
    marks = [mark.name for mark in (*getattr(obj, "pytestmark", ()), *collector.iter_markers())]
    if "gpu" not in marks or not name.startswith("test_") or cuda_unavailable_reason() is None:
        return None
    item = _NeedsGpu.from_parent(collector, name=name)
    for mark in getattr(obj, "pytestmark", ()):
        item.add_marker(getattr(pytest.mark, mark.name)(*mark.args, **mark.kwargs))
    return item


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU, with the reason why there is none."""
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            reason = cuda_unavailable_reason()
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def _checked_only(descriptor: int) -> None:
    os.fstat(descriptor)


os.fsync = _checked_only
"""In the tests' own processes no write waits for the disk, 4 ms each time: what is tested is which calls are made, and
that each leaves whole files behind, not that they outlive a loss of power."""

CpuDevice.roof = cache(CpuDevice.roof)  # type: ignore[method-assign]
"""The machine's roof is measured once in a process of the tests, in place of once in a run: 0.4 s each time."""

MANY_MODULES = 50

gc.disable()  # while modules are imported and cases are listed, next to nothing becomes garbage


_frozen_modules = 0


def pytest_collection_finish() -> None:
    """What there is by now stays: no collection of garbage looks at it again, Python's own or a benchmark's."""
    _freeze()
    gc.enable()


def pytest_runtest_logfinish() -> None:
    """The same where tests have imported large libraries since then."""
    if len(sys.modules) > _frozen_modules + MANY_MODULES:
        gc.collect()
        _freeze()


def _freeze() -> None:
    global _frozen_modules
    gc.freeze()
    _frozen_modules = len(sys.modules)


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--jitter SEED`: see jitter.py."""
    parser.addoption("--jitter", type=int, metavar="SEED", help="Delay threads, children and waits by drawn times.")


def pytest_configure(config: pytest.Config) -> None:
    """Delay, where that is asked for."""
    if config.getoption("--jitter") is not None:
        config.pluginmanager.register(Jitter(config.getoption("--jitter")))
