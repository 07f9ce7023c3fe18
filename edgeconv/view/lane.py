"""Work off the interface thread: the newest request wins.

A request that is waiting is replaced by a newer one, a request that is being served is told to stop; it looks at its
token between steps. A step that cannot be interrupted (a slow method on a large picture) does not keep the newest
request waiting: another thread serves it, up to `most_threads`.

Threads are daemons, because Python would otherwise wait for a convolution that nobody wants any more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST_THREADS = 2


class Token:
    """Whether a request is still wanted."""

    def __init__(self) -> None:
        self._stop = threading.Event()

    @property
    def cancelled(self) -> bool:
        """A newer request has come, or the window was closed."""
        return self._stop.is_set()

    def cancel(self) -> None:
        """Ask the server to stop at its next look."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Rest for so long; False as soon as it is cancelled."""
        return not self._stop.wait(seconds)


class Lane(Generic[Item]):
    """Serves the newest item by `serve(item, token)`, which must not raise."""

    def __init__(self, serve: Callable[[Item, Token], None], name: str, most_threads: int = MOST_THREADS) -> None:
        self._serve, self._name, self._most_threads = serve, name, most_threads
        self._lock = threading.Lock()
        self._waiting: tuple[Item, Token] | None = None
        self._serving: list[Token] = []
        self._closed = False

    def submit(self, item: Item) -> Token:
        """Serve `item` as soon as may be, and nothing older any more."""
        token = Token()
        with self._lock:
            self._cancel_all()
            if self._closed:
                token.cancel()
                return token
            self._waiting = (item, token)
            if len(self._serving) < self._most_threads:
                self._serving.append(token)
                threading.Thread(target=self._work, args=(token,), name=self._name, daemon=True).start()
        return token

    def cancel(self) -> None:
        """Want nothing any more."""
        with self._lock:
            self._cancel_all()

    def close(self) -> None:
        """Want nothing any more, for good."""
        with self._lock:
            self._closed = True
            self._cancel_all()

    @property
    def busy(self) -> bool:
        """Something that is wanted waits or is served."""
        with self._lock:
            return self._waiting is not None or any(not token.cancelled for token in self._serving)

    def _cancel_all(self) -> None:
        for token in self._serving:
            token.cancel()
        if self._waiting is not None:
            self._waiting[1].cancel()
            self._waiting = None

    def _work(self, place: Token) -> None:
        """Serve until nothing waits; `place` is this thread's entry among those that serve."""
        while True:
            with self._lock:
                self._serving.remove(place)
                if self._waiting is None:
                    return
                item, place = self._waiting
                self._waiting = None
                self._serving.append(place)
            self._serve(item, place)
