"""What a plan is measured to do, as records: each fact is one class, which JSON takes as it is.

Field names carry their units; None means not measured or not known here. The limit of a time is the floor: the longer
of fewest bytes / copy bandwidth and useful FLOPs / FMA rate.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.check import Check as Check
from edgeconv.api.figures_text import three_lines
from edgeconv.core.chains import CHAIN_BORDER, Chain, ChainProblem
from edgeconv.core.choices import Border, Channels, DeviceName, Gradient, Luma, OutputMode, ThresholdRule
from edgeconv.core.cost import Counts
from edgeconv.core.filters import Combine, Filter
from edgeconv.core.problem import Problem
from edgeconv.core.records import Amount, Meta, Natural, Part, Positive, field
from edgeconv.core.request import LastPasses, Request
from edgeconv.core.timing import Series
from edgeconv.hardware.device import L2State, Roof
from edgeconv.methods.options import Options

Phase = Literal["start", "decode", "set_up", "host_to_device", "convolve", "device_to_host", "threshold", "encode"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""In the order they happen; a phase that a device does not have is absent."""

Dtype = Literal["uint8", "uint16", "float16", "float32", "float64"]


class ChainPart(Part):
    """The stages of a chain and their settings."""

    stages: list[str]
    gradient: Annotated[Gradient, Meta(description="magnitudes: l1 is |gx| + |gy|, l2 sqrt(gx² + gy²)")]
    low: Annotated[Amount | None, Meta(description="thresholds of hysteresis, in units of the gradient")]
    high: Amount | None
    rule: Annotated[
        ThresholdRule | None, Meta(description="how the thresholds were found in the picture; null where given")
    ]


class FilterPart(Part, omit_defaults=True):
    """A filter and its kernels, or a chain and its stages."""

    name: str
    combine: Combine | Literal["chain"]
    kernels: Annotated[
        list[Any],
        Meta(
            description="directions × 3 × 3, or of a bank directions × filters × channels × 3 × 3; none of a chain, "
            "whose stages stand in `chain`"
        ),
    ]
    chain: ChainPart | None = None


class ProblemPart(Part, omit_defaults=True):
    """Filter and rules."""

    filter: FilterPart
    channels: Channels
    luma: Luma | None
    stride: Positive
    padding: Natural
    border: Border
    output_mode: OutputMode
    threshold: Annotated[
        Amount | None, Meta(description="of a mask, in units of the finished samples; absent where there is none")
    ] = None


class MethodPart(Part):
    """The method, why it was taken, and what it needs."""

    name: str
    asked_for: str
    why: str
    options: Options
    workspace_bytes: Natural
    moved_bytes: Annotated[Natural | None, Meta(description="what the method reads and writes by its own design")]
    launches: Positive | None
    choice: Annotated[
        dict[str, Any], Meta(description="what the method decided; cudnn: the ranked list and what was taken")
    ]
    package: Annotated[
        str, Meta(description="name and version of the package that offers the method; empty for edgeconv itself")
    ] = ""


class DeviceFacts(Part, omit_defaults=True):
    """A processor; what it does not have or say is absent."""

    name: str
    machine: str | None = None
    usable_threads: int | None = None
    governor: str | None = None
    compute_capability: str | None = None
    multiprocessors: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    free_memory_bytes: int | None = None
    driver_cuda_version: int | None = None
    runtime_cuda_version: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    throttle_reasons_mask: int | None = None
    temperature_celsius: int | None = None
    power_watts: float | None = None
    driver_version: str | None = None


class RunDevice(DeviceFacts, omit_defaults=True, kw_only=True):
    """The processor of a run."""

    kind: DeviceName


class TimingPart(Part, omit_defaults=True):
    """Cold and warm times of the plan."""

    kernel_clock: Annotated[
        Literal["CUDA events", "host"], Meta(description="cold and end-to-end times are the host's on every device")
    ]
    leaves_out: Annotated[
        LastPasses | None,
        Meta(
            description="passes that the check does not cover: threshold, which no times but its phase cover, and "
            "normalize, which by tiles kernel and end_to_end do not cover; no speed then"
        ),
    ]
    l2_state: L2State
    cold_seconds: Annotated[Amount, Meta(description="first run of the plan")]
    kernel: Annotated[Series | None, Meta(description="by tiles: those of the full size after the first")]
    end_to_end: Annotated[
        Series | None,
        Meta(description="host array in, host array out; null on the CPU, where it is the kernel's own time"),
    ]
    parts_seconds: Annotated[
        dict[str, Amount], Meta(description="medians of what a run consists of, each by itself; of staged cudnn")
    ] = field(default_factory=dict)


BoundBy = Literal["memory", "arithmetic"]


class Speed(Part):
    """Rates of a measured time, shares of the roof where it is a limit, and the roof."""

    kernel_gflops: Annotated[Amount, Meta(description="nominal FLOPs / median kernel time")]
    useful_gflops: Amount
    gigabytes_per_second: Amount
    memory_floor_share: Amount | None
    roofline_share: Amount | None
    bound_by: BoundBy | None
    end_to_end_gflops: Amount
    roof: Roof | None


