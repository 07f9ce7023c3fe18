"""A layer between Python and the disk that fails, writes short or ends the process at the n-th call.

with Faults(folder, "fails", 3) as faults:   # the third call that changes something below `folder` raises ENOSPC
    ...
assert faults.struck

    fails   the n-th call raises "no space left" and does nothing; the ones after it work again
    short   the n-th write writes half, and the one after it raises "no space left", as on a disk that fills up
    dies    the n-th call does nothing, or half if it is a write, and the process ends there and then

Calls are those of `os`, and of files that were opened by `open`; what a library does in C alone is not seen.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

DIED = 77
"""Exit code of a process that was ended here."""

CHANGES = ("mkdir", "rmdir", "unlink", "remove", "link", "rename", "replace", "chmod")
OF_DESCRIPTORS = ("fsync", "ftruncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Faults:
    """See the module. Within the block `os` and `open` are replaced for all threads."""

    def __init__(self, folder: Path, kind: str, at: int) -> None:
        self._below, self._kind, self._at = os.path.realpath(folder), kind, at
        self._calls = 0
        self._full = False
        """After a short write: the next one fails."""
        self.struck = ""
        """The call that was hit; empty where there were fewer."""
        self._lock = threading.Lock()
        self._descriptors: set[int] = set()
        self._real = {name: getattr(os, name) for name in (*CHANGES, *OF_DESCRIPTORS, "open", "close", "write")}
        self._real_open = io.open
        replaced = {name: self._changing(name) for name in CHANGES}
        replaced |= {name: self._of_descriptor(name) for name in OF_DESCRIPTORS}
        replaced |= {"open": self._os_open, "close": self._os_close, "write": self._os_write}
        self._patches = [mock.patch.object(os, name, call) for name, call in replaced.items()]
        self._patches += [mock.patch.object(module, "open", self._open) for module in (io, builtins)]

    def __enter__(self) -> Faults:
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *error: object) -> None:
        for patch in reversed(self._patches):
            patch.stop()

    def write(self, name: str, put: Callable[[Any], int], data: Any) -> int:
        """A write of `data` by `put`, or what becomes of it."""
        view = memoryview(data).cast("B")
        with self._lock:
            if self._full:
                self._full = False
                raise no_space()
            if not self._is_due(name):
                return put(view)
            if self._kind == "fails":
                raise no_space()
            half = put(view[: len(view) // 2]) if len(view) > 1 else 0
            if self._kind == "dies":
                os._exit(DIED)
            self._full = True
            return half

    def step(self, name: str) -> None:
        """A call that changes something without writing."""
        if self._kind == "short":
            return
        with self._lock:
            if self._is_due(name):
                if self._kind == "dies":
                    os._exit(DIED)
                raise no_space()

    def _is_due(self, name: str) -> bool:
        self._calls += 1
        if self._calls != self._at:
            return False
        self.struck = name
        return True

    def _is_ours(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and os.path.realpath(path).startswith(self._below + os.sep)

    def _changing(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def call(path: Any, *words: Any, **options: Any) -> Any:
            if self._is_ours(path):
                self.step(name)
            return real(path, *words, **options)

        return call

    def _of_descriptor(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def call(descriptor: int, *words: Any) -> Any:
            if descriptor in self._descriptors:
                self.step(name)
            return real(descriptor, *words)

        return call

    def _os_open(self, path: Any, flags: int, *words: Any, **options: Any) -> int:
        ours = bool(flags & WRITING) and self._is_ours(path)
        if ours:
            self.step("open")
        descriptor: int = self._real["open"](path, flags, *words, **options)
        if ours:
            self._descriptors.add(descriptor)
        return descriptor

    def _os_close(self, descriptor: int) -> None:
        self._descriptors.discard(descriptor)
        self._real["close"](descriptor)

    def _os_write(self, descriptor: int, data: Any) -> int:
        def put(view: memoryview) -> int:
            written: int = self._real["write"](descriptor, view)
            return written

        return self.write("write", put, data) if descriptor in self._descriptors else put(memoryview(data))

    def _open(self, file: Any, mode: str = "r", buffering: int = -1, *words: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or not self._is_ours(file):
            return self._real_open(file, mode, buffering, *words, **options)
        self.step("open")
        raw = _File(self, file, mode.replace("b", "").replace("t", ""))
        if "b" in mode and buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *words, **options)


class _File(io.FileIO):
    """A file whose writes pass through the layer; the buffer above it calls nothing else."""

    def __init__(self, faults: Faults, file: Any, mode: str) -> None:
        super().__init__(file, mode)
        self._faults = faults

    def write(self, data: Any) -> int:
        return self._faults.write("write", super().write, data)


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
