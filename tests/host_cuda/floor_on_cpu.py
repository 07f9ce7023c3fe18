"""Run the kernels of floor.cu on the CPU, in a separate process (kernel_work.run_on_cpu starts it).

Standard input is a pickled list of (words to read, words to write, blocks). Memory has guard zones; what is written is
compared with what the kernel's own comment says.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import fake_cupy  # noqa: E402

fake_cupy.install()

import numpy as np  # noqa: E402
from floor_words import expected, source_words  # noqa: E402

from edgeconv.hardware.cuda.floor import THREADS, variants  # noqa: E402


def main() -> None:
    """Run all of it; an AssertionError at the first that is wrong."""
    for reads, writes, blocks in pickle.load(sys.stdin.buffer):
        for variant in variants():
            if variant.entry == "one_word_each":
                blocks = -(-max(reads, writes) // THREADS)
            words = source_words(reads)
            source = fake_cupy.asarray(words)
            target = fake_cupy.empty((writes, 4), np.uint32)
            values = (
                ctypes.c_void_p(source.ctypes.data),
                ctypes.c_void_p(target.ctypes.data),
                ctypes.c_longlong(reads),
                ctypes.c_longlong(writes),
            )
            pointers = (ctypes.c_void_p * 4)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
            kernel = fake_cupy.load(variant)
            for descending in (False, True):
                target[...] = 0xEEEEEEEE
                kernel.launch((blocks, 1, 1), (THREADS, 1, 1), ctypes.addressof(pointers), descending)
                assert np.array_equal(target, expected(variant.entry, words, writes)), (variant.entry, reads, writes)


main()
