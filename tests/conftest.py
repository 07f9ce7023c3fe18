"""Marks and shared fixtures."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import pytest
from browser import Browser, chromium
from caches import clear_caches
from hypothesis import HealthCheck, settings
from jitter import MAX_SECONDS_A_TEST, Jitter
from meet import wait_until
from optional import OTHERS, absences
from processor_time import ProcessorTime
from qt_here import qt_reason
from selection import part_of

from edgeconv.hardware.cpu.device import CpuDevice
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.threads import usable_threads

pytest_plugins = () if qt_reason() else ("pytestqt.plugin",)
"""Loaded here and not by itself (see addopts): on a machine without Qt it would stop every test."""

os.environ["TZ"] = "UTC"
"""What is shown in local time is the same everywhere."""

settings.register_profile(
    "edgeconv", derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("edgeconv")
"""The same cases in every run and checkout, however slow the machine: to search for others is the fuzzer's work."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests of a process."""
    if chromium() is None:
        pytest.skip("there is no Chromium here")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """The folder that most tests of a batch begin with."""
    from batch_folders import draw_photos  # imports what most tests do without

    return draw_photos(tmp_path / "photos")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a batch of them puts its outputs."""
    return tmp_path / "edges"


UNUSED_DAYS = 30


@pytest.fixture(scope="session")
def libraries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels compiled for the CPU are kept, by a hash of their source (host_cuda/fake_cupy.py).

    It is in pytest's cache, so that a second run compiles only what has changed; EDGECONV_TEST_LIBRARIES names another.
    """
    named, cache = os.environ.get("EDGECONV_TEST_LIBRARIES"), getattr(request.config, "cache", None)
    if named is None and cache is None:
        return tmp_path_factory.mktemp("libraries")
    folder = cache.mkdir("libraries") if named is None else Path(named)
    folder.mkdir(exist_ok=True)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for library in folder.rglob("*.*"):
            if library.stat().st_mtime < time.time() - UNUSED_DAYS * 86_400:
                library.unlink(missing_ok=True)
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


@pytest.fixture(autouse=True)
def _whole_gpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """What needs much of a GPU is not held to its process's share of the memory."""
    if request.node.get_closest_marker("gpu_alone") is None:
        yield
        return
    import cupy

    pool = cupy.get_default_memory_pool()
    share = pool.get_limit()
    pool.set_limit(fraction=1.0)
    yield
    pool.free_all_blocks()
    pool.set_limit(size=share)


def _at_work() -> set[threading.Thread]:
    """The package's own threads that keep the process from ending; libraries keep some for the whole process."""
    return {each for each in threading.enumerate() if not each.daemon and each.name.startswith("edgeconv")}


def _opened_below(folder: Path) -> set[str]:
    """Files of tests that this process has open, where the system tells."""
    found = set()
    for entry in os.scandir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with suppress(OSError):  # closed meanwhile
            found.add(os.readlink(entry.path))
    return {path for path in found if path.startswith(f"{folder}/")}


@pytest.fixture(autouse=True, scope="module")
def _one_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A test file begins with no cache filled by another, and leaves no thread at work and no file open."""
    clear_caches()
    folder, threads = tmp_path_factory.getbasetemp(), _at_work()
    files = _opened_below(folder)
    yield
    gc.collect()
    _freeze()
    wait_until(lambda: _at_work() <= threads)
    assert _opened_below(folder) <= files


def pytest_addoption(parser: pytest.Parser) -> None:
    """See the help of each."""
    parser.addoption("--complete", action="store_true", help="fail where a test was skipped for what is not here")
    parser.addoption("--jitter", metavar="SEED[:SECONDS]", help="Delay threads, children and waits by drawn times.")
    parser.addoption("--part", metavar="I/N", help="of the selected tests this part alone, by files: 1/2, 2/2")


def pytest_configure(config: pytest.Config) -> None:
    """Count processor time (processor_time.py); delay where that is asked for (jitter.py); keep machine code apart."""
    config.pluginmanager.register(ProcessorTime())
    if getattr(config, "cache", None) is not None:  # of all processes of this run and of later ones
        with suppress(OSError):  # a checkout that may not be written
            os.environ.setdefault("EDGECONV_CACHE", str(config.cache.mkdir("machine") / "code"))
    if config.getoption("--jitter") is not None:
        seed, _, seconds = config.getoption("--jitter").partition(":")
        config.pluginmanager.register(Jitter(int(seed), float(seconds or MAX_SECONDS_A_TEST)))


def pytest_itemcollected(item: pytest.Item) -> None:
    """What needs much of a GPU runs in one process, one after the other, with `--dist loadgroup`."""
    if item.get_closest_marker("gpu_alone") is not None:
        item.add_marker(pytest.mark.xdist_group("gpu_alone"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other parts; skip what needs a GPU, with the reason why there is none."""
    if config.getoption("--part"):
        kept = part_of([item.nodeid for item in items], config.getoption("--part"))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            reason = cuda_unavailable_reason()
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


if (processes := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))) > 1:
    os.environ.setdefault("CUPY_GPU_MEMORY_LIMIT", f"{100 / processes}%")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
"""Each process of the tests has its share of a GPU's memory: CuPy's pool asks for no more, and JAX takes none ahead."""


@pytest.fixture(scope="module", autouse=True)
def _gpu_memory_is_given_back() -> Iterator[None]:
    """After each file: else the pool of each process would keep the most that one of its tests had."""
    yield
    if "cupy" in sys.modules and cuda_unavailable_reason() is None:
        gc.collect()
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()
        sys.modules["cupy"].get_default_pinned_memory_pool().free_all_blocks()


def _checked_only(descriptor: int) -> None:
    os.fstat(descriptor)


os.fsync = _checked_only
"""In the tests' own processes no write waits for the disk, 4 ms each time: what is tested is which calls are made, and
that each leaves whole files behind, not that they outlive a loss of power."""

_fma_rate = cache(partial(CpuDevice.fma_rate, CpuDevice()))
CpuDevice.fma_rate = lambda device: _fma_rate()  # type: ignore[method-assign]
"""The machine's rate of multiply-adds is measured once in a process of the tests, in place of once in a run."""

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


def _skipped(reporter: pytest.TerminalReporter) -> dict[str, int]:
    return absences(report.longrepr[2] for report in reporter.getreports("skipped"))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What is missing here, and how many tests were skipped for it; one may stand for all cases (`_NeedsGpu`)."""
    missing = _skipped(terminalreporter)
    if missing:
        terminalreporter.section("skipped")
    for name, count in sorted(missing.items(), key=lambda each: (each[0] == OTHERS, -each[1])):
        terminalreporter.line(f"{count:,}: {name if name == OTHERS else f'{name} is not here'}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --complete an absence is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    asked = session.config.getoption("--complete") and reporter is not None and not session.exitstatus
    if asked and set(_skipped(reporter)) - {OTHERS}:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
