"""Requests that are served off the interface thread: only the newest one counts.

A waiting request is replaced by a newer one; a request that is being served is cancelled and checks its token between
steps. A step that cannot be interrupted (a slow method on a large picture) does not delay the newest request: another
thread serves it. Usually there are at most `AT_ONCE` threads, because more would only compete for the cores; if the
newest request has still waited for `HELP_SECONDS`, stale steps are slow, and one more thread is started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from edgeconv.view import background

Item = TypeVar("Item")

AT_ONCE = 2
MOST_THREADS = 8
"""Upper limit, as each stale step holds an output in memory."""
HELP_SECONDS = 0.3


class Token:
    """Whether a request is still wanted."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    @property
    def cancelled(self) -> bool:
        """A newer request has come, or the window was closed."""
        return self._stop.is_set()

    def cancel(self) -> None:
        """Ask the server to stop at its next check."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Sleep for so long; False as soon as it is cancelled."""
        return not self._stop.wait(seconds)


class LatestRequestRunner(Generic[Item]):
    """Serves the newest item by `serve(item, token)`, which must not raise."""

    def __init__(self, serve: Callable[[Item, Token], None], name: str, most_threads: int = MOST_THREADS) -> None:
        self._serve, self._name, self._most_threads = serve, name, most_threads
        self._lock = threading.Lock()
        self._waiting: tuple[Item, Token] | None = None
        self._serving: list[Token] = []
        self._closed = False

    def submit(self, item: Item) -> Token:
        """Serve `item` as soon as possible, and nothing older any more."""
        token = Token()
        with self._lock:
            self._cancel_all()
            if self._closed:
                token.cancel()
                return token
            self._waiting = (item, token)
            work = self._work if len(self._serving) < AT_ONCE else partial(self._help, token)
            background.start(work, self._name)
        return token

    def cancel(self) -> None:
        """Cancel everything."""
        with self._lock:
            self._cancel_all()

    def close(self) -> None:
        """Cancel everything and accept no more."""
        with self._lock:
            self._closed = True
            self._cancel_all()

    @property
    def busy(self) -> bool:
        """Whether a request that was not cancelled waits or is served."""
        with self._lock:
            return self._waiting is not None or any(not token.cancelled for token in self._serving)

    def _cancel_all(self) -> None:
        for token in self._serving:
            token.cancel()
        if self._waiting is not None:
            self._waiting[1].cancel()
            self._waiting = None

    def _help(self, token: Token) -> None:
        """Serve the request of `token` if all serving threads are still busy after a while."""
        if token.wait(HELP_SECONDS):
            self._work()

    def _work(self) -> None:
        """Serve until nothing waits."""
        while (taken := self._take()) is not None:
            item, token = taken
            self._serve(item, token)
            with self._lock:
                self._serving.remove(token)

    def _take(self) -> tuple[Item, Token] | None:
        """The waiting request, now to be served; None if there is none or `most_threads` are serving."""
        with self._lock:
            taken = self._waiting
            if taken is None or len(self._serving) >= self._most_threads:
                return None
            self._waiting = None
            self._serving.append(taken[1])
            return taken
