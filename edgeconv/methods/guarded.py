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

from edgeconv.core.exactness import Arithmetic
from edgeconv.core.problem import Problem
from edgeconv.errors import EdgeconvError, UnavailableError
from edgeconv.methods.base import Method, Plan
from edgeconv.methods.options import Options

LONGEST_REASON = 300
"""Characters of another package's message that are shown."""


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
            self._fault = f"package {package} cannot be loaded ({_said(error)})"
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
            return f"package {self._package} failed when asked whether it can run ({_said(error)})"
        if reason is None or isinstance(reason, str):
            return reason
        return f"package {self._package}: unavailable_reason() gave {type(reason).__name__}, not a sentence or None"

    def prepare(self, problem: Problem, options: Options) -> Plan:
        with self._blamed("prepare()"):
            plan = self._method.prepare(problem, options)
        return self._checked(plan, "prepare()")

    def prepare_batch(self, problem: Problem, pictures: int, options: Options) -> Plan | None:
        with self._blamed("prepare_batch()"):
            plan = self._method.prepare_batch(problem, pictures, options)
        return None if plan is None else self._checked(plan, "prepare_batch()")

    def _checked(self, plan: Any, step: str) -> Plan:
        fault = _fault_of(plan)
        if fault is not None:
            raise UnavailableError(f"{_sentence(self._label)}: {step} gave {fault}: tell its authors.")
        return GuardedPlan(plan, self)

    @contextmanager
    def _blamed(self, step: str) -> Iterator[None]:
        try:
            yield
        except (EdgeconvError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            raise UnavailableError(
                f"{_sentence(self._label)} failed in {step} ({_said(error)}): tell its authors, or use another method."
            ) from error


class GuardedPlan(Plan):
    """A plan of another package: what it says of itself is its own, and so are the faults of its runs."""

    def __init__(self, plan: Plan, method: GuardedMethod) -> None:
        super().__init__(**{entry.name: getattr(plan, entry.name) for entry in fields(Plan)})
        self._plan, self._method = plan, method

    def run(self, image: Any, out: Any) -> None:
        with self._method._blamed("run()"):
            self._plan.run(image, out)


def _fault_of(plan: Any) -> str | None:
    """What is wrong with what a method prepared; everything that reports and checks rely on is looked at."""
    if not isinstance(plan, Plan):
        return f"{type(plan).__name__}, not a Plan"
    if not isinstance(plan.problem, Problem):
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


def _said(error: BaseException) -> str:
    words = " ".join(str(error).split())[:LONGEST_REASON]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
