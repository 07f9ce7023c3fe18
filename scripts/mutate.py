"""Change the package in one small place at a time and see whether its tests notice.

    python3 scripts/mutate.py --sample 30 --seed 1 --record FILE.json    so many changes of each module
    python3 scripts/mutate.py --module edgeconv/core/geometry.py              every change of one module

Modules and their tests are listed in tests/mutants.toml. A mutant that no test notices must stand in
tests/mutants_equivalent.toml with a reason. Exit code 1: one that does not, an entry of that file that fits no mutant,
or a score (noticed / all that ran) below --floor. What is changed: mutants.py; how it is tried: mutant_runs.py; how to
read what comes out: docs/testing.md.
"""

from __future__ import annotations

import json
import platform
import random
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from script_options import PROJECT, Arguments, stopped

sys.path[:0] = [str(PROJECT / "scripts")]

from mutant_runs import CANNOT, NO_TEST, PLUGIN, ForkedJob, Module, run_all, watch  # noqa: E402
from mutants import Mutant  # noqa: E402

MODULES, EXPLAINED = "tests/mutants.toml", "tests/mutants_equivalent.toml"
WARM = "numpy cv2 PIL.Image hypothesis.extra.numpy matplotlib.figure tifffile jsonschema typer zarr llvmlite.binding"
"""Imported once, before any fork."""
KINDS = ("mutants", "ran", "noticed", "hung", "explained", "lived")
WATCH_SECONDS, SERVE_SECONDS = 900.0, 7200.0


@dataclass
class Result:
    """What became of a mutant."""

    module: Module
    mutant: Mutant
    noticed: bool
    hung: bool = False


def run_modules(modules: list[Module], sample: int | None, seed: int, jobs: int) -> list[Result]:
    """What became of all mutants, or of `sample` of each module."""
    results: list[Result] = []
    root = modules[0].root

    def watched(test_file: str) -> ForkedJob:
        watching = [module for module in modules if test_file in module.tests]

        def done(code: int | None, place: Path) -> None:
            if code != 0:
                raise stopped(f"{test_file} fails as it is:\n{(place / 'said.txt').read_text('utf-8')[-3000:]}")
            for module in watching:
                module.learn(place)

        paths = [module.path for module in watching]
        return ForkedJob(lambda place: watch(root, test_file, paths, place), WATCH_SECONDS, done)

    def ended(module: Module, mutant: Mutant, code: int | None) -> None:
        results.append(Result(module, mutant, code not in (0, NO_TEST), code is None))
        if not results[-1].noticed:
            print(f"{module.path}: {mutant.function}: {mutant.line}\n    {mutant.change}", flush=True)

    def served(module: Module) -> ForkedJob:
        chosen = module.mutants
        if sample is not None and sample < len(chosen):
            chosen = random.Random(f"{seed} {module.path}").sample(chosen, sample)
        for mutant in chosen:
            if not module.tests_at(mutant):
                ended(module, mutant, NO_TEST)
        reached = [mutant for mutant in chosen if module.tests_at(mutant)]
        late = [mutant for mutant in reached if module.is_late(mutant)]
        others.extend((module, mutant) for mutant in reached if not module.is_late(mutant))

        def done(code: int | None, place: Path) -> None:
            if code not in (0, NO_TEST):
                raise stopped(f"{module.path}: {(place / 'said.txt').read_text('utf-8')[-3000:]}")
            found = json.loads((place / "results.json").read_text("utf-8")) if late else {}
            for number, mutant in enumerate(late):
                if found[str(number)] == CANNOT:
                    others.append((module, mutant))
                else:
                    ended(module, mutant, found[str(number)])

        return ForkedJob(lambda place: module.serve(late, place), SERVE_SECONDS, done)

    def imported(module: Module, mutant: Mutant) -> ForkedJob:
        def done(code: int | None, place: Path) -> None:
            ended(module, mutant, code)

        return ForkedJob(
            lambda place: module.import_changed(mutant, place), module.allowed_seconds(module.tests_at(mutant)), done
        )

    others: list[tuple[Module, Mutant]] = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        files = dict.fromkeys(name for module in modules for name in module.tests)
        for name, work in (
            ("watch", map(watched, files)),
            ("serve", map(served, modules)),
            ("import", (imported(*pair) for pair in others)),
        ):
            (Path(folder) / name).mkdir()
            run_all(root, work, jobs, Path(folder) / name)
    return results


