"""Run fuzz cases of CUDA plans on the CPU, in a separate process (kernel_work.run_on_cpu starts it).

Standard input is a pickled list of `FuzzCase`. All of them run, and each that fails is printed; 1 where any did.
"""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "host_cuda"), str(TESTS / "fuzz"), str(TESTS), str(TESTS.parent)]

import fake_cupy  # noqa: E402

fake_cupy.install()

import numpy as np  # noqa: E402
from fuzzing import Fuzzed, run_one  # noqa: E402

CUDA_METHODS = ("sliding", "textbook", "im2col", "implicit", "cudnn")


def full(count: int, value: int, dtype: Any) -> Any:
    """cupy.full."""
    array = fake_cupy.empty((count,), dtype)
    array.fill(value)
    return array


def install() -> None:
    """What the fuzzer uses of CuPy beyond the plans; and methods that find their GPU."""
    fake_cupy.cupy.full = full
    fake_cupy.Array.get = np.array  # type: ignore[attr-defined]
    import_module("edgeconv.methods.cuda.libcudnn").unavailable_reason = lambda: None
    for name in CUDA_METHODS:
        import_module(f"edgeconv.methods.cuda.{name}").cuda_unavailable_reason = lambda: None


def main() -> int:
    """Run all; 1 where a case failed."""
    install()
    found = Fuzzed()
    for case in pickle.load(sys.stdin.buffer):
        print(case, flush=True)
        run_one(case, found)
    for failure in found.failures:
        print(f"failed: {failure['case']}: {failure['what']}", flush=True)
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
