"""A method of another package behind a guard: its faults become errors of one line that name the package.

Errors of edgeconv's own classes that it raises on purpose, and memory that ran out, pass as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from typing import Any

from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import Arithmetic
from edgeconv.core.problem import Problem
from edgeconv.errors import EdgeconvError, UnavailableError, one_line_with_class
from edgeconv.methods.base import Method, PicturePlan, Plan
from edgeconv.methods.options import Options


class GuardedMethod(Method):
    """A method of another package; where its class cannot be loaded, that is why it cannot run."""

    def __init__(self, name: str, package: str, location: str) -> None:
        self._label = f"method '{name}' of package {package}"
        self._package = package
        self._fault: str | None = None
        self._method: Any = None
        try:
            module, _, attribute = location.partition(":")
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
            made = found()
        except (Exception, SystemExit) as error:  # whatever its modules raise while they are loaded
            self._fault = f"package {package} cannot be loaded ({one_line_with_class(error)})"
            return
        if isinstance(made, Method):
            self._method = made
        else:
            self._fault = f"package {package}: {location} is no subclass of edgeconv.methods.base.Method"

    def unavailable_reason(self) -> str | None:
        if self._fault is not None:
            return self._fault
        try:
            reason = self._method.unavailable_reason()
        except (Exception, SystemExit) as error:
            return f"package {self._package} failed when asked whether it can run ({one_line_with_class(error)})"
        if reason is None or isinstance(reason, str):
            return reason
        return f"package {self._package}: unavailable_reason() gave {type(reason).__name__}, not a sentence or None"

    def prepare(self, problem: Problem, options: Options) -> Plan:
        return GuardedPlan(self._made("prepare", Plan, Problem, problem, options), self)

    def prepare_batch(self, problem: Problem, pictures: int, options: Options) -> Plan | None:
        plan = self._made("prepare_batch", Plan, Problem, problem, pictures, options)
        return None if plan is None else GuardedPlan(plan, self)

    def chain_reason(self, problem: ChainProblem) -> str | None:
        with self._blamed("chain_reason()"):
            reason = self._method.chain_reason(problem)
        if reason is None or isinstance(reason, str):
            return reason
        raise self._faulty("chain_reason", f"{type(reason).__name__}, not a sentence or None")

    def prepare_chain(self, problem: ChainProblem, options: Options) -> PicturePlan:
        return GuardedChainPlan(self._made("prepare_chain", PicturePlan, ChainProblem, problem, options), self)

    def prepare_chain_batch(self, problem: ChainProblem, pictures: int, options: Options) -> PicturePlan | None:
        plan = self._made("prepare_chain_batch", PicturePlan, ChainProblem, problem, pictures, options)
        return None if plan is None else GuardedChainPlan(plan, self)

    def _made(self, step: str, kind: Any, of: Any, *words: Any) -> Any:
        """What a step of the method prepared, looked at; None, which those for batches may give."""
        with self._blamed(f"{step}()"):
            plan = getattr(self._method, step)(*words)
        if plan is None and step.endswith("batch"):
            return None
        fault = _fault_of(plan, kind, of)
        if fault is not None:
            raise self._faulty(step, fault)
        return plan

    def _faulty(self, step: str, fault: str) -> UnavailableError:
        return UnavailableError(f"{_sentence(self._label)}: {step}() gave {fault}: tell its authors.")

    @contextmanager
    def _blamed(self, step: str) -> Iterator[None]:
        try:
            yield
        except (EdgeconvError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            what = f"{_sentence(self._label)} failed in {step} ({one_line_with_class(error)})"
            raise UnavailableError(f"{what}: tell its authors, or use another method.") from error


class GuardedChainPlan(PicturePlan):
    """A plan of another package: what it says of itself is its own, and so are the faults of its runs."""

    def __init__(self, plan: PicturePlan, method: GuardedMethod) -> None:
        super().__init__(**{entry.name: getattr(plan, entry.name) for entry in fields(PicturePlan)})
        self._plan, self._method = plan, method

    def run(self, image: Any, out: Any) -> None:
        with self._method._blamed("run()"):
            self._plan.run(image, out)


class GuardedPlan(GuardedChainPlan, Plan):
    """That of a convolution."""


def _fault_of(plan: Any, kind: Any, of: Any) -> str | None:
    """What is wrong with what a method prepared; everything that reports and checks rely on is looked at."""
    if not isinstance(plan, kind):
        return f"{type(plan).__name__}, not a {kind.__name__}"
    if not isinstance(plan.problem, of):
        return "a plan without its problem"
    if not isinstance(plan.arithmetic, Arithmetic):
        return "a plan whose arithmetic is no edgeconv.core.exactness.Arithmetic"
    for name, least in (("workspace_bytes", 0), ("moved_bytes", 0), ("launches", 1)):
        value = getattr(plan, name)
        if value is None and name != "workspace_bytes":
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            return f"a plan whose {name} is {value!r}, not a whole number from {least}"
    return None if _fits_json(plan.choice) else "a plan whose choice is no dict that JSON can hold"


def _fits_json(choice: Any) -> bool:
    try:
        json.dumps(choice, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(choice, dict)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
