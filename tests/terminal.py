"""Run the command line on a pseudo-terminal, as a person at a terminal sees it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from command import PROJECT, Finished

SGR = re.compile(r"\x1b\[[0-9;]*m")
FOREIGN = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "CI")
"""What the environment of a test may say of terminals."""


def on_terminal(*arguments: object, cwd: Path, columns: int = 80, **environment: str) -> Finished:
    """`edgeconv ARGUMENTS` with standard output and standard error on one terminal of so many columns; all in `out`."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    own = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    own |= {"PYTHONPATH": str(PROJECT), "PYTHONUTF8": "1", "TERM": "xterm-256color", **environment}
    words = [sys.executable, "-m", "edgeconv", *map(str, arguments)]
    with subprocess.Popen(words, cwd=cwd, env=own, stdin=subprocess.DEVNULL, stdout=side, stderr=side) as process:
        os.close(side)
        shown = b"".join(iter(lambda: _read(main), b""))
        os.close(main)
    return Finished(process.returncode, shown.replace(b"\r\n", b"\n"), "")


def without_colours(text: str) -> str:
    """What a person reads of it."""
    return SGR.sub("", text)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux's way to say that nobody has the other side open
        return b""
