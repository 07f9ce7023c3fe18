"""Warnings of decoders: libjpeg, libpng and libtiff print warnings about damage and continue with invented pixels.

They print to the C library's `stderr`, bypassing Python. While a picture is decoded, the descriptor that this stream
writes to is that of a pipe whose other end is read here. The file descriptor 2 is left alone, and with it everything
else that writes there: Python, its loggers, other processes. The variable `stderr` is left alone too: a library may
hold its value for as long as it works, and compare it at the end to know whether the stream is its own to close. (NVRTC
does: with another stream in the variable, in one thread, a compilation in another ended the process.)

The descriptor's place in the stream is found by what `fileno` says of it, before and after it is changed. Where that
fails, or the C library is another (Windows, musl), warnings are not captured and go to the screen.

The stream is global to the process, so a warning that arrives while several threads decode may belong to any of them.
Those threads then decode once more, one at a time, which attributes each warning to its picture: correct with any
number of threads, and slow for damaged pictures only.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

DESCRIPTOR_FIELDS: dict[str, tuple[int, type[ctypes.c_int] | type[ctypes.c_short]]] = {
    "stderr": (14 * ctypes.sizeof(ctypes.c_void_p), ctypes.c_int),
    "__stderrp": (ctypes.sizeof(ctypes.c_void_p) + 10, ctypes.c_short),
}
"""The variable of the GNU C library and that of macOS, and where a stream there holds its descriptor: bytes from the
stream's start, and the type. They are part of either's binary interface (`_fileno` in <bits/types/struct_FILE.h>,
`_file` in <_stdio.h>)."""
MOST_LINES = 3
"""Lines reported per picture: libtiff prints one for each damaged row."""
MOST_LETTERS = 120
PIPE_BYTES = 2**16


class DecoderMessages:
    """Captures warnings for any number of threads. One per process: `LISTENER`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._decoding: set[_Turn] = set()
        self._alone_or_about_to_be = 0
        self._stream: _CStream | None = None
        self._tried = False

    def during(self, decode: Callable[[], Result]) -> tuple[Result, tuple[str, ...]]:
        """What `decode` returns, and the lines that were printed. It may be called twice, and must not wait for
        another thread's `during`."""
        turn = self._begin(alone=False)
        try:
            result = decode()
        finally:
            printed = self._end(turn)
        if not turn.printed or turn.was_alone:
            return result, _shown(printed)
        del result  # two at once would be twice the memory
        turn = self._begin(alone=True)
        try:
            result = decode()
        finally:
            printed = self._end(turn, alone=True)
        return result, _shown(printed)

    def _begin(self, alone: bool) -> _Turn:
        turn = _Turn()
        with self._changed:
            self._alone_or_about_to_be += alone
            self._changed.wait_for(lambda: not (self._decoding if alone else self._alone_or_about_to_be))
            if not self._decoding:
                self._listen()
            else:
                turn.was_alone = False
                for other in self._decoding:
                    other.was_alone = False
            self._decoding.add(turn)
        return turn

    def _end(self, turn: _Turn, alone: bool = False) -> bytes:
        with self._changed:
            printed = b"" if self._stream is None else self._stream.read()
            if printed:
                for each in self._decoding:
                    each.printed = True
            self._decoding.remove(turn)
            self._alone_or_about_to_be -= alone
            if not self._decoding and self._stream is not None:
                self._stream.restore()
            self._changed.notify_all()
        return printed

    def _listen(self) -> None:
        if not self._tried:
            self._tried = True
            self._stream = _CStream.make()
        if self._stream is not None:
            self._stream.take_over()

    def forget(self) -> None:
        """Start afresh in a forked process: the decoding threads do not exist there, and the pipe is the parent's."""
        if self._stream is not None:
            self._stream.restore()
        self.__init__()  # type: ignore[misc]


class _Turn:
    """One call of `decode`."""

    def __init__(self) -> None:
        self.was_alone = True
        self.printed = False


class _CStream:
    """The C library's stream for errors, whose bytes go to a pipe where it is taken over."""

    def __init__(self, field: ctypes.c_int | ctypes.c_short, reading_end: int, writing_end: int) -> None:
        self._field, self._reading_end, self._writing_end = field, reading_end, writing_end
        self._before = field.value

    @classmethod
    def make(cls) -> _CStream | None:
        """None where there is no C library whose stream is known, or no descriptor is left."""
        try:
            library = ctypes.CDLL(None)
            name = next(name for name in DESCRIPTOR_FIELDS if hasattr(library, name))
            if not hasattr(library, "gnu_get_libc_version") and name == "stderr":
                return None  # another C library, with streams of its own making
            stream = ctypes.c_void_p.in_dll(library, name)
            offset, kind = DESCRIPTOR_FIELDS[name]
            library.fileno.argtypes = (ctypes.c_void_p,)
            if not stream.value or library.fileno(stream) < 0:
                return None
            field = kind.from_address(stream.value + offset)
            if field.value != library.fileno(stream):
                return None
            reading_end, writing_end = os.pipe()
        except (OSError, TypeError, AttributeError, StopIteration):
            return None
        for end in (reading_end, writing_end):
            os.set_blocking(end, False)  # a decoder that prints more than a pipe holds must not block: the rest is lost
        made = cls(field, reading_end, writing_end)
        made.take_over()
        follows = library.fileno(stream) == writing_end
        made.restore()
        if follows:
            return made
        os.close(reading_end)
        os.close(writing_end)
        return None

    def take_over(self) -> None:
        """Redirect what C code prints to `stderr` to the pipe."""
        self._before = self._field.value
        self._field.value = self._writing_end

    def restore(self) -> None:
        """Undo `take_over`."""
        if self._field.value == self._writing_end:
            self._field.value = self._before

    def read(self) -> bytes:
        """What was printed since the last call."""
        try:
            return os.read(self._reading_end, PIPE_BYTES)
        except BlockingIOError:
            return b""


def _shown(printed: bytes) -> tuple[str, ...]:
    """The first distinct lines, and how many more there were."""
    lines = [" ".join(line.split())[:MOST_LETTERS] for line in printed.decode(errors="replace").splitlines()]
    distinct = list(dict.fromkeys(line for line in lines if line))
    more = len(distinct) - MOST_LINES
    return (*distinct[:MOST_LINES], *([f"and {more:,} more"] if more > 0 else []))


LISTENER = DecoderMessages()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LISTENER.forget)