class Throughput(Part):
    """Rates of a chain of stages, for which FLOPs per second would mean nothing: most of its time is comparisons."""

    pixels_per_second: Annotated[Amount, Meta(description="pixels of the picture / median kernel time")]
    gigabytes_per_second: Annotated[Amount, Meta(description="fewest bytes / median kernel time")]
    memory_floor_share: Annotated[
        Amount | None, Meta(description="time of a copy of the fewest bytes / median kernel time")
    ]
    end_to_end_pixels_per_second: Amount
    counted: Annotated[str, Meta(description="what the FLOPs in `counts` are")]
    roof: Roof | None


COUNTED_OF_A_CHAIN = (
    "multiply-adds of smoothing and derivatives; comparisons of thinning and hysteresis are not counted"
)


class RunFigures(Part):
    """What holds with or without files: problem, method, device, times, speed and check."""

    problem: ProblemPart
    method: MethodPart
    device: RunDevice
    versions: dict[str, str]
    phases_seconds: dict[Phase, Amount]
    whole_run_seconds: Amount
    timing: TimingPart
    counts: Counts
    speed: Speed | None
    peak_bytes: Natural | None
    check: Check | None
    throughput: Throughput | None = None

    def __str__(self) -> str:
        return three_lines(self)


# --- filled -------------------------------------------------------------------------------------------------------


def sha256_of(pixels: NDArray[Any]) -> str:
    """Hash of the samples in memory order (HWC, native byte order), without shape or type."""
    return hashlib.sha256(np.ascontiguousarray(pixels).data.cast("B")).hexdigest()


def describe_filter(chosen: Filter | Chain) -> FilterPart:
    """Name, joining rule and the kernels themselves, or the stages of a chain."""
    if isinstance(chosen, Chain):
        part = ChainPart(list(chosen.stages), chosen.gradient, chosen.low, chosen.high, chosen.rule)
        return FilterPart(name=chosen.name, combine="chain", kernels=[], chain=part)
    return FilterPart(name=chosen.name, combine=chosen.combine, kernels=chosen.kernels.tolist())


def describe_problem(request: Request, problem: Problem | ChainProblem) -> ProblemPart:
    """Filter and rules; those of a chain are what its stages do."""
    chained = isinstance(problem, ChainProblem)
    return ProblemPart(
        filter=describe_filter(request.filter),
        channels=request.channels,
        luma=request.luma if request.channels == "luma" else None,
        stride=request.stride,
        padding=request.padding,
        border=CHAIN_BORDER if chained else request.border,
        output_mode=request.mode_for(problem.dtype),
        threshold=request.threshold,
    )


ROUNDING = 1e-9
"""Of two divisions."""


def share_of_limit(share: float | None) -> float | None:
    """The share of a limit that a run reached; None above 1, where it was no limit of this run."""
    return None if share is None or share > 1 + ROUNDING else min(share, 1.0)


def throughput(
    problem: ChainProblem, counts: Counts, seconds: float, end_to_end_seconds: float, roof: Roof | None
) -> Throughput:
    """Rates of a kernel that took `seconds`, and its share of the time of a copy of the fewest bytes."""
    floor = None if roof is None else counts.fewest_bytes / roof.copy_bytes_per_second
    pixels = problem.height * problem.width
    return Throughput(
        pixels_per_second=pixels / seconds,
        gigabytes_per_second=counts.fewest_bytes / seconds / 1e9,
        memory_floor_share=None if floor is None else share_of_limit(floor / seconds),
        end_to_end_pixels_per_second=pixels / end_to_end_seconds,
        counted=COUNTED_OF_A_CHAIN,
        roof=roof,
    )


def speed(counts: Counts, seconds: float, end_to_end_seconds: float, roof: Roof | None) -> Speed:
    """GFLOPS, GB/s and shares of the floor for a kernel that took `seconds`."""
    memory_share = roofline_share = None
    bound_by: BoundBy | None = None
    if roof is not None:
        memory_floor = counts.fewest_bytes / roof.copy_bytes_per_second
        arithmetic_floor = counts.useful_flops / roof.fma_flops_per_second
        memory_share = share_of_limit(memory_floor / seconds)
        roofline_share = share_of_limit(max(memory_floor, arithmetic_floor) / seconds)
        bound_by = "memory" if memory_floor >= arithmetic_floor else "arithmetic"
    return Speed(
        kernel_gflops=counts.nominal_flops / seconds / 1e9,
        useful_gflops=counts.useful_flops / seconds / 1e9,
        gigabytes_per_second=counts.fewest_bytes / seconds / 1e9,
        memory_floor_share=memory_share,
        roofline_share=roofline_share,
        bound_by=bound_by,
        end_to_end_gflops=counts.nominal_flops / end_to_end_seconds / 1e9,
        roof=roof,
    )
