"""How the process ends: every error is one line and its exit code, whatever comes in between.

an EdgeconvError           its message                            2 to 5
memory, a GPU that fails   what to do about it                    5, 4
a signal                   "stopped by SIGINT."                   128 and its number
nobody reads any more      nothing: the shell's custom            141 (128 and the number of SIGPIPE)
standard output is full    that it cannot be written              2
anything else              that it should not have happened       2
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

from edgeconv.cli.printing import say_error
from edgeconv.core.text import visible_lines
from edgeconv.errors import (
    EXIT_SIGNAL_BASE,
    EdgeconvError,
    ImageWriteError,
    MemoryLimitError,
    ReaderGoneError,
    one_line_with_class,
)
from edgeconv.hardware.cuda.probe import cuda_failure
from edgeconv.signals import Received, SignalReceived, end_at_once, raise_on_signals

DEBUG = "EDGECONV_DEBUG"
"""The environment variable that shows where an unexpected error came from."""


class Stream:
    """Standard output or standard error: where it takes no more, that is an error of edgeconv's own.

    So a pipe that nobody reads is told from a connection that broke, wherever the writing was done. What libraries log
    or warn of, which may hold a picture's name, is made visible; `draw` writes our own colours too.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._name = stream, name

    def write(self, text: str) -> int:
        """As of any stream; raises ReaderGoneError, ImageWriteError."""
        if not isinstance(text, str):  # by which Click finds out whether a stream is for bytes
            raise TypeError("text, and not bytes")
        return self.draw(visible_lines(text))

    def draw(self, text: str) -> int:
        """The text as it is."""
        with self._failing():
            return int(self._stream.write(text))

    def flush(self) -> None:
        """As of any stream; raises ReaderGoneError, ImageWriteError."""
        with self._failing():
            self._stream.flush()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise ReaderGoneError(f"{self._name} is read by nobody.") from None
        except OSError as error:
            raise ImageWriteError(f"{self._name} cannot be written ({error.strerror or error}).") from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def leave(run: Callable[[], int]) -> NoReturn:
    """Call `run` and end the process with the exit code that it gives, or that its error calls for."""
    signals = _prepare()
    try:
        code: Any = run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except SystemExit as error:
        code = error.code
    except BaseException as error:
        code = _code_of(error) if signals.exit_code is None else 0
    if signals.exit_code is not None:  # whatever a library made of it
        code = signals.exit_code
    end_at_once()  # nothing is in hand any more, and what Python does at its end may take a while
    for stream in filter(None, (sys.stdout, sys.stderr)):
        _let_go_of(stream)
    sys.exit(code)


def _prepare() -> Received:
    """Make ready what the whole process says and hears: streams and signals."""
    for name, said in (("stdout", "Standard output"), ("stderr", "Standard error")):
        stream = getattr(sys, name)
        if stream is not None:
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a console that cannot show "×" still gets its table
            setattr(sys, name, Stream(stream, said))
    sys.unraisablehook = _not_raised
    return raise_on_signals(remove_being_written)


def _code_of(error: BaseException) -> int:
    """Say what was the matter, where there is anything to say; the exit code."""
    if isinstance(error, ReaderGoneError):
        return error.exit_code
    if isinstance(error, MemoryError):
        error = MemoryLimitError("Out of memory: use a smaller picture, or lower --workspace-limit.")
    elif (failure := cuda_failure(error)) is not None:
        error = failure
    if isinstance(error, EdgeconvError):
        return _say(str(error), error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return _say("stopped.", EXIT_SIGNAL_BASE + signal.SIGINT)
    if DEBUG in os.environ:
        raise error
    what = one_line_with_class(error)
    return _say(f"This should not have happened ({what}). Set {DEBUG}=1 to see where.", EdgeconvError.exit_code)


def _say(message: str, exit_code: int) -> int:
    """One line on standard error; the exit code, or that of a closed pipe where nobody reads it."""
    try:
        say_error(" ".join(message.split()))
    except ReaderGoneError as gone:
        return gone.exit_code
    except (ImageWriteError, ValueError):
        pass  # there is no place left to say it
    return exit_code


def _let_go_of(stream: TextIO) -> None:
    """Let what is left in a stream that takes no more go nowhere: Python would try again at its end, and complain."""
    try:
        stream.flush()
    except (EdgeconvError, OSError, ValueError):
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _not_raised(details: Any) -> None:
    """For exceptions where Python goes on all the same, such as at the end of an object: a stop there still is one."""
    if isinstance(details.exc_value, SignalReceived):
        remove_being_written()
        os._exit(int(str(details.exc_value.code)))
    sys.__unraisablehook__(details)


def remove_being_written() -> None:
    """Remove the temporary files that are being written, where anything has been written at all."""
    atomic = sys.modules.get("edgeconv.io.atomic")
    if atomic is not None:
        atomic.remove_being_written()
