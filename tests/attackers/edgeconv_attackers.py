"""Methods that try to get a time for work that they do not do, each by one trick, as a package of its own.

What computes truly below them is `opencv` on the CPU and `sliding` on a GPU. `ATTACKS` has every trick by the name of
the method, with the fault under which the bench has to refuse it.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import numpy as np

from edgeconv.core.noise import noise_pixels
from edgeconv.methods import find
from edgeconv.methods.base import Method, Plan
from edgeconv.runtime import check
from edgeconv.runtime.check import SAMPLED_CHECK, rows_to_check
from edgeconv.runtime.devices.cpu import CpuDevice

_clock = time.perf_counter


class Trick(Plan):
    """`right` computes truly; a trick overrides `run`, and `begin` where it needs something at first."""

    def __init__(self, right: Plan) -> None:
        super().__init__(right.problem, arithmetic=right.arithmetic)
        self.right, self.calls = right.run, 0
        self.begin()

    def begin(self) -> None:
        pass

    def run(self, image, out) -> None:
        self.right(image, out)


class Skips(Trick):
    """Leaves the output of the first run where it is."""

    def run(self, image, out) -> None:
        if not self.calls:
            self.right(image, out)
        self.calls += 1


class Replays(Trick):
    """Returns the first output."""

    stored = None

    def run(self, image, out) -> None:
        if self.stored is None:
            self.right(image, out)
            self.stored = out.copy()
        out[...] = self.stored


class ByAddress(Trick):
    """Remembers outputs by where the picture lies."""

    def begin(self) -> None:
        self.stored = {}

    def key(self, image):
        return image.ctypes.data if isinstance(image, np.ndarray) else image.data.ptr

    def run(self, image, out) -> None:
        key = self.key(image)
        if key not in self.stored:
            self.right(image, out)
            self.stored[key] = out.copy()
        out[...] = self.stored[key]


class ByRows(ByAddress):
    """Remembers outputs by the first rows of the picture."""

    def key(self, image):
        return image[:4].tobytes()


class SampledRows(Trick):
    """Writes only the rows that the check looks at."""

    def begin(self) -> None:
        self.held = None

    def run(self, image, out) -> None:
        if self.held is None:
            self.held = out.copy()
        self.right(image, self.held)
        for start, stop in rows_to_check(out.shape[0], out[0].size, SAMPLED_CHECK):
            out[start:stop] = self.held[start:stop]


class LeavesOne(Trick):
    """Leaves one sample, in a picture that the check looks at in part, as it was."""

    def run(self, image, out) -> None:
        row = rows_to_check(out.shape[0], out[0].size, SAMPLED_CHECK)[0][1]  # the first that is not looked at
        before = out[row, 3, 1].copy()
        self.right(image, out)
        out[row, 3, 1] = before


class InBackground(Trick):
    """Comes back at once and lets a thread do the work."""

    def run(self, image, out) -> None:
        def later() -> None:
            time.sleep(0.02)
            self.right(image, out)

        threading.Thread(target=later).start()


class OneBehind(Trick):
    """Gives the output of the run before, and computes this one in the meantime."""

    def begin(self) -> None:
        self.held = None

    def run(self, image, out) -> None:
        if self.held is None:
            self.right(image, out)
            self.held = out.copy()
            return
        out[...] = self.held
        self.right(image, self.held)


class TiresOfWork(Trick):
    """Works until nobody seems to look any more, then skips."""

    def run(self, image, out) -> None:
        self.calls += 1
        if self.calls < 8:
            self.right(image, out)


class PatchesClock(Trick):
    """Lets the clock run at half its speed."""

    def begin(self) -> None:
        time.perf_counter = lambda: _clock() / 2


class PatchesTimer(Trick):
    """Replaces what takes the time."""

    def begin(self) -> None:
        CpuDevice.time_once = lambda *words: 1e-9


class PatchesCheck(Trick):
    """Lets every check pass."""

    def begin(self) -> None:
        check.check = lambda *words: check.Check(True, 0.0, 0.0, 0.0, 0, 0, 1, 1.0, None)


class InHalf(Trick):
    """Computes in half precision and says that it does not."""

    def run(self, image, out) -> None:
        self.right(image.astype(np.float16).astype(image.dtype), out)
        out[...] = out.astype(np.float16)


class OnlyTheSeed(Trick):
    """Knows the noise that the check uses, and computes nothing else."""

    def begin(self) -> None:
        height, width, channels = self.problem.input_shape
        self.known = noise_pixels(height, width, self.problem.dtype, channels)

    def run(self, image, out) -> None:
        if np.array_equal(image if isinstance(image, np.ndarray) else image.get(), self.known):
            self.right(image, out)
        else:
            out[...] = 0.25


class Spins(Trick):
    """Keeps its input in the caches by a thread that reads it all the time."""

    def begin(self) -> None:
        own = weakref.ref(self)

        def read() -> None:
            sums = np.ones(1 << 16)
            while own() is not None:
                sums.sum()

        threading.Thread(target=read, daemon=True).start()


class ChangesInput(Trick):
    """Blackens the picture, which the next one would have to compute with."""

    def run(self, image, out) -> None:
        self.right(image, out)
        self.calls += 1
        if self.calls > 1:  # that of the check has been read
            image[...] = 0


class LeavesSettings(Trick):
    """Honest, but leaves the process with one core and without garbage collection."""

    def begin(self) -> None:
        gc.disable()
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class OtherStream(Trick):
    """Works on a stream of its own, which is busy with other things, and for which nobody waits."""

    BUSY = (
        'extern "C" __global__ void busy(long long clocks) { for (long long t = clock64(); clock64() - t < clocks;); }'
    )

    def begin(self) -> None:
        import cupy

        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.busy = cupy.RawKernel(self.BUSY, "busy")

    def run(self, image, out) -> None:
        with self.stream:
            self.busy((1,), (1,), (10_000_000,))  # about 5 ms
            self.right(image, out)


class ReservesCache(Trick):
    """Sets a part of the L2 aside, which no flush reaches."""

    def begin(self) -> None:
        import cupy

        runtime = cupy.cuda.runtime
        runtime.deviceSetLimit(6, 16 << 20)  # cudaLimitPersistingL2CacheSize


class RegrowsPool(Trick):
    """Gives the pool's memory back to the GPU and takes it again, in each run."""

    def run(self, image, out) -> None:
        import cupy

        self.right(image, out)
        held = cupy.empty(64 << 20, cupy.uint8)
        del held
        cupy.get_default_memory_pool().free_all_blocks()


