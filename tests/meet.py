"""Meetings: one long patience for every wait, and a child process that says where it is and waits to be let go on.

    wait_until(lambda: thing.is_there)                       a failure with the stack of every thread after `patience()`
    with held("os:link", ["batch", ...], at=2) as child:     `edgeconv batch ...`, held where it calls os.link again
        child.arrived()                                      now it is there
        child.process.send_signal(SIGINT)
        child.let_go()

No test pauses for a time, or judges one: a time that runs out is always a failure.
"""

from __future__ import annotations

import faulthandler
import importlib
import itertools
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

LEAST_PATIENCE_SECONDS = 60.0
LONGER = "EDGECONV_TEST_PATIENCE"
"""The environment variable for more seconds, on a machine that is slow beyond measure."""
LOOK_SECONDS = 0.005
STANDARD_ERROR = 2


def patience() -> float:
    """Seconds after which what is waited for will never come about."""
    return max(LEAST_PATIENCE_SECONDS, float(os.environ.get(LONGER, 0)))


def stacks() -> str:
    """Where every thread of this process is."""
    with TemporaryFile("w+", encoding="utf-8") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


def wait_until(condition: Callable[[], object]) -> None:
    """Return once that is true."""
    deadline = time.monotonic() + patience()
    while not condition():
        assert time.monotonic() < deadline, f"it never came about; the threads are here:\n{stacks()}"
        time.sleep(LOOK_SECONDS)


def join(thread: threading.Thread) -> None:
    """Return once the thread has ended."""
    wait_until(lambda: not thread.is_alive())
    thread.join()


class TurnedClock:
    """Stands still until a test turns it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def outcome(call: Callable[[], Any]) -> Any:
    """What a call that might wait for ever gives or raises."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    wait_until(done.done)
    return done.result()


class Meeting(threading.Barrier):
    """A barrier at which somebody who does not come is a failure."""

    def wait(self, timeout: float | None = None) -> int:
        """See threading.Barrier."""
        try:
            return super().wait(patience())
        except threading.BrokenBarrierError:
            raise AssertionError(f"somebody did not come; the threads are here:\n{stacks()}") from None


def run_program(
    code: str, *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A Python program to its end; one that never ends is ended with the stack of its threads on standard error.

    Not measured by coverage, as most of these get signals: see `command.unmeasured`.
    """
    from command import unmeasured

    watched = f"import faulthandler; faulthandler.dump_traceback_later({patience()}, exit=True)\n{code}"
    words = [sys.executable, "-c", watched, *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=unmeasured() | environment)


class Child:
    """A command in a process of its own that is held at a point."""

    def __init__(self, process: subprocess.Popen[bytes], reports: int, gate: int) -> None:
        self.process, self._reports, self._gate = process, reports, gate

    def arrived(self, threads: int = 1) -> None:
        """Return once that number of its threads is at the point."""
        for _ in range(threads):
            if not os.read(self._reports, 1):
                code = self.process.wait()
                raise AssertionError(f"it ended with {code} before it was there: {self.errors()}")

    def let_go(self) -> None:
        """Hold nobody any more."""
        if self._gate >= 0:
            os.close(self._gate)
        self._gate = -1

    def line(self) -> str:
        """The next line of its standard error, which it says before it ends."""
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        assert line, f"it ended with {self.process.wait()}"
        assert not line.startswith("Timeout"), line + self.errors()
        return line

    def errors(self) -> str:
        """The rest of its standard error, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


@contextmanager
def held(point: str, words: Sequence[object], at: int = 1, cwd: Path | None = None) -> Iterator[Child]:
    """`edgeconv WORDS` in a process group of its own, where the call number `at` of `point`, and each after it, waits.

    `point` is a function as module:name, or module:Class.name. The child ends by itself, with the stack of its threads,
    where it makes no progress: so a read of what it says needs no limit of its own.
    """
    from command import PROJECT, unmeasured

    reports, reporting = os.pipe()
    waiting, gate = os.pipe()
    process = subprocess.Popen(
        [sys.executable, __file__, point, str(at), str(reporting), str(waiting), *map(str, words)],
        cwd=cwd,
        env=unmeasured() | {"PYTHONPATH": str(PROJECT)},
        pass_fds=(reporting, waiting),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(reporting)
    os.close(waiting)
    child = Child(process, reports, gate)
    try:
        yield child
    finally:
        child.let_go()
        os.close(reports)
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _hold(point: str, at: int, reporting: int, waiting: int) -> None:
    """In the child: say so, and wait, at every call of a function from number `at` on."""
    module, _, names = point.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = names.split(".")
    for each in outer:
        owner = getattr(owner, each)
    call, numbers = getattr(owner, name), itertools.count(1)

    def stop_here(*words: Any, **options: Any) -> Any:
        if next(numbers) >= at:
            os.write(reporting, b".")
            _expect_progress()
            while not select.select([waiting], [], [], LOOK_SECONDS)[0]:  # nobody writes: the other end is closed
                pass  # a signal that came just before a system call is seen between two of them
            _expect_progress()
        return call(*words, **options)

    setattr(owner, name, stop_here)


def _expect_progress() -> None:
    """End with the stack of every thread where this is not called again in time.

    A file in place of its number would be flushed, and what a signal raises during that is dropped.
    """
    faulthandler.dump_traceback_later(patience(), exit=True, file=STANDARD_ERROR)


def _main() -> None:
    """Be the child."""
    point, at, reporting, waiting, *sys.argv[1:] = sys.argv[1:]
    del sys.path[0]  # the folder of the tests, which is not there for a user
    _expect_progress()
    _hold(point, int(at), int(reporting), int(waiting))
    from edgeconv.__main__ import main

    main()


if __name__ == "__main__":
    _main()


class NoThread(threading.Thread):
    """What a system does at its limit of threads."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")
