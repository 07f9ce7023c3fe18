"""What a method is: a reason why it cannot run here, or a plan for one problem.

`prepare` does all that happens once (compile, allocate, choose an algorithm); the plan it returns only
computes. So set-up is timed apart from work by construction, and a second picture of the same shape pays for
neither compile nor allocation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from edgeconv.core.exactness import FLOAT32, Arithmetic
from edgeconv.core.problem import Problem
from edgeconv.errors import MemoryLimitError, UnavailableError, UsageError

DeviceName = Literal["cpu", "cuda"]
DEVICES: tuple[DeviceName, ...] = get_args(DeviceName)

Math = Literal["fma", "tf32", "half"]
MATHS: tuple[Math, ...] = get_args(Math)

Gemm = Literal["own", "cublas"]
GEMMS: tuple[Gemm, ...] = get_args(Gemm)

Block = Literal[8, 16, 32]
BLOCKS: tuple[Block, ...] = get_args(Block)
DEFAULT_BLOCK: Block = 16

DEFAULT_WORKSPACE_LIMIT = 512 * 2**20

SpecialOption = Literal["math", "gemm", "cudnn_find", "block"]
SPECIAL_OPTIONS: tuple[SpecialOption, ...] = get_args(SpecialOption)
"""Fields of `Options` that only the methods that say so know."""


@dataclass(frozen=True)
class Options:
    """What a user may tell a method beyond the problem.

    Workspace and threads every method takes. The others concern some methods only: which, says their table
    (methods/__init__.py), and any other refuses them.
    """

    workspace_limit_bytes: int = DEFAULT_WORKSPACE_LIMIT
    threads: int | None = None
    """CPU threads; None follows the affinity mask and the container's quota."""
    math: Math = "fma"
    """CUDA: true float32 (`fma`), or `tf32` or `half` tensor cores."""
    gemm: Gemm = "own"
    """CUDA im2col: the project's GEMM, or the vendor's."""
    cudnn_find: bool = False
    """cudnn: also measure every algorithm and take the fastest."""
    block: Block = DEFAULT_BLOCK
    """CUDA textbook: the side of a thread block."""

    def __post_init__(self) -> None:
        for name, words in (("math", MATHS), ("gemm", GEMMS), ("block", BLOCKS)):
            word = getattr(self, name)
            if word not in words:
                raise UsageError(f"--{name} '{word}' is not one of {', '.join(map(str, words))}.")
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise UsageError(f"--threads {self.threads} is not a whole number from 1.")
        if not isinstance(self.workspace_limit_bytes, int) or self.workspace_limit_bytes < 0:
            raise UsageError(f"A workspace limit of {self.workspace_limit_bytes} is not a whole number of bytes.")

    def asked(self) -> dict[SpecialOption, str]:
        """Those of SPECIAL_OPTIONS that are not left as they are, each as a person writes it."""
        words: dict[SpecialOption, str] = {}
        for name in SPECIAL_OPTIONS:
            value, flag = getattr(self, name), "--" + name.replace("_", "-")
            if value != getattr(Options, name):
                words[name] = flag if value is True else f"{flag} {value}"
        return words


@dataclass
class Plan(ABC):
    """One problem made ready on one device.

    `run` may be called any number of times, with any arrays of the problem's shapes and types on that
    device. It does not allocate, does not wait for the device (CUDA work is put on CuPy's current
    stream), and writes every sample of `out`. A plan is not for two threads at once.
    """

    problem: Problem
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


class Method(ABC):
    """One way to compute the operation on one device. Stateless; its name, device and summary stand in the table."""

    @abstractmethod
    def unavailable_reason(self) -> str | None:
        """Why this machine cannot run the method, as a sentence without a full stop, or None where it can."""

    @abstractmethod
    def prepare(self, problem: Problem, options: Options) -> Plan:
        """Make a plan. Raises UnavailableError where the method cannot do this problem, MemoryLimitError."""


def check_workspace(name: str, needed_bytes: int, options: Options, or_else: str = "use --method sliding") -> None:
    """Refuse a plan whose smallest workspace is above the limit, with the bytes needed and the option to raise.

    `or_else` is another way out that the caller knows to work; empty where there is none.
    """
    if needed_bytes > options.workspace_limit_bytes:
        raise MemoryLimitError(
            f"Method '{name}' needs {needed_bytes:,} bytes of workspace and the limit is "
            f"{options.workspace_limit_bytes:,}: raise --workspace-limit{f', or {or_else}' if or_else else ''}."
        )


def refuse(name: str, reason: str, way_out: str) -> UnavailableError:
    """The error for a method asked for by name that cannot run."""
    return UnavailableError(f"Method '{name}' cannot run here: {reason}. {way_out}")
