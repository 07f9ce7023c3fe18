"""Run the command line as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def error_lines(self) -> list[str]:
        return self.err.splitlines()


def edgeconv(*arguments: object, cwd: Path | None = None, stdin: bytes = b"") -> Finished:
    """`edgeconv ARGUMENTS` with this interpreter, from the project's own source."""
    return _finished([sys.executable, "-m", "edgeconv", *map(str, arguments)], cwd, stdin)


def shell(line: str, cwd: Path) -> Finished:
    """A line for sh, in which "$0" is this interpreter."""
    return _finished(["sh", "-c", line, sys.executable], cwd, b"")


def _finished(words: list[str], cwd: Path | None, stdin: bytes) -> Finished:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUTF8": "1"}
    done = subprocess.run(words, cwd=cwd, input=stdin, capture_output=True, env=environment, check=False)
    return Finished(done.returncode, done.stdout, done.stderr.decode())
