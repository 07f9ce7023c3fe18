"""The report of one run: its parts, and how each is filled from what a run found.

Field names carry their units; None means not measured or not known here. `edgeconv report --schema run` is made of
these classes; `schema_version` grows when a field changes its meaning or goes. Other records have some of its parts.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.core.chains import CHAIN_BORDER, Chain, ChainProblem
from edgeconv.core.choices import Border, Channels, DeviceName, Gradient, Luma, OutputMode, ThresholdRule
from edgeconv.core.cost import Counts, Roof, Speed, Throughput
from edgeconv.core.filters import Combine, Filter
from edgeconv.core.problem import Problem
from edgeconv.core.records import (
    Amount,
    Meta,
    Moment,
    Natural,
    Part,
    Positive,
    Sha256,
    Share,
    as_type,
    field,
    finite,
)
from edgeconv.core.records import to_json as to_json
from edgeconv.core.request import Request
from edgeconv.core.timing import LEAST_SAMPLES, Series, StopReason
from edgeconv.methods import find
from edgeconv.methods.base import PicturePlan
from edgeconv.methods.options import Options
from edgeconv.run.tiled.verify_output import OutputComparison
from edgeconv.runtime.auto import Choice
from edgeconv.runtime.check import Check
from edgeconv.runtime.devices.base import L2State

SCHEMA_VERSION = 1
KIND: Literal["run"] = "run"

Phase = Literal["start", "decode", "set_up", "host_to_device", "convolve", "device_to_host", "threshold", "encode"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""In the order they happen; a phase that a device does not have is absent."""

Dtype = Literal["uint8", "uint16", "float16", "float32", "float64"]
BoundBy = Literal["memory", "arithmetic"]
LeftOut = Literal["normalize", "threshold", "normalize and threshold"]


class RecordHead(Part):
    """What every record begins with."""

    schema_version: Literal[1]
    edgeconv_version: str
    created_utc: Moment
    kind: str


class InputPart(Part, omit_defaults=True):
    """The picture that was filtered; by tiles with the identity of its file."""

    file: str
    format: str
    notes: list[str]
    height: Positive
    width: Positive
    channels: Literal[1, 3]
    dtype: Dtype
    sha256: Annotated[
        Sha256 | None,
        Meta(description="of the pixels, HWC; null where the picture was never in memory as a whole"),
    ]
    file_bytes: Positive | None = None
    file_sha256: Sha256 | None = None


class OutputFilePart(Part):
    """One file of several that a filter bank gives."""

    filter: str
    file: str
    file_bytes: Positive
    file_sha256: Sha256


class OutputPart(Part, omit_defaults=True):
    """The picture that was written, or those of a filter bank."""

    file: Annotated[str, Meta(description="of a bank in several files the name that theirs are made from")]
    file_bytes: Annotated[Positive, Meta(description="of all files together")]
    file_sha256: Annotated[Sha256 | None, Meta(description="null where there are several files, in `files`")]
    height: Positive
    width: Positive
    channels: Annotated[
        Positive, Meta(description="of all pictures: c·K + k is channel c of the picture of filter k of a bank of K")
    ]
    dtype: Dtype
    sha256: Sha256 | None
    files: Annotated[
        list[OutputFilePart], Meta(description="only of a bank in several files, in the order of its filters")
    ] = field(default_factory=list)


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


SAMPLE_DIGITS = 4
"""Significant digits of a sample in a record: finer than a sample is like the next. Medians have all of theirs."""


class SeriesPart(Part):
    """Statistics of a series, every sample, and why the sampling stopped."""

    median_seconds: Amount
    p10_seconds: Annotated[Amount | None, Meta(description="null of fewer than 5 samples, as p90_seconds")]
    p90_seconds: Amount | None
    min_seconds: Amount
    n: Positive
    stopped_because: StopReason
    samples_seconds: Annotated[list[Amount], Meta(min_length=1)]

    @property
    def spread_seconds(self) -> tuple[float, float] | None:
        """p10 and p90; None of fewer than `LEAST_SAMPLES`, of which older records have them too."""
        if self.p10_seconds is None or self.p90_seconds is None or self.n < LEAST_SAMPLES:
            return None
        return self.p10_seconds, self.p90_seconds


class TimingPart(Part):
    """Cold and warm times of the plan."""

    kernel_clock: Annotated[
        Literal["CUDA events", "host"], Meta(description="cold and end-to-end times are the host's on every device")
    ]
    leaves_out: Annotated[
        LeftOut | None,
        Meta(
            description="passes that the check does not cover: threshold, which no times but its phase cover, and "
            "normalize, which by tiles kernel and end_to_end do not cover; no speed then"
        ),
    ]
    l2_state: L2State
    cold_seconds: Annotated[Amount, Meta(description="first run of the plan")]
    kernel: Annotated[SeriesPart | None, Meta(description="by tiles: those of the full size after the first")]
    end_to_end: Annotated[
        SeriesPart | None,
        Meta(description="host array in, host array out; null on the CPU, where it is the kernel's own time"),
    ]


