"""Run the command line on a pseudo-terminal, as a person at a terminal sees it, in this process (command.py)."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading
from pathlib import Path

import pytest
from command import Finished, edgeconv

SGR = re.compile(r"\x1b\[[0-9;]*m")
FOREIGN = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "CI")
"""What the environment of a test may say of terminals."""


def on_terminal(*arguments: object, cwd: Path, columns: int = 80, **environment: str) -> Finished:
    """`edgeconv ARGUMENTS` with standard output and standard error on one terminal, `columns` wide; all in `out`."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    parts: list[bytes] = []
    reader = threading.Thread(target=lambda: parts.extend(iter(lambda: _read(main), b"")))
    reader.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name in FOREIGN:
                patch.delenv(name, raising=False)
            for name, value in {"TERM": "xterm-256color", **environment}.items():
                patch.setenv(name, value)
            code = edgeconv(*arguments, cwd=cwd, terminal=side).code
    finally:
        os.close(side)
        reader.join()
        os.close(main)
    return Finished(code, b"".join(parts).replace(b"\r\n", b"\n"), "")


def without_colours(text: str) -> str:
    """What a person reads of it."""
    return SGR.sub("", text)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux's way to say that nobody has the other side open
        return b""
