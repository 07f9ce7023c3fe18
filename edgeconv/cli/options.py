"""Words that several commands read in the same way."""

from __future__ import annotations

from pathlib import Path

from edgeconv.core.filters import DEFAULT_FILTER, Filter, named_filter, parse_kernel
from edgeconv.errors import UsageError
from edgeconv.io.kernel_file import read_kernel
from edgeconv.io.read_limits import ReadRules
from edgeconv.methods.base import DEFAULT_BLOCK, Options

SIZE_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def parse_bytes(text: str, option: str = "") -> int:
    """A number of bytes: `1048576`, `1024K`, `512M`, `2G` or `2GiB` (powers of two).

    Raises UsageError, which begins with the name of the `option`.
    """
    short = text[:-2] if text[-2:].upper() == "IB" and text[-3:-2].upper() in SIZE_UNITS else text
    digits, unit = (short[:-1], short[-1:].upper()) if short[-1:].upper() in SIZE_UNITS else (short, "")
    if not digits.isdecimal():
        raise UsageError(f"{option} '{text}' is not a number of bytes: write 512M, 2G or a whole number.".lstrip())
    return int(digits) * SIZE_UNITS.get(unit, 1)


def parse_jobs(text: str) -> int | None:
    """`auto` as None, or a whole number from 1."""
    if text == "auto":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--jobs '{text}' is not auto or a whole number from 1.")
    return int(text)


def check_sampling(samples: int, seconds: float) -> None:
    """Raise UsageError for a number of timed runs below 0, or a time for them that is not above 0."""
    if samples < 0:
        raise UsageError(f"--samples {samples} is not a whole number from 0.")
    if not seconds > 0:
        raise UsageError(f"--time-limit {seconds:g} is not a number of seconds above 0.")


def chosen_filter(name: str, kernel: str | None, kernel_file: str | None) -> Filter:
    """The one filter that `--filter`, `--kernel` and `--kernel-file` name."""
    if kernel is not None and kernel_file is not None:
        raise UsageError("--kernel and --kernel-file exclude each other.")
    own = kernel if kernel is not None else kernel_file
    if own is not None and name != DEFAULT_FILTER:
        raise UsageError("--filter excludes --kernel and --kernel-file.")
    if kernel is not None:
        return parse_kernel(kernel)
    if kernel_file is not None:
        return read_kernel(Path(kernel_file))
    return named_filter(name)


def parse_options(
    workspace_limit: str, threads: int | None, math: str, gemm: str, cudnn_find: bool, block: int = DEFAULT_BLOCK
) -> Options:
    """Method options from their words."""
    return Options(
        workspace_limit_bytes=parse_bytes(workspace_limit, "--workspace-limit"),
        threads=threads,
        math=math,  # type: ignore[arg-type]
        gemm=gemm,  # type: ignore[arg-type]
        cudnn_find=cudnn_find,
        block=block,  # type: ignore[arg-type]
    )


def parse_read_rules(max_pixels: int, max_bytes: str, strict: bool) -> ReadRules:
    """Which pictures are refused, from their words."""
    return ReadRules(max_pixels, parse_bytes(max_bytes, "--max-bytes"), strict)
