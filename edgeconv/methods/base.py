"""What a method is: a reason why it cannot run here, or a plan for one problem.

`prepare` does all that happens once (compile, allocate, choose an algorithm); the plan it returns only
computes. So set-up is timed apart from work by construction, and a second picture of the same shape pays for
neither compile nor allocation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DEVICES, DeviceName
from edgeconv.core.exactness import FLOAT32, Arithmetic
from edgeconv.core.problem import PictureProblem, Problem
from edgeconv.errors import MemoryLimitError, UnavailableError
from edgeconv.methods.options import BLOCKS, DEFAULT_BLOCK, MATHS, Block, Gemm, Math, Options

__all__ = [
    "BLOCKS",
    "DEFAULT_BLOCK",
    "DEVICES",
    "MATHS",
    "Block",
    "DeviceName",
    "Gemm",
    "Math",
    "Method",
    "Options",
    "PicturePlan",
    "Plan",
    "check_workspace",
    "refuse",
]
"""What the file of a method needs, its options and devices among it, by one door."""


@dataclass
class PicturePlan(ABC):
    """One problem made ready on one device: a convolution (`Plan`) or a chain of stages.

    `run` may be called any number of times, with any arrays of the problem's shapes and types on that
    device. It does not allocate, does not wait for the device (CUDA work is put on CuPy's current
    stream), and writes every sample of `out`. A plan is not for two threads at once.
    """

    problem: PictureProblem
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

    @abstractmethod
    def run(self, image: Any, out: Any) -> None:
        """Filter `image` (problem.input_shape, HWC) into `out` (problem.output_shape), both C-contiguous."""


@dataclass
class Plan(PicturePlan):
    """A convolution made ready."""

    problem: Problem


class ByAddress(ABC):
    """What a plan has that computes from addresses alone, which saves a call most of its time in Python."""

    @abstractmethod
    def run_at(self, image_address: int, out_address: int, stream: int | None = None) -> None:
        """`run` on arrays that the caller has checked; on a GPU on a stream by its address, CuPy's current if None."""


class AddressPlan(Plan, ByAddress):
    """A convolution that computes from addresses alone."""


class AddressChainPlan(PicturePlan, ByAddress):
    """A chain that computes from addresses alone."""


class Method(ABC):
    """One way to compute the operation on one device. Stateless; its name, device and summary stand in the table."""

    @abstractmethod
    def unavailable_reason(self) -> str | None:
        """Why this machine cannot run the method, as a sentence without a full stop, or None where it can."""

    @abstractmethod
    def prepare(self, problem: Problem, options: Options) -> Plan:
        """Make a plan. Raises UnavailableError where the method cannot do this problem, MemoryLimitError."""

    def chain_reason(self, problem: ChainProblem) -> str | None:
        """Why the method cannot compute a chain, as a sentence without a full stop; None where it can.

        Nothing is computed or compiled for the answer.
        """
        return "it computes single filters only"

    def prepare_chain(self, problem: ChainProblem, options: Options) -> PicturePlan:
        """Make a plan for a chain. Raises as `prepare`; a method whose `chain_reason` is not None raises that."""
        raise refuse_chain(type(self).__name__, str(self.chain_reason(problem)), problem)

    def prepare_chain_batch(self, problem: ChainProblem, pictures: int, options: Options) -> PicturePlan | None:
        """As `prepare_batch`, for a chain."""
        return None

    def prepare_batch(self, problem: Problem, pictures: int, options: Options) -> Plan | None:
        """A plan for so many pictures that lie one behind another, in one run; None where they are run one by one."""
        return None


def check_workspace(name: str, needed_bytes: int, options: Options, or_else: str = "use --method sliding") -> None:
    """Refuse a plan whose smallest workspace is above the limit, with the bytes needed and the option to raise.

    `or_else` is another way out that the caller knows to work; empty where there is none.
    """
    if needed_bytes > options.workspace_limit_bytes:
        raise MemoryLimitError(
            f"Method '{name}' needs {needed_bytes:,} bytes of workspace and the limit is "
            f"{options.workspace_limit_bytes:,}: raise --workspace-limit{f', or {or_else}' if or_else else ''}."
        )


def refuse_chain(name: str, reason: str, problem: ChainProblem) -> UnavailableError:
    """The error for a method asked for by name that cannot compute a chain."""
    return UnavailableError(
        f"Method '{name}' cannot compute the chain '{problem.chain.name}': {reason}. Use --method auto."
    )


def refuse(name: str, reason: str, way_out: str) -> UnavailableError:
    """The error for a method asked for by name that cannot run."""
    return UnavailableError(f"Method '{name}' cannot run here: {reason}. {way_out}")
