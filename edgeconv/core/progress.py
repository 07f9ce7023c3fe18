"""A computation that goes on is heard of by whoever waits for it on its thread, and may stop it.

    with listening(listener):        listener() is called now and then; it stops the computation by raising Stopped
        plan.run(image, out)

A method that works in bands calls `report` on its caller's thread before each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[], None]


class Stopped(BaseException):
    """Nobody wants the result any more. No Exception, so that no guard against a method's faults takes it for one."""


_of_thread = threading.local()


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send what is reported inside the block, on this thread, to `listener`."""
    before = getattr(_of_thread, "listener", None)
    _of_thread.listener = listener
    try:
        yield
    finally:
        _of_thread.listener = before


def report() -> None:
    """Say that the computation goes on. Raises Stopped where it is no longer wanted."""
    listener: Listener | None = getattr(_of_thread, "listener", None)
    if listener is not None:
        listener()
