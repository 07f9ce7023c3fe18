"""How scripts/mutate.py tries a change: tests watched once, then run again in forked processes with the changed module.

    watch         a test file as it is, each line of the modules noting which tests reach it
    serve         tests collected once; for each mutant a fork in which functions get their changed code
    import        for what runs while a module is imported: a process that imports the changed module from the start

Nothing is written into the tree: a mutant lives in the memory of a process, and what tests write goes to a temporary
folder that is removed.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from mutants import Mutant, mutants_of

PLUGIN = "_hypothesis_pytestplugin"
"""The one of pytest's plugins that tests need; loading all others takes longer than most tests."""
SLOWER = 5.0
"""A mutant may take so many times what its tests take without it, and some seconds more; a hang is noticed."""
CANNOT, NO_TEST = 98, 5
"""Exit codes: of a mutant that cannot be put in, and pytest's where there is no test."""
MOST_BYTES = 6 * 2**30
"""What a mutant may allocate."""


@dataclass(frozen=True)
class ForkedJob:
    """Something to do in a forked process; `done` hears of its exit code, None where it took too long."""

    run: Callable[[Path], int]
    seconds: float
    done: Callable[[int | None, Path], None]


def _settings(place: Path) -> list[str]:
    quiet = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", PLUGIN, "--hypothesis-seed=0"]
    return [*quiet, f"--basetemp={place / 'tmp'}"]


def _fork(root: Path, job: ForkedJob, place: Path) -> int:
    """Start a job in a process group of its own, which says everything into a file."""
    place.mkdir()
    sys.stdout.flush()
    number = os.fork()
    if number:
        return number
    code = 99
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        said = os.open(place / "said.txt", os.O_WRONLY | os.O_CREAT)
        for stream, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
            os.dup2(source, stream)
        os.chdir(root)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(place / "hypothesis")
        os.environ |= {"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        sys.path[:0] = [str(root)]
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        code = job.run(place)
    except BaseException as error:  # whatever it is, this process must not go on as a second parent
        print(repr(error), flush=True)
    finally:
        os._exit(code)


def run_all(root: Path, jobs: Iterable[ForkedJob], most: int, folder: Path) -> None:
    """Run jobs, `most` at a time."""
    running: dict[int, tuple[ForkedJob, Path, float]] = {}
    try:
        _run_all(root, iter(jobs), most, folder, running)
    finally:
        for number in running:  # where this process is stopped, or a job's end raises
            _end(number)


def _end(number: int) -> None:
    """Stop a process with whatever its tests have started."""
    with suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)


def _run_all(root: Path, waiting: Iterator[ForkedJob], most: int, folder: Path, running: dict[int, Any]) -> None:
    count = 0
    job = next(waiting, None)
    while job is not None or running:
        while job is not None and len(running) < most:
            place, count = folder / str(count), count + 1
            running[_fork(root, job, place)] = (job, place, time.monotonic() + job.seconds)
            job = next(waiting, None)
        time.sleep(0.01)
        for number, (begun, place, until) in list(running.items()):
            ended, status = os.waitpid(number, os.WNOHANG)
            if not ended and time.monotonic() < until:
                continue
            _end(number)
            if not ended:
                os.waitpid(number, 0)
            del running[number]
            begun.done(os.waitstatus_to_exitcode(status) if ended else None, place)
            shutil.rmtree(place, ignore_errors=True)


class Changed(SourceFileLoader):
    """Gives a module whose code was compiled before, and finds all others as ever."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        super().__init__(name, str(path))
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """The changed code, in place of the file's."""
        return self._code

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The part of a finder on sys.meta_path."""
        spec = PathFinder.find_spec(name, path, target) if name == self.name else None
        if spec is not None:
            spec.loader, spec.cached = self, None
        return spec


class Watcher:
    """A pytest plugin that notes which tests reach which lines of some modules, "" being what is before any test."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.lines: dict[str, defaultdict[int, set[str]]] = {str(path): defaultdict(set) for path in paths}
        self.seconds: Counter[str] = Counter()
        self._test = ""

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        """The global trace function."""
        lines = self.lines.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines[frame.f_lineno].add(self._test)
        return self.trace

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Before the fixtures of a test."""
        self._test = nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Behind each part of a test."""
        self.seconds[report.nodeid] += report.duration


