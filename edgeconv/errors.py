"""What can go wrong, as one tree. Each branch carries the exit code that the command line ends with.

    EdgeconvError
    ├── UsageError            2   an option, filter, shape or type that cannot be used (also a ValueError)
    ├── ImageReadError        2   a picture that is missing, damaged, too large or not a picture
    ├── ImageWriteError       2   an output that cannot be written, or would overwrite what was not asked for
    │   └── ReaderGoneError 141   a pipe that nobody reads any more, standard output among them; the shell says nothing
    ├── LayoutError           3   two pictures whose sizes or types differ
    ├── UnavailableError      4   a method, device or library that this machine does not have
    └── MemoryLimitError      5   not enough memory; says how much is needed and which option lowers it

Every message is one line: what is wrong, which file or option, what to do about it.
0 means fine; 1 that results differ, are slower, or that some pictures of a batch failed; 130
interrupted, 143 terminated (128 and the number of the signal).
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_DIFFERENT = 1
EXIT_SIGNAL_BASE = 128


MAX_QUOTED_LETTERS = 200
"""Letters of another library's message that one of ours quotes."""


def one_line(error: object, most: int = MAX_QUOTED_LETTERS) -> str:
    """What an error of another library says, on one line and shortened; its class where it says nothing."""
    return " ".join(str(error).split())[:most] or type(error).__name__


def one_line_with_class(error: object, most: int = MAX_QUOTED_LETTERS) -> str:
    """The same after the name of its class: of errors that nobody expects, whose words may say little.

    Its notes follow, such as the package that it comes from.
    """
    name, words = type(error).__name__, " ".join(str(error).split())[:most]
    return ", ".join([f"{name}: {words}" if words else name, *getattr(error, "__notes__", ())])


class EdgeconvError(Exception):
    """The root: catch this to catch everything that edgeconv raises on purpose."""

    exit_code = 2


class UsageError(EdgeconvError, ValueError):
    """An option or argument that cannot be used."""


class ImageReadError(EdgeconvError):
    """A picture that cannot be read as asked."""


class ImageWriteError(EdgeconvError):
    """A picture or report that cannot be written as asked."""


class ReaderGoneError(ImageWriteError):
    """A pipe whose reader has gone away: the command ends without a word, as SIGPIPE (13) would end it."""

    exit_code = EXIT_SIGNAL_BASE + 13


class LayoutError(EdgeconvError):
    """Two pictures whose sizes or types differ."""

    exit_code = 3


class UnavailableError(EdgeconvError):
    """A method, device or library that this machine does not have."""

    exit_code = 4


class MemoryLimitError(EdgeconvError):
    """Not enough memory on the host or the GPU, or under the limit that was set."""

    exit_code = 5
