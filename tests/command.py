"""Run the command line as a user does, in a process of its own; and the project's scripts as modules."""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

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


def edgeconv_here(*arguments: object, stdout: io.TextIOWrapper | None = None) -> Finished:
    """The same in this process, which is quicker; `stdout` takes the place of what is collected."""
    out, err = stdout or io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with _borrowed(["edgeconv", *map(str, arguments)], out, err):
        from edgeconv.cli import _run
        from edgeconv.cli.ending import leave

        try:
            leave(_run)
        except SystemExit as left:
            code = left.code
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue() if isinstance(stream.buffer, io.BytesIO) else b"")
    assert isinstance(code, int)
    return Finished(code, texts[0], texts[1].decode())


@contextmanager
def _borrowed(words: list[str], out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    """What a command takes for its own, as long as the block lasts."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = words, out, err
    try:
        yield
    finally:
        sys.argv, sys.stdout, sys.stderr = before
        for number, handler in handlers.items():
            signal.signal(number, handler)


def unmeasured() -> dict[str, str]:
    """The environment of a command that a signal or a limit will stop: without the measuring of coverage.

    Its tracer takes a lock, and an exception that a signal raises in there leaves it taken: the process waits for ever.
    Its own file at the end is under the limits of the process too, and what it then says is not of the command.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    return {**kept, "PYTHONPATH": str(PROJECT)}


def shell(line: str, cwd: Path) -> Finished:
    """A line for sh, in which "$0" is this interpreter."""
    return _finished(["sh", "-c", line, sys.executable], cwd, b"")


def script(name: str) -> ModuleType:
    """A script of scripts/ as a module; registered, because dataclasses look their module up."""
    spec = importlib.util.spec_from_file_location(name, PROJECT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _finished(words: list[str], cwd: Path | None, stdin: bytes) -> Finished:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONUTF8": "1"}
    done = subprocess.run(words, cwd=cwd, input=stdin, capture_output=True, env=environment, check=False)
    return Finished(done.returncode, done.stdout, done.stderr.decode())
