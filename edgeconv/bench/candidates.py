"""What competes at a case: the project's methods, a plain copy (the floor), and peers, all behind one interface.

A method is asked for by a word, its name with options behind colons (`im2col:gemm=cublas`, `cudnn:find:math=tf32`), or
by `all`: every method that runs here but the reference, which checks the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.grid import ALL
from edgeconv.bench.record import Kind
from edgeconv.core.choices import DeviceName
from edgeconv.core.cost import fetched_bytes
from edgeconv.core.exactness import Arithmetic, is_narrow
from edgeconv.core.option import options_of
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.errors import UsageError
from edgeconv.hardware.device import Device
from edgeconv.hardware.devices import get_device
from edgeconv.methods import all_methods, check_name, find, method_names, prepare
from edgeconv.methods.options import Options

ORACLE = "reference"
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
    differs: str | None = None
    """In what a peer's case is not the very same, for a person."""
    synchronize: Callable[[], Any] | None = None
    """Waits for a run that is not put on the device's current stream; such a run is timed by the host's clock."""
    about: dict[str, Any] = field(default_factory=dict)
    """What it says about itself, by the names of a row: `workspace_bytes`, `moved_bytes`, `launches`, `choice`."""


@dataclass
class Bench:
    """What the candidates of one device share at one case, so that all of them find the caches alike.

    `image` and `out` are other arrays at times (referee.py): a run looks them up when it runs.
    """

    device: Device
    problem: Problem
    image_host: NDArray[Any]
    """The check's picture, of which candidates that write to `out` see a copy."""
    image: Any
    out: Any
    request: Request

    def once(self, ready: Ready) -> None:
        """One run, waited for."""
        ready.run()
        (ready.synchronize or self.device.synchronize)()

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy of an array of the device, or of a part of one, on the host."""
        host = np.empty(array.shape, array.dtype)
        self.device.copy_out(self.device.array_module.ascontiguousarray(array), host)
        return host


def share(device: DeviceName, request: Request, image_host: NDArray[Any]) -> Bench:
    """Put the picture on the device, in an array of its own on the CPU too, and make room for outputs."""
    processor, problem = get_device(device), request.problem(image_host.shape, image_host.dtype)
    image, out = make_room(processor, problem)
    processor.copy_in(image_host, image)
    return Bench(processor, problem, image_host, image, out, request)


def make_room(device: Device, problem: Problem) -> tuple[Any, Any]:
    """Arrays of the device for a picture and an output."""
    with device.guard(problem.input_bytes + problem.output_bytes):
        image = device.empty(problem.input_shape, problem.dtype)
        return image, device.empty(problem.output_shape, problem.output_dtype)


class BenchCandidate(ABC):
    """One competitor. `label` is its word, unique among the candidates of a device."""

    kind: Kind
    label: str
    name: str
    device: DeviceName
    options: Options = Options()

    def unavailable_reason(self) -> str | None:
        """Why it cannot run here, or None."""
        return None

    @abstractmethod
    def prepare(self, bench: Bench) -> Ready:
        """Set up for the case of `bench`; raises EdgeconvError where it cannot do it."""


class MethodCandidate(BenchCandidate):
    """A method of the project: its prepared plan alone."""

    kind = "method"

    def __init__(self, label: str, name: str, device: DeviceName, options: Options) -> None:
        self.label, self.name, self.device, self.options = label, name, device, options

    def unavailable_reason(self) -> str | None:
        return find(self.name, self.device).unavailable_reason()

    def prepare(self, bench: Bench) -> Ready:
        with bench.device.guard(self.options.workspace_limit_bytes):
            plan = prepare(self.name, self.device, bench.problem, self.options)
        return Ready(
            run=lambda: plan.run(bench.image, bench.out),
            result=lambda: bench.to_host(bench.out),
            problem=bench.problem,
            arithmetic=plan.arithmetic,
            differs=f"{NARROW}: {plan.arithmetic.name}" if is_narrow(plan.arithmetic) else None,
            about={name: getattr(plan, name) for name in ("workspace_bytes", "moved_bytes", "launches", "choice")},
        )


class CopyCandidate(BenchCandidate):
    """The floor: it reads the bytes of the memory lines that the case must read, and writes those of the output."""

    kind = "copy"
    name = label = "copy"

    def __init__(self, device: DeviceName) -> None:
        self.device = device

    def prepare(self, bench: Bench) -> Ready:
        """See BenchCandidate.prepare: there is no result to check."""
        read_bytes = fetched_bytes(bench.problem, bench.device.line_bytes)
        written_bytes = bench.problem.output_bytes
        moved_bytes = read_bytes + written_bytes
        with bench.device.guard(moved_bytes):
            run = bench.device.floor(read_bytes, written_bytes)
        return Ready(run, lambda: np.empty(0), bench.problem, about={"moved_bytes": moved_bytes})


def method_candidates(words: Iterable[str], device: DeviceName) -> list[MethodCandidate]:
    """The methods of `device` that `words` name; raises UsageError for a word that no device has.

    `all` leaves out what cannot run here; a method by name is kept, and its row says why it cannot.
    """
    chosen: dict[str, MethodCandidate] = {}
    for word in words:
        for candidate in _all_here(device) if word == ALL else _named(word, device):
            chosen.setdefault(candidate.label, candidate)
    return list(chosen.values())


def _all_here(device: DeviceName) -> list[MethodCandidate]:
    """Every method that runs on the device, but the reference."""
    entries = [entry for entry in all_methods() if entry.device == device and entry.name != ORACLE]
    found = [MethodCandidate(entry.name, entry.name, device, Options()) for entry in entries]
    return [candidate for candidate in found if candidate.unavailable_reason() is None]


def _named(word: str, device: DeviceName) -> list[MethodCandidate]:
    """The method of a word; none where the device lacks it, or where its options concern GPUs alone."""
    name, chosen = read_word(word)
    check_name(name, ALL)
    elsewhere = {entry.name for entry in options_of(Options) if entry.device not in (None, device)}
    here = name in method_names(device) and not chosen.keys() & elsewhere
    return [MethodCandidate(word, name, device, Options(**chosen))] if here else []


def read_word(word: str) -> tuple[str, dict[str, Any]]:
    """The name in a word, and its options by name; raises UsageError for an option that there is not."""
    name, *settings = word.split(":")
    known = {entry.spelling: entry for entry in options_of(Options)}
    chosen: dict[str, Any] = {}
    for setting in settings:
        spelling, given, value = setting.partition("=")
        entry = known.get(spelling)
        if entry is not None and (entry.type is bool) != bool(given):  # a flag takes no value, all others do
            chosen[entry.name] = entry.read(value) if given else True
        else:
            shapes = [each if known[each].type is bool else f"{each}=" for each in known]
            raise UsageError(f"'{setting}' in '{word}' is not one of {', '.join(shapes)}.")
    return name, chosen
