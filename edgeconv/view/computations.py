"""Which computations the window still wants: they tell how far they are, and stop where nobody waits for them any more.

Two requests may want the same output; then the second waits for the first's computation, and hears of its progress. A
computation that nobody wants goes on for `GRACE_SECONDS`, as the next request may ask for the same: another view of
the same output does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edgeconv.core.progress import Listener, Stopped
from edgeconv.core.timing import Clock
from edgeconv.view.latest_request import HELP_SECONDS, Token

GRACE_SECONDS = HELP_SECONDS + 0.2
"""A request that waits for a thread gets one within the first of them."""
TELL_SECONDS = 0.1
"""Between two messages about the progress of one computation."""


@dataclass(frozen=True, eq=False)
class Waiting:
    """A request that waits for a result."""

    token: Token
    tell: Callable[[float], None]
    """Takes the share that is done."""


class Computations:
    """The computations under way, by the key of their result, with the requests that wait for each."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, list[Waiting]] = {}

    @contextmanager
    def by(self, key: Hashable, waiting: Waiting) -> Iterator[None]:
        """Inside the block `waiting` waits for the result of `key`."""
        with self._lock:
            self._waiting.setdefault(key, []).append(waiting)
        try:
            yield
        finally:
            with self._lock:
                left = self._waiting[key]
                left.remove(waiting)
                if not left:
                    del self._waiting[key]

    def listener(self, key: Hashable) -> Listener:
        """What a computation of `key` reports to; raises Stopped once nobody has waited for it for a while."""
        told_at = alone_since = -float("inf")

        def listen(share: float) -> None:
            nonlocal told_at, alone_since
            now = self._clock()
            with self._lock:
                live = [each for each in self._waiting.get(key, ()) if not each.token.cancelled]
            if live:
                alone_since = -float("inf")
            elif alone_since == -float("inf"):
                alone_since = now
            elif now - alone_since >= GRACE_SECONDS:
                raise Stopped
            if now - told_at >= TELL_SECONDS:
                told_at = now
                for each in live:
                    each.tell(share)

        return listen