class Chosen:
    """A pytest plugin that leaves out all tests but some, and runs those in their order."""

    def __init__(self, tests: Iterable[str]) -> None:
        self._order = {name: place for place, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sorted as given."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Leave at once: what pytest and Python clean up at the end takes as long as many a test."""
        os._exit(exitstatus)


def watch(root: Path, test_file: str, paths: Iterable[str], place: Path) -> int:
    """In a forked process: run a test file as it is and write down what it reaches of some modules."""
    import pytest

    watcher = Watcher(root / path for path in paths)
    threading.settrace(watcher.trace)
    sys.settrace(watcher.trace)
    code = pytest.main([test_file, *_settings(place)], [watcher])
    sys.settrace(None)
    lines = {path: {n: sorted(names) for n, names in found.items()} for path, found in watcher.lines.items()}
    (place / "reached.json").write_text(json.dumps([lines, watcher.seconds]), "utf-8")
    return int(code)


@dataclass
class Module:
    """A module with its mutants, and what its tests reach."""

    root: Path
    path: str
    tests: tuple[str, ...]
    least_seconds: float = 20.0

    def __post_init__(self) -> None:
        source = (self.root / self.path).read_text("utf-8")
        self.tree = ast.parse(source)
        self.mutants = mutants_of(source, self.tree)
        self.lines: defaultdict[int, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}

    @property
    def name(self) -> str:
        """As it is imported; a package by its folder."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def tests_at(self, mutant: Mutant) -> list[str]:
        """Tests that reach a mutant, the quickest first; then all others where an import reaches it."""
        names = {name for line in range(mutant.first, mutant.last + 1) for name in self.lines[line]}
        chosen = self.seconds if "" in names or self._is_of_the_import(mutant) else names
        return sorted(chosen, key=lambda name: (name not in names, self.seconds[name]))

    def allowed_seconds(self, tests: Iterable[str]) -> float:
        """After which a run counts as hanging."""
        return self.least_seconds + SLOWER * sum(self.seconds[name] for name in tests)

    def learn(self, place: Path) -> None:
        """Read what `watch` wrote."""
        lines, seconds = json.loads((place / "reached.json").read_text("utf-8"))
        for line, names in lines[str(self.root / self.path)].items():
            self.lines[int(line)] |= set(names)
        self.seconds |= seconds

    def _is_of_the_import(self, mutant: Mutant) -> bool:
        """Whether it is outside of functions; of a constant that takes several lines only the first is ever reached."""
        return not mutant.function

    def is_late(self, mutant: Mutant) -> bool:
        """Whether nothing runs it while tests are collected, so that its function can be changed afterwards."""
        lines = range(mutant.first, mutant.last + 1)
        return not self._is_of_the_import(mutant) and not any("" in self.lines[line] for line in lines)

    def compiled(self, mutant: Mutant) -> CodeType:
        """The whole module with the change; once a process."""
        mutant.apply()
        return compile(ast.fix_missing_locations(self.tree), str(self.root / self.path), "exec")

    def import_changed(self, mutant: Mutant, place: Path) -> int:
        """In a process that has not imported the package: run the tests that reach a mutant; 0 where none notices."""
        import pytest

        tests = self.tests_at(mutant)
        sys.meta_path.insert(0, Changed(self.name, self.root / self.path, self.compiled(mutant)))
        files = dict.fromkeys(name.partition("::")[0] for name in tests)
        return int(pytest.main([*files, "-x", *_settings(place)], [Chosen(tests)]))

    def put_in(self, mutant: Mutant) -> bool:
        """Give the functions of the module that was imported their changed code; False where that cannot be."""
        changed: dict[tuple[str, int], CodeType] = {}
        waiting = [self.compiled(mutant)]
        while waiting:
            code = waiting.pop()
            changed[code.co_qualname, code.co_firstlineno] = code
            waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
        found = False
        gc.unfreeze()  # what the tests' conftest.py has frozen is not listed
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename == str(self.root / self.path):
                code = changed[each.__code__.co_qualname, each.__code__.co_firstlineno]
                if code.co_freevars != each.__code__.co_freevars:
                    return False
                found = True
                each.__code__ = code
        return found

    def serve(self, mutants: list[Mutant], place: Path) -> int:
        """In a forked process: collect the tests once, then fork for each mutant; results.json says how each ended."""
        import pytest

        return int(pytest.main([*self.tests, *_settings(place)], [Server(self, mutants, place)]))


class Server:
    """A pytest plugin that runs collected tests again and again, each time in a process with another mutant."""

    def __init__(self, module: Module, mutants: list[Mutant], place: Path) -> None:
        self._module, self._mutants, self._place = module, mutants, place

    def pytest_runtestloop(self, session: Any) -> bool:
        """In place of pytest's own loop."""
        results: dict[int, int | None] = {}
        items = {item.nodeid: item for item in session.items}

        def job(number: int, mutant: Mutant) -> ForkedJob:
            tests = self._module.tests_at(mutant)

            def run(place: Path) -> int:
                if not self._module.put_in(mutant):
                    return CANNOT
                chosen = [items[name] for name in tests if name in items]
                for item, after in zip(chosen, [*chosen[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                    if session.testsfailed:
                        return 1
                return 0

            def done(code: int | None, place: Path) -> None:
                results[number] = code

            return ForkedJob(run, self._module.allowed_seconds(tests), done)

        (self._place / "each").mkdir()
        run_all(self._module.root, (job(*pair) for pair in enumerate(self._mutants)), 1, self._place / "each")
        (self._place / "results.json").write_text(json.dumps(results), "utf-8")
        return True
