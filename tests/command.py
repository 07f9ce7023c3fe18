"""Run the command line as a user does, in this process or in one of its own; and the project's scripts as modules."""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, Any

from edgeconv.run import tiles
from edgeconv.signals import SIGNALS

PROJECT = Path(__file__).resolve().parent.parent
SCRIPTS = str(PROJECT / "scripts")

FRESH_BYTES = 150 * 2**20
"""What a command is told that its process holds: about what one does that has just loaded what a run needs. What this
process really holds depends on the tests before."""


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


def edgeconv(
    *arguments: object,
    cwd: Path | None = None,
    stdin: bytes = b"",
    stdout: io.TextIOWrapper | None = None,
    terminal: int | None = None,
) -> Finished:
    """`edgeconv ARGUMENTS` in this process, which has loaded already what a new one would first have to load.

    It ends as a process does, by `leave`, and what C libraries print is collected too; `stdout`, or a terminal's
    descriptor, takes the place of what is collected. Where the process itself is the point (its start, its signals, its
    limits): `edgeconv_process`.
    """
    from edgeconv.cli import main

    with _borrowed(["edgeconv", *map(str, arguments)], cwd, stdin, stdout, terminal) as files:
        try:
            main()
        except SystemExit as left:
            code = left.code
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # `leave` has flushed it; only a closed pipe is left
                stream.flush()
        out, err = (_content(file) for file in files)
    assert isinstance(code, int)
    return Finished(code, out, err.decode())


def edgeconv_process(*arguments: object, cwd: Path | None = None, stdin: bytes = b"") -> Finished:
    """`edgeconv ARGUMENTS` with this interpreter, from the project's own source, in a process of its own."""
    return _finished([sys.executable, "-m", "edgeconv", *map(str, arguments)], cwd, stdin)


@contextmanager
def _borrowed(
    words: list[str], cwd: Path | None, stdin: bytes, stdout: io.TextIOWrapper | None, terminal: int | None
) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """What a process has for itself, as long as the block lasts; the files that its output goes to."""
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.unraisablehook
    environment, folder = dict(os.environ), Path.cwd()
    descriptors = [os.dup(number) for number in range(3)]
    resident_bytes = tiles.resident_bytes
    with TemporaryFile() as out, TemporaryFile() as err, _pipe_of(stdin) as pipe, warnings.catch_warnings():
        try:
            shown = [file.fileno() if terminal is None else terminal for file in (out, err)]
            for number, source in enumerate((pipe, *shown)):
                os.dup2(source, number)
            sys.argv = words
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stdout = stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
            warnings.showwarning = _print_warning
            tiles.resident_bytes = lambda: FRESH_BYTES
            if cwd is not None:
                os.chdir(cwd)
            yield out, err
        finally:
            tiles.resident_bytes = resident_bytes
            sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.unraisablehook = before
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.chdir(folder)
            if os.environ != environment:
                os.environ.clear()
                os.environ.update(environment)


@contextmanager
def _pipe_of(data: bytes) -> Iterator[int]:
    """The end of a pipe that gives `data` to whoever reads it."""
    reader, writer = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), open(writer, "wb") as stream:
            stream.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield reader
    finally:
        os.close(reader)
        thread.join()


def _content(file: IO[bytes]) -> bytes:
    """All of it: the descriptor has been written to behind its back."""
    file.seek(0)
    return file.read()


def _print_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """What Python prints by itself; what it only shows to a developer is none of the command's output."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | ImportWarning | ResourceWarning):
        sys.stderr.write(warnings.formatwarning(message, category, *place[:2]))


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
    if SCRIPTS not in sys.path:
        sys.path.append(SCRIPTS)  # one imports another
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
