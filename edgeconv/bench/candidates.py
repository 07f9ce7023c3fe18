"""What competes at a case: the project's methods, a plain copy (the floor), and peers, all behind one interface.

A candidate is asked for by a word: a name of the table of methods with options behind colons,

    sliding    im2col:gemm=cublas    cudnn:find:math=tf32    textbook:block=8    sliding:threads=1

or `all`: every method that runs here but the reference, which checks the others and competes only by name. A word
whose options concern GPUs alone names nobody on the CPU. A method is its prepared plan alone, put on the device; with
`call=` it is what a caller from Python pays for:

    sliding:call=plan        plan(image, out=out) of edgeconv.plan: checks, and the same run
    sliding:call=convolve    edgeconv.convolve(image, ...): the plan is found again, and a new array is allocated
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.grid import ALL
from edgeconv.core.choices import DeviceName
from edgeconv.core.cost import fetched_bytes
from edgeconv.core.exactness import Arithmetic, is_narrow
from edgeconv.core.option import Option, options_of
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.methods import all_methods, applicable, check_name, find, method_names, require
from edgeconv.methods.base import PicturePlan
from edgeconv.methods.options import Options
from edgeconv.runtime.devices import get_device
from edgeconv.runtime.devices.base import Device

ORACLE = "reference"
Kind = Literal["method", "peer", "copy"]

Call = Literal["plan", "convolve"]
CALLS: tuple[Call, ...] = get_args(Call)
CALL_SETTING = "call="
NARROW = "half precision or less"
"""What a row says of a method whose plan states such an arithmetic; it is set against no other (summary.py)."""


@dataclass
class Ready:
    """A candidate that is set up for one case and holds its input. `run` may be called any number of times."""

    run: Callable[[], Any]
    result: Callable[[], NDArray[Any]]
    """The output of the last run as a host array of the problem's shape and type."""
    problem: Problem
    """What is computed: the case's problem, or for a peer that has another border the problem with that border."""
    arithmetic: Arithmetic | None = None
    """What it computes in; None: what a method of the project would."""
    tolerance: float = 0.0
    """For a peer, whose arithmetic is not known: the share of the largest value that it may be off beside that."""
    output: Callable[[], Any] | None = None
    """The array on the device that holds the output of the last run, where that is not the bench's."""
    differs: str | None = None
    """In what a peer's case is not the very same, for a person."""
    synchronize: Callable[[], Any] | None = None
    """Waits for a run that is not put on the device's current stream; such a run is timed by the host's clock."""
    workspace_bytes: int | None = None
    moved_bytes: int | None = None
    launches: int | None = None
    choice: dict[str, Any] = field(default_factory=dict)
    """What a plan says about itself, as are the three above."""


