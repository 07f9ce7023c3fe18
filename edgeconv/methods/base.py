"""What a method is: a reason why it cannot run here, or a plan for one problem.

`prepare` does all that happens once (compile, allocate, choose an algorithm); the plan that it returns only
computes. So set-up is timed apart from work by construction, and a second picture of the same shape pays for
neither compile nor allocation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edgeconv.core.chains import ChainProblem
from edgeconv.core.exactness import FLOAT32, Arithmetic
from edgeconv.core.problem import PictureProblem
from edgeconv.errors import MemoryLimitError
from edgeconv.methods.options import Options as Options


@dataclass
class Plan(ABC):
    """One problem made ready on one device: a convolution or a chain of stages.

    `run` may be called any number of times, with any arrays of the problem's shapes and types on that
    device. It does not allocate, does not wait for the device (CUDA work is put on CuPy's current
    stream), and writes every sample of `out`. A plan is not for two threads at once.
    """

    problem: Any
    """A `Problem`, or the `ChainProblem` of a chain."""
    workspace_bytes: int = 0
    """Memory that the plan holds beside input and output."""
    moved_bytes: int | None = None
    """Bytes that the method itself reads and writes in one run by its own design; None where it is not modelled."""
    launches: int | None = None
    """Kernel launches in one run; None on the CPU."""
    arithmetic: Arithmetic = FLOAT32
    """What sums are computed in, from which the bound of the errors follows: see exactness.py."""
    choice: dict[str, Any] = field(default_factory=dict)
    """What the method decided, ready for JSON: tile sizes, algorithm lists, whether equal filters were shared."""
    pictures: int = 1
    """How many pictures one run takes, which lie one behind another; 1: no axis for them."""

    @abstractmethod
    def run(self, image: Any, out: Any) -> None:
        """Filter `image` (problem.input_shape, HWC) into `out` (problem.output_shape), both C-contiguous."""

    def parts(self, image: Any, out: Any) -> dict[str, Callable[[], None]]:
        """What a run consists of, by name, where that is worth timing apart: all of them in order are a run."""
        return {}


class AddressPlan(Plan):
    """A plan that computes from addresses alone, which saves a call most of its time in Python."""

    @abstractmethod
    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        """`run` on arrays that the caller has checked; on a GPU on a stream by its address, CuPy's current if None."""


class Method(ABC):
    """One way to compute the operation on one device. Stateless; its name, device and summary stand in the table."""

    def unavailable_reason(self) -> str | None:
        """Why this machine cannot run the method, as a sentence without a full stop, or None where it can."""
        return None

    def reason(self, problem: PictureProblem, options: Options) -> str | None:
        """Why the method does not compute a problem, as a sentence without a full stop; None where it does.

        Nothing is computed or compiled for the answer.
        """
        return "it computes single filters only" if isinstance(problem, ChainProblem) else None

    @abstractmethod
    def prepare(self, problem: Any, options: Options, pictures: int = 1) -> Plan:
        """Make a plan for a `Problem` or `ChainProblem` for which there is no `reason`; raises MemoryLimitError.

        For a batch of `pictures` the plan takes all of them in one run, or one in each run: `Plan.pictures` says.
        """


def check_workspace(name: str, needed_bytes: int, options: Options, or_else: str = "use --method sliding") -> None:
    """Refuse a plan whose smallest workspace is above the limit, with the bytes needed and the option to raise.

    `or_else` is another way out that the caller knows to work; empty where there is none.
    """
    if needed_bytes > options.workspace_limit_bytes:
        raise MemoryLimitError(
            f"Method '{name}' needs {needed_bytes:,} bytes of workspace and the limit is "
            f"{options.workspace_limit_bytes:,}: raise --workspace-limit{f', or {or_else}' if or_else else ''}."
        )
