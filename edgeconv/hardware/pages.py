"""Memory for large results on the host: large pages, and pages that a dropped result leaves behind.

A fresh page is filled with zeros by the system when it is first written, which takes as long as the convolution
itself. So a block is asked for in large pages (where the system gives them, the zeros of each are written by the thread
that then writes its samples), and when the last array on it is gone the block waits for the next result of its size.
The system may take the pages of a block that waits longer than another at any time; nothing has to be written out.
(Not those of the last one: telling the system so takes all cores an interrupt.)

`keep_what_is_freed` has the C library do likewise with all else, for a process that takes picture after picture.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from collections import deque
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.core.text import parse_bytes

LARGE_PAGE_BYTES = 2 * 2**20
LEAST_BYTES = LARGE_PAGE_BYTES
"""Below this, memory that `malloc` has at hand is as good."""
MOST_WAITING = 2
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MOST_FROM_HEAPS, MOST_KEPT = 2**25, 2**30
"""The most that GNU's C library allows, and more than there will be. Source: mallopt(3)."""
VARIABLE, DEFAULT_LIMIT = "EDGECONV_RESULT_MEMORY", "256M"
"""Of all blocks that wait; a larger one is given back at once."""

_WAITING: deque[_Block] = deque(maxlen=MOST_WAITING)
"""Each step on it is a single one under the interpreter lock: a block may come back in the middle of any other."""


class _Block:
    """Memory that starts on a large page."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        # Python's own choice is memory that processes share, which has no large pages.
        try:
            self._memory = mmap.mmap(-1, size_bytes + LARGE_PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, OverflowError):  # the system's word for it
            raise MemoryError from None
        self._start = -ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) % LARGE_PAGE_BYTES
        self._advise("MADV_HUGEPAGE")

    def lend(self) -> Any:
        """The memory as an object that arrays refer to; when it is gone the block waits.

        Arrays may outlive this module, when the interpreter ends: nothing is called then.
        """
        lent = (ctypes.c_char * self.size_bytes).from_buffer(self._memory, self._start)
        weakref.finalize(lent, self._take_back).atexit = False
        return lent

    def _take_back(self) -> None:
        limit = limit_bytes()
        if self.size_bytes > limit:
            return
        for older in _waiting():
            if _is_taken(older):  # so that nobody writes to it meanwhile
                older._advise("MADV_FREE")
                _WAITING.append(older)
        _WAITING.append(self)
        keep_waiting(limit)

    def _advise(self, name: str) -> None:
        advice = getattr(mmap, name, None)
        if advice is not None:
            try:
                self._memory.madvise(advice, self._start, self.size_bytes)
            except OSError:  # a system without it
                return


@cache
def _limit_from_environment() -> int:
    return parse_bytes(os.environ.get(VARIABLE, DEFAULT_LIMIT), VARIABLE)


_LIMIT: list[int] = []
"""What `set_limit` was told last, in the place of what the environment says."""


def limit_bytes() -> int:
    """How much memory may wait. Raises UsageError where the variable is not a number of bytes."""
    return _LIMIT[-1] if _LIMIT else _limit_from_environment()


def waiting_bytes() -> int:
    """How much memory waits now."""
    return sum(block.size_bytes for block in _waiting())


def set_limit(size_bytes: int) -> None:
    """From now on so much memory may wait at most; what is more is given back."""
    _LIMIT[:] = [size_bytes]
    keep_waiting(size_bytes)


def keep_waiting(size_bytes: int) -> None:
    """Give back the oldest blocks until no more waits."""
    while waiting_bytes() > size_bytes:
        try:
            _WAITING.popleft()
        except IndexError:  # another thread took it
            return


def large_empty(size_bytes: int) -> NDArray[np.uint8]:
    """Bytes of any content on a block of its own. Raises MemoryError, and UsageError as `limit_bytes`."""
    limit_bytes()
    rounded = -(-size_bytes // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
    for block in reversed(_waiting()):
        if block.size_bytes == rounded and _is_taken(block):
            return np.frombuffer(block.lend(), np.uint8, size_bytes)
    return np.frombuffer(_Block(rounded).lend(), np.uint8, size_bytes)


def _waiting() -> list[_Block]:
    """Those that wait, the last one that came last."""
    while True:
        try:
            return list(_WAITING)
        except RuntimeError:  # another has come back in the middle of it
            continue


def _is_taken(block: _Block) -> bool:
    """Take a block from those that wait; False where another thread was sooner."""
    try:
        _WAITING.remove(block)
    except ValueError:
        return False
    return True


def keep_what_is_freed() -> None:
    """Let the C library keep memory that threads free for what they need next, where it is GNU's.

    Files and pixels of one size come and go: without this, each picture of 2048×2048 has 5,000 page faults.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MOST_FROM_HEAPS)
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT)