class CountsPart(Part):
    """FLOPs and bytes of a problem."""

    nominal_flops: Natural
    useful_flops: Natural
    fewest_bytes: Natural
    intensity_flops_per_byte: Amount


class SpeedPart(Part):
    """Rates and shares, and the roof that they are shares of."""

    kernel_gflops: Annotated[Amount, Meta(description="nominal FLOPs / median kernel time")]
    useful_gflops: Amount
    gigabytes_per_second: Amount
    memory_floor_share: Amount | None
    roofline_share: Amount | None
    bound_by: BoundBy | None
    end_to_end_gflops: Amount
    roof: Roof | None


class ThroughputPart(Part):
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


class WorstPart(Part):
    """The sample with the largest error; null for what is no finite number."""

    y: Natural
    x: Natural
    channel: Natural
    got: float | None
    expected: float | None


class CheckPart(Part):
    """The comparison with the oracle; null for an infinite error."""

    passed: bool
    tolerance: Annotated[
        Amount,
        Meta(description="largest error that was allowed, relative to the largest value; 0 where equality was asked"),
    ]
    max_abs_error: Amount | None
    relative_error: Amount | None
    differing_samples: Natural
    unexplained_samples: Natural
    checked_samples: Natural
    checked_share: Share
    worst: WorstPart | None
    exact: Annotated[bool, Meta(description="the sums are exact for this picture type and these weights")] = False
    arithmetic: str = ""
    """Empty in records from before bounds were derived."""
    bound_by_channel: Annotated[
        list[Amount | None],
        Meta(description="largest error of each output channel before it is stored; null where there is no bound"),
    ] = field(default_factory=list)


class DifferencePart(Part):
    """The first sample that differs."""

    y: Natural
    x: Natural
    channel: Natural
    written: str
    expected: str


class ProofPart(Part):
    """Of --verify-tiles: the output, read back from its file."""

    against: Literal["whole picture", "other tiles"]
    passed: bool
    compared_samples: Natural
    differing_samples: Natural
    first: DifferencePart | None
    seconds: Amount


class TilesPart(Part):
    """Only of a picture that was filtered by tiles; then speed is that of a tile."""

    rows: Annotated[Positive, Meta(description="of the output in one tile")]
    columns: Positive
    count: Positive
    piece: Annotated[Positive, Meta(description="side of the pieces that the output file is cut into")]
    passes: Annotated[int, Meta(ge=1, le=2, description="2 for normalize: the range, then the output")]
    chunks: Annotated[Natural, Meta(description="pieces of the input that are needed")]
    chunks_decoded: Annotated[Natural, Meta(description="in all passes, those decoded again counted again")]
    waited_for_decode_seconds: Amount
    waited_for_encode_seconds: Amount
    limit_bytes: Positive | None
    planned_bytes: Annotated[Positive, Meta(description="most memory of the process, counted before the first tile")]
    peak_bytes: Annotated[
        Positive | None, Meta(description="most memory of the process, libraries and interpreter included")
    ]
    whole_run_gflops: Annotated[
        Amount | None, Meta(description="nominal FLOPs / whole_run_seconds; null of a chain of stages")
    ]
    proof: ProofPart | None


class RunFigures(Part):
    """What holds with or without files: problem, method, device, times, speed and check."""

    problem: ProblemPart
    method: MethodPart
    device: RunDevice
    versions: dict[str, str]
    phases_seconds: dict[Phase, Amount]
    whole_run_seconds: Amount
    timing: TimingPart
    counts: CountsPart
    speed: SpeedPart | None
    peak_bytes: Natural | None
    check: CheckPart | None
    throughput: ThroughputPart | None = None


class RunReport(RecordHead, omit_defaults=True):
    """One picture filtered by one method. Names of fields carry units; null: not measured, or not known here."""

    kind: Literal["run"]
    input: InputPart
    output: OutputPart
    problem: ProblemPart
    method: MethodPart
    device: RunDevice
    versions: dict[str, str]
    phases_seconds: Annotated[
        dict[Phase, Amount],
        Meta(
            description="wall time of the one pass that is saved; by tiles summed over all passes",
            extra_json_schema={
                "propertyNames": {"enum": list(PHASES)},
                "required": ["decode", "set_up", "convolve", "encode"],
            },
        ),
    ]
    whole_run_seconds: Annotated[
        Amount, Meta(description="file in, file out: the sum of the phases, without samples, roof and check")
    ]
    timing: TimingPart
    counts: CountsPart
    speed: SpeedPart | None
    peak_bytes: Natural | None
    check: CheckPart | None
    throughput: Annotated[ThroughputPart | None, Meta(description="only of a chain, in the place of `speed`")] = None
    wall_seconds: Annotated[
        Amount | None,
        Meta(description="by the clock up to this report, with samples, roof and check; absent by tiles"),
    ] = None
    tiles: TilesPart | None = None