def explained(root: Path) -> dict[tuple[str, str, str, str], str]:
    """The reasons why mutants may live, by module, function, line and change."""
    path = root / EXPLAINED
    entries = tomllib.loads(path.read_text("utf-8")).get("mutant", []) if path.exists() else []
    return {(each["module"], each["function"], each["line"], each["change"]): each["reason"] for each in entries}


def stale(modules: Iterable[Module], reasons: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Entries of the file that fit no mutant of these modules."""
    known = {(module.path, *mutant.key) for module in modules for mutant in module.mutants}
    paths = {module.path for module in modules}
    return [" | ".join(key) for key in reasons if key[0] in paths and key not in known]


def summary(results: list[Result], reasons: Iterable[tuple[str, str, str, str]]) -> dict[str, dict[str, int | float]]:
    """Counts by module, and of all."""
    found: dict[str, Counter[str]] = {}
    known = set(reasons)
    for result in results:
        kind = (
            "noticed"
            if result.noticed
            else "explained"
            if (result.module.path, *result.mutant.key) in known
            else "lived"
        )
        for name in (result.module.path, "all"):
            counts = found.setdefault(name, Counter(dict.fromkeys(KINDS, 0)))
            counts.update(["ran", kind, *(["hung"] if result.hung else [])])
    for module in {id(result.module): result.module for result in results}.values():
        for name in (module.path, "all"):
            found[name]["mutants"] += len(module.mutants)
    return {
        name: {**counts, "score_percent": round(100 * counts["noticed"] / counts["ran"], 1)}
        for name, counts in sorted(found.items())
    }


def record_of(path: Path, counts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What `path` holds with the counts of some modules put in, and the sums of all."""
    old = json.loads(path.read_text("utf-8"))["modules"] if path.exists() else {}
    modules = dict(sorted({**old, **counts}.items()))
    total = {name: sum(each[name] for each in modules.values()) for name in KINDS}
    names = ("numpy", "pytest", "hypothesis", "opencv-python-headless")
    return {
        "schema_version": 1,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "all": {**total, "score_percent": round(100 * total["noticed"] / total["ran"], 1)},
        "modules": modules,
    }


def exit_code(total: Mapping[str, int | float], unfit: list[str], floor: float) -> int:
    """1 where anything is unexplained, explained in vain, or too little noticed."""
    return int(bool(unfit) or total["lived"] > 0 or total["score_percent"] < floor)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = Arguments(__doc__)
    parser.add_argument("--sample", type=int, help="Mutants of each module. Default: all.")
    parser.add_argument("--seed", type=int, default=1, help="Which mutants are drawn.")
    parser.add_argument("--module", action="append", help="Only this path of the table; may be repeated.")
    parser.add_argument("--tests", nargs="+", help="Test files, for a module that is not in the table.")
    parser.add_argument("--root", type=Path, default=PROJECT, help="Folder of the modules.")
    parser.add_argument("--jobs", type=int, default=2, help="Processes at once.")
    parser.add_argument("--least-seconds", type=float, default=20.0, help="What any mutant may take.")
    parser.add_argument("--floor", type=float, default=85.0, help="Least score in per cent.")
    parser.add_argument("--record", type=Path, help="Write the counts of these modules to this file, as JSON.")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that processes and temporary files are cleared away
    for name in (*(WARM.split() if asked.root == PROJECT else ()), PLUGIN):
        import_module(name)
    table = tomllib.loads((PROJECT / MODULES).read_text("utf-8"))
    modules = [
        Module(asked.root, path, tuple(asked.tests or table[path]), asked.least_seconds)
        for path in asked.module or table
    ]
    reasons = explained(asked.root)
    results = run_modules(modules, asked.sample, asked.seed, asked.jobs)
    counts, unfit = summary(results, reasons), stale(modules, reasons)
    for name, each in counts.items():
        print(
            f"{each['score_percent']:5.1f} %  {each['noticed']:4} of {each['ran']:4}  {each['lived']:3} lived  {name}"
        )
    print(*(f"no such mutant: {text}" for text in unfit), sep="\n")
    if asked.record:
        sampled = {"seed": asked.seed, "sample": asked.sample}
        known = {name: {**each, **sampled} for name, each in counts.items() if name != "all"}
        asked.record.write_text(json.dumps(record_of(asked.record, known), indent=1) + "\n", "utf-8")
    return exit_code(counts["all"], unfit, asked.floor)


if __name__ == "__main__":
    sys.exit(main())
