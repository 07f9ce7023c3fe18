"""How the process ends: every error is one line and its exit code, whatever comes in between.

an EdgeconvError           its message                            2 to 5
a signal                   "stopped by SIGINT."                   128 and its number
nobody reads any more      nothing: the shell's custom            141 (128 and the number of SIGPIPE)
standard output is full    that it cannot be written              2
anything else              that it should not have happened       2
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from traceback import walk_tb
from types import FrameType
from typing import Any, NoReturn, TextIO

from edgeconv.cli.printing import painted
from edgeconv.core.safe_text import visible, visible_lines
from edgeconv.errors import EXIT_SIGNAL_BASE, EdgeconvError, ReaderGoneError
from edgeconv.interrupts import SIGNALS, end_at_once_on_signals

DEBUG = "EDGECONV_DEBUG"
"""The environment variable that shows where an unexpected error came from."""

EXIT_PIPE_CLOSED = ReaderGoneError.exit_code
"""As SIGPIPE would end it, which Python ignores so that a closed socket is an error and not the end."""

WRITERS = ("echo", "_flush_standard_output")
"""Functions that print where a reader may go away. What writes files, pipes and `-` raises ReaderGoneError."""


class SignalReceived(SystemExit):
    """A signal came; the exit code is set, and the line has been written."""


_stopped: SignalReceived | None = None


def prepare() -> None:
    """Make ready what the whole process says and hears: streams, messages of libraries, signals."""
    global _stopped
    _stopped = None
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console that cannot show "×" still gets its table
    _make_libraries_visible()
    sys.unraisablehook = _not_raised
    for number in SIGNALS:
        signal.signal(number, _stop)


def leave(run: Callable[[], int]) -> NoReturn:
    """Call `run` and end the process with the exit code that it gives, or that its error calls for."""
    try:
        code: Any = run()
        _flush_standard_output()
    except SystemExit as error:
        # Typer makes an exit code of 1 of a broken pipe, and 1 means that results differ.
        broken = error.__context__
        code = _code_of(broken) if isinstance(broken, BrokenPipeError) else error.code
    except BaseException as error:
        code = _code_of(error)
    if _stopped is not None:  # whatever a library made of it
        code = _stopped.code
    end_at_once_on_signals()  # nothing is in hand any more, and what Python does at its end may take a while
    for stream in (sys.stdout, sys.stderr):
        _let_go_of(stream)
    sys.exit(code)


def _code_of(error: BaseException) -> int:
    """Say what was the matter, where there is anything to say; the exit code."""
    if _stopped is not None:  # a library took it for an error of its own, as one whose import is interrupted may do
        return EXIT_SIGNAL_BASE
    if _is_closed_pipe(error):
        return EXIT_PIPE_CLOSED
    if isinstance(error, EdgeconvError):
        return _say(str(error), error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return _say("stopped.", EXIT_SIGNAL_BASE + signal.SIGINT)
    if isinstance(error, OSError) and _came_from_writing(error):
        return _say(f"Standard output cannot be written ({error.strerror or error}).", EdgeconvError.exit_code)
    if DEBUG in os.environ:
        raise error
    what = f"{type(error).__name__}: {error}"
    return _say(f"This should not have happened ({what}). Set {DEBUG}=1 to see where.", EdgeconvError.exit_code)


def _say(message: str, exit_code: int) -> int:
    """One line on standard error; the exit code, or that of a closed pipe where nobody reads it."""
    if sys.stderr is None:  # closed before we began: print would take standard output
        return exit_code
    try:
        error = painted("error:", "bad", sys.stderr)
        print(f"edgeconv: {error} {visible(' '.join(message.split()))}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        return EXIT_PIPE_CLOSED
    except (OSError, ValueError):
        pass  # there is no place left to say it
    return exit_code


def _flush_standard_output() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _is_closed_pipe(error: BaseException) -> bool:
    """Whether whoever read what we write has gone away; a connection that broke is another thing."""
    return isinstance(error, ReaderGoneError) or (isinstance(error, BrokenPipeError) and _came_from_writing(error))


def _came_from_writing(error: OSError) -> bool:
    return any(frame.f_code.co_name in WRITERS for frame, _ in walk_tb(error.__traceback__))


def _let_go_of(stream: TextIO | None) -> None:
    """Let what is left in a stream that takes no more go nowhere: Python would try again at its end, and complain."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Leave by an exception, so that half-written temporary files are cleaned up on the way; at once the next time."""
    global _stopped
    if _stopped is not None:
        _abandon(_stopped)
    _stopped = SignalReceived(EXIT_SIGNAL_BASE + number)
    with suppress(OSError):  # past the stream's buffer, which the interrupted code may be writing to just now
        os.write(2, f"edgeconv: error: stopped by {signal.Signals(number).name}.\n".encode())
    raise _stopped


def _not_raised(details: Any) -> None:
    """For exceptions where Python goes on all the same, such as at the end of an object: a stop there still is one."""
    if isinstance(details.exc_value, SignalReceived):
        _abandon(details.exc_value)
    sys.__unraisablehook__(details)


def _abandon(stopped: SignalReceived) -> NoReturn:
    temporary_files = sys.modules.get("edgeconv.io.temporary_files")
    if temporary_files is not None:
        temporary_files.remove_being_written()
    os._exit(int(str(stopped.code)))


def _make_libraries_visible() -> None:
    """What libraries log or warn of may hold a picture's name too."""

    class Visible(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return visible_lines(super().format(record))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Visible())
    if warnings.formatwarning is not _visible_warning:
        global _plain_warning
        _plain_warning, warnings.formatwarning = warnings.formatwarning, _visible_warning


_plain_warning: Callable[..., str] = warnings.formatwarning


def _visible_warning(*words: Any, **more: Any) -> str:
    return visible_lines(_plain_warning(*words, **more))