@dataclass
class Bench:
    """What the candidates of one device share at one case, so that all of them find the caches alike.

    `image` and `out` are other arrays at times (referee/pictures.py): a run looks them up when it runs.
    """

    device: Device
    problem: Problem
    image_host: NDArray[Any]
    """The check's picture, of which candidates that write to `out` see a copy."""
    image: Any
    out: Any
    request: Request

    @cached_property
    def staging(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Host arrays for input (the picture is in it) and output that the device reads and writes fastest."""
        staged_in = self.device.host_empty(self.problem.input_shape, self.problem.dtype)
        np.copyto(staged_in, self.image_host)
        return staged_in, self.device.host_empty(self.problem.output_shape, self.problem.output_dtype)

    def result(self) -> NDArray[Any]:
        """A copy of `out` on the host."""
        host = np.empty(self.problem.output_shape, self.problem.output_dtype)
        self.device.copy_out(self.out, host)
        return host


def share(device: DeviceName, request: Request, image_host: NDArray[Any]) -> Bench:
    """Put the picture on the device and make room for outputs."""
    problem = request.problem(image_host.shape, image_host.dtype)
    processor = get_device(device)
    with processor.guard(problem.input_bytes + problem.output_bytes):
        image = processor.empty(problem.input_shape, problem.dtype)  # on the CPU too: `image_host` is for the check
        processor.copy_in(image_host, image)
        out = processor.empty(problem.output_shape, problem.output_dtype)
    return Bench(processor, problem, image_host, image, out, request)


class BenchCandidate(ABC):
    """One competitor. `label` is its word, unique among the candidates of a device."""

    kind: Kind
    label: str
    name: str
    device: DeviceName
    options: Options

    @abstractmethod
    def unavailable_reason(self) -> str | None:
        """Why it cannot run here, or None."""

    @abstractmethod
    def prepare(self, bench: Bench) -> Ready:
        """Set up for the case of `bench`; raises EdgeconvError where it cannot do it."""


class MethodCandidate(BenchCandidate):
    """A method of the project."""

    kind = "method"

    def __init__(self, label: str, name: str, device: DeviceName, options: Options) -> None:
        self.label, self.name, self.device, self.options = label, name, device, options

    def unavailable_reason(self) -> str | None:
        return find(self.name, self.device).load().unavailable_reason()

    def prepare(self, bench: Bench) -> Ready:
        problem = bench.problem
        with bench.device.guard(self.options.workspace_limit_bytes):
            plan = require(self.name, self.device, self.options).prepare(problem, self.options)
        return _ready(plan, problem, run=lambda: plan.run(bench.image, bench.out), result=bench.result)


class CallCandidate(MethodCandidate):
    """A method as it is called from Python, with an array that lies on the device."""

    def __init__(self, label: str, name: str, device: DeviceName, options: Options, call: Call) -> None:
        super().__init__(label, name, device, options)
        self.call = call

    def prepare(self, bench: Bench) -> Ready:
        from edgeconv.api.convolve import convolve, plan

        request = bench.request
        if request.second_pass(bench.problem.dtype) is not None:
            raise UnavailableError("a call with output mode normalize is more than the other candidates do")
        words: dict[str, Any] = {
            "filter": request.filter,
            "method": self.name,
            "stride": request.stride,
            "padding": request.padding,
            "border": request.border,
            "channels": request.channels,
            "luma": request.luma,
            "output_mode": request.output_mode,
            "device": self.device,
            "options": self.options,
        }
        prepared = plan(bench.problem.input_shape, bench.problem.dtype, **words)
        held: list[Any] = [None]

        def call_plan() -> None:
            prepared(bench.image, out=bench.out)

        def call_convolve() -> None:
            held[0] = convolve(bench.image, **words)

        def result() -> NDArray[Any]:
            host = np.empty(bench.problem.output_shape, bench.problem.output_dtype)
            bench.device.copy_out(bench.out if self.call == "plan" else output(), host)
            return host

        def output() -> Any:
            return held[0].reshape(bench.problem.output_shape)

        if self.call == "plan":
            return _ready(prepared.method_plan, bench.problem, run=call_plan, result=result)
        found = _ready(prepared.method_plan, bench.problem, run=call_convolve, result=result)
        return replace(found, output=output)


def _ready(plan: PicturePlan, problem: Problem, run: Callable[[], None], result: Callable[[], NDArray[Any]]) -> Ready:
    """What a plan says of itself, and how it is run here."""
    return Ready(
        run=run,
        result=result,
        problem=problem,
        arithmetic=plan.arithmetic,
        differs=f"{NARROW}: {plan.arithmetic.name}" if is_narrow(plan.arithmetic) else None,
        workspace_bytes=plan.workspace_bytes,
        moved_bytes=plan.moved_bytes,
        launches=plan.launches,
        choice=plan.choice,
    )


class CopyCandidate(BenchCandidate):
    """The floor: it reads the bytes of the memory lines that the case must read, and writes those of the output."""

    kind = "copy"
    name = label = "copy"

    def __init__(self, device: DeviceName) -> None:
        self.device, self.options = device, Options()

    def unavailable_reason(self) -> str | None:
        return None

    def prepare(self, bench: Bench) -> Ready:
        """See BenchCandidate.prepare: there is no result to check."""
        read_bytes = fetched_bytes(bench.problem, bench.device.line_bytes)
        written_bytes = bench.problem.output_bytes
        moved_bytes = read_bytes + written_bytes
        with bench.device.guard(moved_bytes):
            run = bench.device.floor(read_bytes, written_bytes)
        return Ready(run, lambda: np.empty(0), bench.problem, moved_bytes=moved_bytes)


def method_candidates(words: Iterable[str], device: DeviceName, options: Options) -> list[MethodCandidate]:
    """The methods of `device` that `words` name; raises UsageError for a word that no device has.

    `all` leaves out what cannot run here; a method by name is kept, and its row says why it cannot.
    """
    chosen: dict[str, MethodCandidate] = {}
    for word in words:
        if word == ALL:
            for entry in all_methods():
                if entry.device == device and entry.name != ORACLE:
                    candidate = MethodCandidate(entry.name, entry.name, device, applicable(entry, options))
                    if candidate.unavailable_reason() is None:
                        chosen.setdefault(entry.name, candidate)
            continue
        name, *settings = word.split(":")
        check_name(name, ALL)
        call = _call_of(word, settings)
        settings = [setting for setting in settings if not setting.startswith(CALL_SETTING)]
        changed = _with_settings(word, settings, options)
        concerned = device == "cuda" or not any(map(_is_for_gpus, settings))
        if name in method_names(device) and concerned:
            chosen.setdefault(
                word,
                MethodCandidate(word, name, device, changed)
                if call is None
                else CallCandidate(word, name, device, changed, call),
            )
    return list(chosen.values())


def _call_of(word: str, settings: list[str]) -> Call | None:
    """What `call=` asks for, None where it is not there; raises UsageError for what it does not know."""
    asked = [setting.removeprefix(CALL_SETTING) for setting in settings if setting.startswith(CALL_SETTING)]
    for each in asked:
        if each not in CALLS:
            raise UsageError(f"'{CALL_SETTING}{each}' in '{word}' is not {CALL_SETTING}{'|'.join(CALLS)}.")
    return next((call for call in CALLS if call in asked), None)


def _with_settings(word: str, settings: list[str], options: Options) -> Options:
    """Options with `gemm=cublas`, `math=tf32`, `block=8`, `find` or `threads=1` applied: what the table of them has."""
    known = {entry.spelling: entry for entry in options_of(Options)}
    for setting in settings:
        name, given, value = setting.partition("=")
        entry = known.get(name)
        if entry is None or (entry.type is bool) == bool(given):
            raise UsageError(f"'{setting}' in '{word}' is not one of {', '.join(map(_shape, known.values()))}.")
        try:
            chosen: dict[str, Any] = {entry.name: True if entry.type is bool else entry.read(value)}
            options = replace(options, **chosen)
        except UsageError:
            raise UsageError(f"'{setting}' in '{word}' is not {_shape(entry)}.") from None
    return options


def _shape(entry: Option) -> str:
    """How an option is written in a method: `math=fma|tf32|half`, `find`, `threads=N`."""
    if entry.type is bool:
        return entry.spelling
    return f"{entry.spelling}={'|'.join(map(str, entry.choices)) or 'N'}"


def _is_for_gpus(setting: str) -> bool:
    """Whether a setting says nothing on the CPU."""
    name = setting.partition("=")[0]
    return any(entry.spelling == name and entry.declared.device == "cuda" for entry in options_of(Options))
