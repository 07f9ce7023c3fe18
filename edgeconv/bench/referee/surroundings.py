"""What a candidate may have replaced or left changed in this process: put back, and noticed.

    clocks       functions of `time`, and of CUDA's events      replaced: disqualified
    the bench    what measures and checks                       replaced: disqualified
    settings     affinity, garbage collection, NumPy's and      put back, and noted in the row
                 PyTorch's defaults, …

What is right is what stood there when this module was imported, before any method of another package. The device's own
clock is read beside a second one, whose time has to agree.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from statistics import median
from time import sleep
from typing import Any

import numpy as np

from edgeconv.bench.referee.faults import FaultError
from edgeconv.core import timing
from edgeconv.hardware.process import share_at_rest
from edgeconv.methods import reference
from edgeconv.runtime import check
from edgeconv.runtime.devices import cpu
from edgeconv.runtime.devices.base import Device
from edgeconv.runtime.devices.cpu import CpuDevice

CLOCKS = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time", "sleep")
CLOCKS_MAY_DIFFER = 0.05
CLOCKS_MAY_DIFFER_SECONDS = 10e-6
"""A sample by two clocks, one read around the other, may differ by that share and so much more, and three quarters of a
series may differ by anything: on a busy machine the thread is interrupted between both readings now and then."""

LOOK_SECONDS = 0.02
LIBRARIES_SPIN_SECONDS = 0.3
"""OpenMP's threads wait at work for up to 0.2 s after their last."""
REST = 0.02
"""Share of a core below which a process rests."""

_RIGHT: tuple[tuple[Any, str, Any], ...] = tuple(
    (owner, name, getattr(owner, name))
    for owner, names in (
        (time, (*CLOCKS, *(name for name in ("clock_gettime", "clock_gettime_ns") if hasattr(time, name)))),
        (CpuDevice, ("time_once", "floor", "synchronize", "_flush")),
        (cpu, ("_settle",)),
        (timing, ("summarize", "percentile", "Sampler")),
        (timing.Sampler, ("_take", "series")),
        (check, ("check", "Check", "store")),
        (reference, ("values", "responses")),
        (np, ("array_equal",)),
    )
    for name in names
)
"""Who has them, under which name, and what they are."""


@cache
def _right_of_gpus() -> tuple[tuple[Any, str, Any], ...]:
    """The same of what times a GPU, as it stands when it is first asked for."""
    module = import_module("edgeconv.runtime.devices.cuda")
    owners = ((module.CudaDevice, ("time_once", "synchronize", "_flush")), (module._Flush, ("run", "_overwrite")))
    return tuple((owner, name, getattr(owner, name)) for owner, names in owners for name in names)


def expect_nothing_replaced(on_gpu: bool) -> None:
    """Put back the functions that were replaced, and raise FaultError that names them."""
    functions = (*_RIGHT, *_right_of_gpus()) if on_gpu else _RIGHT
    replaced = [(owner, name, right) for owner, name, right in functions if getattr(owner, name, None) is not right]
    for owner, name, right in replaced:
        setattr(owner, name, right)
    if replaced:
        names = ", ".join(f"{owner.__name__}.{name}" for owner, name, _ in replaced)
        clocks = any(
            owner is time or (isinstance(owner, type) and issubclass(owner, Device)) for owner, _, _ in replaced
        )
        raise FaultError("changed the clock" if clocks else "changed the bench", names)


def expect_clocks_agree(firsts: Sequence[float], seconds: Sequence[float]) -> None:
    """Samples by the device's clock beside those by a second one; raises FaultError."""
    if not firsts or len(firsts) != len(seconds):
        return
    off = [abs(a - b) - CLOCKS_MAY_DIFFER * b - CLOCKS_MAY_DIFFER_SECONDS for a, b in zip(firsts, seconds, strict=True)]
    if sorted(off)[len(off) // 4] > 0:
        first, second = median(firsts), median(seconds)
        raise FaultError("changed the clock", f"{first * 1e6:.4g} µs, by a second clock {second * 1e6:.4g} µs")


@dataclass(frozen=True)
class Setting:
    """One thing that a process has one of."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], Any]


def _loaded(module: str) -> Any:
    return sys.modules.get(module)


def _torch_dtype() -> Any:
    torch = _loaded("torch")
    return None if torch is None else torch.get_default_dtype()


def _affinity() -> Any:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


SETTINGS: tuple[Setting, ...] = (
    Setting("affinity of the process", _affinity, lambda cores: os.sched_setaffinity(0, cores)),
    Setting("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting("switch interval of threads", sys.getswitchinterval, sys.setswitchinterval),
    Setting("NumPy's error state", np.geterr, lambda state: np.seterr(**state)),
    Setting("PyTorch's default type", _torch_dtype, lambda kind: _loaded("torch").set_default_dtype(kind)),
)


class Surroundings:
    """The settings before a candidate is set up, and whether the process rested."""

    accused = False
    """Whether any candidate of this process was found at work unasked: its threads may be there still, and those that
    come after it are not to blame."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._reserved_bytes = device.reserved_cache_bytes()
        self._before = [setting.read() for setting in SETTINGS]
        self._rested = not Surroundings.accused or share_at_rest(LOOK_SECONDS) < REST

    def expect_fair(self) -> None:
        """The candidate's threads do nothing unasked, and the L2 is there for all; raises FaultError."""
        reserved_bytes = self._device.reserved_cache_bytes()
        if reserved_bytes > self._reserved_bytes:
            self._device.free_reserved_cache()
            raise FaultError("reserved cache", f"{reserved_bytes:,} bytes")
        if not self._rested or share_at_rest(LOOK_SECONDS) < REST:
            return
        sleep(LIBRARIES_SPIN_SECONDS)
        share = share_at_rest(LIBRARIES_SPIN_SECONDS)
        if share > REST:
            Surroundings.accused = True
            raise FaultError("works on after its end", f"{share:.0%} of a core")

    def restore(self) -> list[str]:
        """Put back what is no longer as it was, and give its names."""
        found = []
        for setting, before in zip(SETTINGS, self._before, strict=True):
            if before is not None and setting.read() != before:
                with suppress(OSError):  # cores that were taken away meanwhile
                    setting.restore(before)
                found.append(setting.name)
        return found
