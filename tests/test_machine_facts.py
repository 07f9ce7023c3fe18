"""What is read of a machine: its caches, and whether this process rests; by hand."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata

import pytest

from edgeconv.bench import turns
from edgeconv.hardware.cpu import caches
from edgeconv.hardware.versions import LIBRARIES, installed_versions


@pytest.mark.parametrize(
    ("sizes", "largest"),
    [
        ([], None),
        (["48K\n", "64K\n", "2048K\n", "32768K\n"], 32768 * 1024),
        (["32K\n", None, "many\n", "64M\n"], 32 * 1024),
        ([None, "32K\n", "1024K\n"], 1024 * 1024),
        (["\n"], None),
    ],
)
def test_the_largest_cache_counts(
    monkeypatch: pytest.MonkeyPatch, sizes: list[str | None], largest: int | None
) -> None:
    """Linux lists that for data, that for instructions, and what both share."""
    files = {f"/sys/devices/system/cpu/cpu0/cache/index{number}/size": size for number, size in enumerate(sizes)}
    monkeypatch.setattr(caches, "read_system_file", files.get)
    assert caches.last_level_cache_bytes() == largest


class PlayedClocks:
    """Wall time passes by sleeping alone; CPU time by as many threads as `busy` says at a time."""

    def __init__(self, busy) -> None:
        self.busy, self.now, self.spent = busy, 0.0, 0.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.spent

    def sleep(self, seconds: float) -> None:
        self.spent += seconds * self.busy(self.now)
        self.now += seconds


@pytest.mark.parametrize(
    ("busy", "seconds"),
    [
        (lambda now: 0.0, turns.QUIET_LOOK_SECONDS),
        (lambda now: 0.1, turns.QUIET_LOOK_SECONDS),
        (lambda now: 16.0 if now < 0.05 else 0.0, 0.05 + turns.QUIET_LOOK_SECONDS),
        (lambda now: 1.0, turns.MAX_QUIET_SECONDS),
    ],
)
def test_waiting_ends_when_the_threads_rest_or_when_they_never_do(
    monkeypatch: pytest.MonkeyPatch, busy: Callable[[float], float], seconds: float
) -> None:
    clocks = PlayedClocks(busy)
    for name in ("perf_counter", "process_time", "sleep"):
        monkeypatch.setattr(turns, name, getattr(clocks, name))
    turns.wait_until_quiet()
    assert clocks.now == pytest.approx(seconds, abs=turns.QUIET_LOOK_SECONDS * 1.5)


def test_versions_are_those_that_the_packages_say_of_themselves() -> None:
    found = installed_versions()
    assert found.pop("python") == platform.python_version()
    assert found == {name: metadata.version(name) for name in LIBRARIES if name in found}
    assert {"numpy", "opencv-python-headless"} <= found.keys()
    for name in set(LIBRARIES) - found.keys():
        with pytest.raises(metadata.PackageNotFoundError):
            metadata.version(name)