ATTACKS = {
    "skips": (Skips, "stale output"),
    "replays": (Replays, "stale output"),
    "by-address": (ByAddress, "recognises addresses"),
    "by-rows": (ByRows, "recognises pictures"),
    "sampled-rows": (SampledRows, "unwritten samples"),
    "leaves-one": (LeavesOne, "unwritten samples"),
    "one-behind": (OneBehind, "stale output"),
    "tires": (TiresOfWork, "stale output"),
    "patches-clock": (PatchesClock, "changed the clock"),
    "patches-timer": (PatchesTimer, "changed the clock"),
    "patches-check": (PatchesCheck, "changed the bench"),
    "only-the-seed": (OnlyTheSeed, "only the check's picture"),
    "changes-input": (ChangesInput, "changed its input"),
}
"""On both devices."""
CPU_ATTACKS = ATTACKS | {
    "in-background": (InBackground, "unfinished"),
    "in-half": (InHalf, "reduced arithmetic"),
    "spins": (Spins, "works on after its end"),
}
CUDA_ATTACKS = ATTACKS | {
    "other-stream": (OtherStream, "unfinished"),
    "reserves-cache": (ReservesCache, "reserved cache"),
    "regrows-pool": (RegrowsPool, "allocates while timed"),
}
HONEST = {"leaves-settings": LeavesSettings, "plain": Trick}


def _method(trick: type[Trick], name: str, device: str) -> type[Method]:
    class Attacker(Method):
        def unavailable_reason(self):
            return find(name, device).load().unavailable_reason()

        def prepare(self, problem, options):
            return trick(find(name, device).load().prepare(problem, options))

    return Attacker


CPU = {name: _method(trick, "opencv", "cpu") for name, trick in
       {**{name: trick for name, (trick, _) in CPU_ATTACKS.items()}, **HONEST}.items()}  # fmt: skip
CUDA = {name: _method(trick, "sliding", "cuda") for name, (trick, _) in CUDA_ATTACKS.items()}
for _name, _class in CPU.items():
    globals()[f"cpu_{_name.replace('-', '_')}"] = _class
for _name, _class in CUDA.items():
    globals()[f"cuda_{_name.replace('-', '_')}"] = _class
