"""The report of one run, which the JSON beside the picture is.

Field names carry their units; None means not measured or not known here. `edgeconv report --schema run` is made of
these classes; `schema_version` grows when a field changes its meaning or goes. Other records have some of its parts.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeconv.api.figures import (
    PHASES,
    Check,
    Dtype,
    MethodPart,
    Phase,
    ProblemPart,
    RunDevice,
    Speed,
    Throughput,
    TimingPart,
)
from edgeconv.api.figures import sha256_of as sha256_of
from edgeconv.core.cost import Counts
from edgeconv.core.records import (
    Amount,
    Meta,
    Natural,
    Part,
    Positive,
    RecordHead,
    Sha256,
    as_type,
    field,
)

KIND: Literal["run"] = "run"


class InputPart(Part, omit_defaults=True):
    """The picture that was filtered, and its file."""

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


class TilesPart(Part):
    """Only of a picture that was filtered by tiles; then speed is that of a tile."""

    rows: Annotated[Positive, Meta(description="of the output in one tile")]
    columns: Positive
    count: Positive
    piece: Annotated[Positive, Meta(description="side of the pieces that the output file is cut into")]
    passes: Annotated[int, Meta(ge=1, le=2, description="2 for normalize: the range, then the output")]
    chunks: Annotated[Natural, Meta(description="pieces of the input that are needed")]
    chunks_decoded: Annotated[Natural, Meta(description="in all passes, those decoded again counted again")]
    limit_bytes: Positive | None
    planned_bytes: Annotated[Positive, Meta(description="most memory of the process, counted before the first tile")]
    peak_bytes: Annotated[
        Positive | None, Meta(description="most memory of the process, libraries and interpreter included")
    ]
    whole_run_gflops: Annotated[
        Amount | None, Meta(description="nominal FLOPs / whole_run_seconds; null of a chain of stages")
    ]


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
            description="wall time of the one pass that is saved, by tiles summed over all passes; of start the "
            "processor time of the first thread before the first line of the job, as no system keeps when a program "
            "was begun; of set_up what was waited for, as a plan is made while its picture is decoded",
            extra_json_schema={
                "propertyNames": {"enum": list(PHASES)},
                "required": ["decode", "set_up", "convolve", "encode"],
            },
        ),
    ]
    whole_run_seconds: Annotated[
        Amount, Meta(description="file in, file out: the sum of the phases, without samples and check")
    ]
    timing: TimingPart
    counts: Counts
    speed: Speed | None
    peak_bytes: Natural | None
    check: Check | None
    throughput: Annotated[Throughput | None, Meta(description="only of a chain, in the place of `speed`")] = None
    wall_seconds: Annotated[
        Amount | None,
        Meta(description="by the clock up to this report, with samples and check; absent by tiles"),
    ] = None
    tiles: TilesPart | None = None


def describe_layout(shape: tuple[int, ...], dtype: np.dtype[Any], sha256: str | None = None) -> dict[str, Any]:
    """Shape (HWC), type and hash: fields of `InputPart` and `OutputPart`."""
    return {**dict(zip(("height", "width", "channels"), shape, strict=True)), "dtype": dtype.name, "sha256": sha256}


def describe_pixels(pixels: NDArray[Any]) -> dict[str, Any]:
    """The same of a picture in memory."""
    return describe_layout(pixels.shape, pixels.dtype, sha256_of(pixels))


def as_report(record: Any) -> RunReport:
    """A report from what its JSON holds; raises ValueError that says what is wrong where."""
    return as_type(record, RunReport)