# --- filled -------------------------------------------------------------------------------------------------------


def header() -> dict[str, Any]:
    """The fields of `RecordHead` but for the kind, of now."""
    return {
        "schema_version": SCHEMA_VERSION,
        "edgeconv_version": __version__,
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def sha256_of(pixels: NDArray[Any]) -> str:
    """Hash of the samples in memory order (HWC, native byte order), without shape or type."""
    return hashlib.sha256(np.ascontiguousarray(pixels).data.cast("B")).hexdigest()


def describe_filter(chosen: Filter | Chain) -> FilterPart:
    """Name, joining rule and the kernels themselves, or the stages of a chain."""
    if isinstance(chosen, Chain):
        part = ChainPart(list(chosen.stages), chosen.gradient, chosen.low, chosen.high, chosen.rule)
        return FilterPart(name=chosen.name, combine="chain", kernels=[], chain=part)
    return FilterPart(name=chosen.name, combine=chosen.combine, kernels=chosen.kernels.tolist())


def describe_pixels(pixels: NDArray[Any]) -> dict[str, Any]:
    """Shape, type and hash of a picture: fields of `InputPart` and `OutputPart`."""
    height, width, channels = pixels.shape
    size = {"height": height, "width": width, "channels": channels}
    return {**size, "dtype": pixels.dtype.name, "sha256": sha256_of(pixels)}


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


def describe_throughput(rates: Throughput, end_to_end_pixels_per_second: float, roof: Roof | None) -> ThroughputPart:
    """Rates of a chain, and the roof that they are shares of."""
    return ThroughputPart(
        **asdict(rates),
        end_to_end_pixels_per_second=end_to_end_pixels_per_second,
        counted=COUNTED_OF_A_CHAIN,
        roof=roof,
    )


def describe_method(choice: Choice, asked_for: str, options: Options, plan: PicturePlan) -> MethodPart:
    """The method, why it was taken, and what its plan says about itself."""
    return MethodPart(
        name=choice.method,
        asked_for=asked_for,
        why=choice.why,
        options=options,
        workspace_bytes=plan.workspace_bytes,
        moved_bytes=plan.moved_bytes,
        launches=plan.launches,
        choice=plan.choice,
        package=find(choice.method, choice.device).package,
    )


def left_out(request: Request, dtype: np.dtype[Any]) -> LeftOut | None:
    """The passes behind the method for a picture of `dtype`."""
    normalizes, masks = request.mode_for(dtype) == "normalize", request.threshold is not None
    if normalizes and masks:
        return "normalize and threshold"
    return "normalize" if normalizes else "threshold" if masks else None


def describe_device(kind: DeviceName, facts: dict[str, Any]) -> RunDevice:
    """What a device says about itself."""
    return RunDevice(**facts, kind=kind)


def describe_series(series: Series) -> SeriesPart:
    """Statistics, every sample, and why sampling stopped."""
    found = asdict(series.statistics)
    samples = [float(f"{seconds:.{SAMPLE_DIGITS}g}") for seconds in series.samples_seconds]
    return SeriesPart(**found, stopped_because=series.stopped_because, samples_seconds=samples)


def describe_counts(counts: Counts) -> CountsPart:
    """FLOPs and bytes."""
    return CountsPart(**asdict(counts), intensity_flops_per_byte=counts.intensity_flops_per_byte)


def describe_speed(speed: Speed, end_to_end_gflops: float, roof: Roof | None) -> SpeedPart:
    """Rates and shares, and the roof that they are shares of."""
    return SpeedPart(**asdict(speed), end_to_end_gflops=end_to_end_gflops, roof=roof)


def describe_check(check: Check | None) -> CheckPart | None:
    """The comparison with the oracle."""
    if check is None:
        return None
    found = asdict(check)
    found["bound_by_channel"] = [finite(bound) for bound in check.bound_by_channel]
    for name in ("max_abs_error", "relative_error"):
        found[name] = finite(found[name])
    if check.worst is not None:
        worst = {**found["worst"], "got": finite(check.worst.got), "expected": finite(check.worst.expected)}
        found["worst"] = WorstPart(**worst)
    return CheckPart(**found)


def describe_proof(proof: OutputComparison) -> ProofPart:
    """The comparison of the file with a second computation."""
    return ProofPart(
        against=proof.against,
        passed=proof.passed,
        compared_samples=proof.compared_samples,
        differing_samples=proof.differing_samples,
        first=None if proof.first is None else DifferencePart(**asdict(proof.first)),
        seconds=proof.seconds,
    )


def as_report(record: Any) -> RunReport:
    """A report from what its JSON holds; raises ValueError that says what is wrong where."""
    return as_type(record, RunReport)
