"""Warnings of decoders: libjpeg, libpng and libtiff print warnings about damage and continue with invented pixels.

They print to the C library's `stderr`, bypassing Python. While a picture is decoded, the descriptor that this stream
writes to is that of a pipe whose other end is read here. Descriptor 2 is left alone, to which Python and other
processes write, and so is the variable `stderr`, which a library may remember and compare (NVRTC does). The place in
the stream of the GNU C library is confirmed by what `fileno` says before and after the change; where that fails, or
the C library is another, warnings are not captured and go to the screen.

The stream is global to the process, so a warning that arrives while several threads decode may belong to any of them.
Those threads then decode once more, one at a time: correct with any number of threads, slow for damaged pictures only.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

DESCRIPTOR_PLACE = 14 * ctypes.sizeof(ctypes.c_void_p)
"""Of the descriptor in a stream, in bytes: `_fileno` in <bits/types/struct_FILE.h>, part of the binary interface."""
MOST_LINES = 3
"""Lines reported per picture: libtiff prints one for each damaged row."""
MOST_LETTERS = 120
PIPE_BYTES = 2**16


@dataclass(eq=False)
class Turn:
    """A picture that is decoded."""

    was_alone: bool = True
    disturbed: bool = False
    """Whether anything was printed meanwhile, by whichever thread."""
    printed: bytes = b""

    @property
    def lines(self) -> tuple[str, ...]:
        """The first distinct lines that were printed, and how many more there were."""
        lines = [" ".join(line.split())[:MOST_LETTERS] for line in self.printed.decode(errors="replace").splitlines()]
        distinct = list(dict.fromkeys(filter(None, lines)))
        more = len(distinct) - MOST_LINES
        return (*distinct[:MOST_LINES], *([f"and {more:,} more"] if more > 0 else []))


class DecoderMessages:
    """Captures warnings for any number of threads. One per process: `LISTENER`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._decoding: set[Turn] = set()
        self._alone_or_about_to_be = 0
        self._stream: _CStream | None = None
        self._tried = False

    @contextmanager
    def turn(self, alone: bool) -> Iterator[Turn]:
        """The block decodes a picture, `alone` or beside others; it must not wait for another thread's turn."""
        turn = Turn()
        with self._changed:
            self._alone_or_about_to_be += alone
            self._changed.wait_for(lambda: not (self._decoding if alone else self._alone_or_about_to_be))
            self._decoding.add(turn)
            if len(self._decoding) > 1:
                for each in self._decoding:
                    each.was_alone = False
            elif not self._tried:
                self._tried, self._stream = True, _CStream.make()
            if self._stream is not None:
                self._stream.take_over()
        try:
            yield turn
        finally:
            with self._changed:
                if self._stream is not None:
                    turn.printed = self._stream.read()
                for each in self._decoding:
                    each.disturbed |= bool(turn.printed)
                self._decoding.remove(turn)
                self._alone_or_about_to_be -= alone
                if not self._decoding and self._stream is not None:
                    self._stream.restore()
                self._changed.notify_all()

    def forget(self) -> None:
        """Start afresh in a forked process: the decoding threads do not exist there, and the pipe is the parent's."""
        if self._stream is not None:
            self._stream.restore()
        self.__init__()  # type: ignore[misc]


class _CStream:
    """The C library's stream for errors, whose bytes go to a pipe where it is taken over."""

    def __init__(self, field: ctypes.c_int) -> None:
        self._field, self._before = field, field.value
        self._reading_end, self._writing_end = os.pipe()
        for end in (self._reading_end, self._writing_end):
            os.set_blocking(end, False)  # what a decoder prints beyond a full pipe is lost, as it must not wait

    @classmethod
    def make(cls) -> _CStream | None:
        """None where there is no C library whose stream is known, or no descriptor is left."""
        try:
            library = ctypes.CDLL(None)
            stream = ctypes.c_void_p.in_dll(library, "stderr")
            library.fileno.argtypes = (ctypes.c_void_p,)
            if not hasattr(library, "gnu_get_libc_version") or not stream.value:
                return None
            field = ctypes.c_int.from_address(stream.value + DESCRIPTOR_PLACE)
            if not 0 <= field.value == library.fileno(stream):
                return None
            made = cls(field)
        except (OSError, TypeError, ValueError, AttributeError):
            return None
        made.take_over()
        follows = library.fileno(stream) == made._writing_end
        made.restore()
        return made if follows else None

    def take_over(self) -> None:
        """Redirect what C code prints to `stderr` to the pipe, unless that was done."""
        if self._field.value != self._writing_end:
            self._before, self._field.value = self._field.value, self._writing_end

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


LISTENER = DecoderMessages()
os.register_at_fork(after_in_child=LISTENER.forget)
