"""What a user may tell a method beyond the problem: one line each, and the method's own code.

A line says the type, the default, the help, and which methods it concerns. From it come the option on every command
that runs methods, its control in the window, its spelling in `edgeconv bench` (`im2col:gemm=cublas`), the field in
reports, and the refusal by every method that it does not concern. It stands here and not with the other options
(edgeconv/options.py), because methods import nothing above them. The standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from edgeconv.core.option import Option, option, options_of
from edgeconv.errors import UsageError

Math = Literal["fma", "tf32", "half"]
MATHS: tuple[Math, ...] = get_args(Math)

Gemm = Literal["own", "cublas"]

Block = Literal[8, 16, 32]
BLOCKS: tuple[Block, ...] = get_args(Block)
DEFAULT_BLOCK: Block = 16

DEFAULT_WORKSPACE_LIMIT = 512 * 2**20


@dataclass(frozen=True)
class Options:
    """What a user may tell a method beyond the problem.

    Options without `methods` hold for every method. The others concern those alone, and any other method refuses them.
    """

    workspace_limit_bytes: int = option(
        DEFAULT_WORKSPACE_LIMIT,
        "Most memory for a method beside the pictures: bytes, or with K, M or G.",
        "--workspace-limit",
        text="512M",
        keeps_output=True,
    )
    threads: int | None = option(None, "CPU threads. Default: what this process may use.", keeps_output=True)
    math: Math = option("fma", "arithmetic, {choices}; fma is true float32.", methods=("cudnn",), device="cuda")
    gemm: Gemm = option("own", "the project's GEMM (own) or the vendor's (cublas).", methods=("im2col",), device="cuda")
    cudnn_find: bool = option(
        False, "measure every algorithm and take the fastest.", methods=("cudnn",), device="cuda", spelled="find"
    )
    block: Block = option(
        DEFAULT_BLOCK,
        "side of a thread block, {choices}.",
        methods=("textbook",),
        device="cuda",
        keeps_output=True,
    )

    def __post_init__(self) -> None:
        for entry in options_of(Options):
            entry.check(getattr(self, entry.name), f"{entry.name}=")
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 1):
            raise UsageError(f"--threads {self.threads} is not a whole number from 1.")
        if not isinstance(self.workspace_limit_bytes, int) or self.workspace_limit_bytes < 0:
            raise UsageError(f"A workspace limit of {self.workspace_limit_bytes} is not a whole number of bytes.")

    def asked(self) -> dict[str, str]:
        """The options of single methods that are not left at their defaults, each as a person writes it."""
        written: dict[str, str] = {}
        for entry in special_options():
            value = getattr(self, entry.name)
            if value != entry.default:
                written[entry.name] = entry.flag if value is True else f"{entry.flag} {value}"
        return written


def special_options() -> tuple[Option, ...]:
    """The options that concern some methods only."""
    return tuple(entry for entry in options_of(Options) if entry.methods)
