"""The record of one run, as a plain dictionary that goes to JSON, and its short table for a person.

Field names carry their units. The shape is fixed by `report.schema.json` in this package (JSON Schema 2020-12);
`schema_version` grows when a field changes its meaning or goes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv import __version__
from edgeconv.core.cost import Counts, Roof, Speed
from edgeconv.core.filters import Filter
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.safe_text import visible, visible_lines
from edgeconv.core.timing import Series
from edgeconv.core.units import digits_text, seconds_text
from edgeconv.io.files import utf8
from edgeconv.runtime.check import Check

SCHEMA_VERSION = 1

PHASES = ("start", "decode", "set_up", "host_to_device", "convolve", "device_to_host", "encode")
"""In the order they happen; a phase that a device does not have is absent."""


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    text = files("edgeconv.run").joinpath("report.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def sha256_of(pixels: NDArray[Any]) -> str:
    """Hash of the samples in memory order (HWC, native byte order), without shape or type."""
    return hashlib.sha256(np.ascontiguousarray(pixels).data.cast("B")).hexdigest()


def describe_filter(chosen: Filter) -> dict[str, Any]:
    """Name, joining rule and the kernels themselves."""
    return {"name": chosen.name, "combine": chosen.combine, "kernels": chosen.kernels.tolist()}


def describe_pixels(pixels: NDArray[Any]) -> dict[str, Any]:
    """Shape, type and hash of a picture."""
    height, width, channels = pixels.shape
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "dtype": pixels.dtype.name,
        "sha256": sha256_of(pixels),
    }


def describe_problem(request: Request, problem: Problem) -> dict[str, Any]:
    """Filter and rules."""
    return {
        "filter": describe_filter(request.filter),
        "channels": request.channels,
        "luma": request.luma if request.channels == "luma" else None,
        "stride": request.stride,
        "padding": problem.padding,
        "border": problem.border,
        "output_mode": request.mode_for(problem.dtype),
    }


def describe_series(series: Series) -> dict[str, Any]:
    """Statistics, every sample, and why sampling stopped."""
    return {
        **asdict(series.statistics),
        "stopped_because": series.stopped_because,
        "samples_seconds": list(series.samples_seconds),
    }


def describe_counts(counts: Counts) -> dict[str, Any]:
    """FLOPs and bytes."""
    return {**asdict(counts), "intensity_flops_per_byte": counts.intensity_flops_per_byte}


def describe_speed(speed: Speed, end_to_end_gflops: float, roof: Roof | None) -> dict[str, Any]:
    """Rates and shares, and the roof that they are shares of."""
    return {
        **asdict(speed),
        "end_to_end_gflops": end_to_end_gflops,
        "roof": None if roof is None else asdict(roof),
    }


def describe_check(check: Check | None) -> dict[str, Any] | None:
    """The comparison with the oracle; infinite errors become null, which JSON can hold."""
    if check is None:
        return None
    record = asdict(check)
    record["bound_by_channel"] = [bound if np.isfinite(bound) else None for bound in check.bound_by_channel]
    for name in ("max_abs_error", "relative_error"):
        if not np.isfinite(record[name]):
            record[name] = None
    if record["worst"] is not None:
        record["worst"] = {name: value if np.isfinite(value) else None for name, value in record["worst"].items()}
    return record


def header() -> dict[str, Any]:
    """What every record begins with."""
    return {
        "schema_version": SCHEMA_VERSION,
        "edgeconv_version": __version__,
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def to_json(report: dict[str, Any]) -> bytes:
    """UTF-8, two spaces, keys in the order of the record; raises ValueError on NaN."""
    return utf8(visible_lines(json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


# --- for a person -----------------------------------------------------------------------------------------------


ABOVE_THE_ROOF = {
    "memory": "above the roof: the picture lay in a cache, and the roof is that of memory",
    "arithmetic": "above the roof: 8-bit arithmetic, or a machine that was busy while its float32 roof was measured",
}


def table(report: dict[str, Any]) -> str:
    """The report in about a dozen lines."""
    rows = _picture_rows(report) + _time_rows(report) + _speed_rows(report) + _check_rows(report) + _tile_rows(report)
    widest = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{widest}}  {visible(value)}" for name, value in rows)


def _picture_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    source, result, problem = report["input"], report["output"], report["problem"]
    method, device = report["method"], report["device"]

    def size(picture: dict[str, Any]) -> str:
        return f"{picture['width']}×{picture['height']}×{picture['channels']} {picture['dtype']}"

    rows = [
        ("picture", f"{source['file']}  {size(source)}"),
        *(("note", note) for note in source["notes"]),
        ("output", f"{result['file']}  {size(result)}"),
        (
            "filter",
            f"{problem['filter']['name']}, channels {problem['channels']}, stride {problem['stride']}, "
            f"padding {problem['padding']} {problem['border']}, output {problem['output_mode']}",
        ),
        ("method", f"{method['name']} on {device['name']} ({method['why']})"),
    ]
    return rows


def _time_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    phases = "  ".join(f"{name} {seconds_text(value)}" for name, value in report["phases_seconds"].items())
    rows = [("phases", f"{phases}; whole run {seconds_text(report['whole_run_seconds'])}")]
    timing = report["timing"]
    cold = f"cold {seconds_text(timing['cold_seconds'])}"
    kernel = timing["kernel"]
    if kernel is None:
        return [*rows, ("kernel", f"{cold}; no samples were asked for")]
    spread = f"p10 {seconds_text(kernel['p10_seconds'])}, p90 {seconds_text(kernel['p90_seconds'])}, n {kernel['n']}"
    warm = f"median {seconds_text(kernel['median_seconds'])} ({spread}, L2 {timing['l2_state']})"
    rows.append(("kernel", f"{cold}; {warm}"))
    if timing["end_to_end"] is not None:
        rows.append(("end to end", f"{seconds_text(timing['end_to_end']['median_seconds'])}, host array to host array"))
    return rows


def _speed_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    speed, workspace = report["speed"], report["method"]["workspace_bytes"]
    if speed is None:
        return [("workspace", f"{workspace:,} bytes")]
    rows = [
        (
            "speed",
            f"{digits_text(speed['kernel_gflops'], 4)} GFLOPS "
            f"(end to end {digits_text(speed['end_to_end_gflops'], 4)}), "
            f"{digits_text(speed['gigabytes_per_second'], 4)} GB/s",
        )
    ]
    roof = speed["roof"]
    if roof is not None:
        copy, fma = (digits_text(roof[f"{name}_per_second"] / 1e9, 4) for name in ("copy_bytes", "fma_flops"))
        shares = (
            f"{speed['roofline_share']:.0%} (bound by {speed['bound_by']}), memory {speed['memory_floor_share']:.0%}"
        )
        rows.append(("roofline", f"{shares}; measured here {copy} GB/s copy, {fma} GFLOPS float32"))
        if speed["roofline_share"] > 1:
            rows.append(("note", ABOVE_THE_ROOF[speed["bound_by"]]))
    return [*rows, ("workspace", f"{workspace:,} bytes")]


def _check_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    check = report["check"]
    if check is None:
        return [("check", "not asked for")]
    verdict = "right" if check["passed"] else "WRONG"
    error = "infinite" if check["relative_error"] is None else f"{check['relative_error']:.2g}"
    absolute = "infinite" if check["max_abs_error"] is None else f"{check['max_abs_error']:.3g}"
    if not check["checked_samples"]:
        return [("check", "nothing to check: every output reaches a pixel that is no finite number")]
    before = " (before normalize)" if report["timing"]["leaves_out"] else ""
    extent = f"{check['checked_samples']:,} samples checked ({check['checked_share']:.2g} of the output)"
    found = f"{verdict}{before}: largest error {absolute} ({error} relative) against float64; {extent}"
    if "arithmetic" not in check:  # a report from before bounds were derived
        return [("check", found)]
    return [("check", found), ("exactness", exactness_text(check))]


def exactness_text(check: dict[str, Any]) -> str:
    """How exact the method's arithmetic is, for a person."""
    if check["exact"]:
        return f"exact ({check['arithmetic']}): every sample must be equal to the rounded oracle"
    bounds = (f"{bound:.2g}" if bound is not None else "none" for bound in check["bound_by_channel"])
    of = f"of each output channel in this picture before it is stored ({check['arithmetic']})"
    return f"error bound {of}: {', '.join(bounds)}"


def _tile_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Only of a picture that was filtered by tiles."""
    tiles = report.get("tiles")
    if tiles is None:
        return []
    again = tiles["chunks_decoded"] / tiles["passes"] / max(1, tiles["chunks"])
    waits = (f"{stage} {seconds_text(tiles[f'waited_for_{stage}_seconds'])}" for stage in ("decode", "encode"))
    peak = "not known here" if tiles["peak_bytes"] is None else _mebibytes(tiles["peak_bytes"])
    limit = "no limit" if tiles["limit_bytes"] is None else f"limit {_mebibytes(tiles['limit_bytes'])}"
    rows = [
        (
            "tiles",
            f"{tiles['count']:,} of {tiles['columns']}×{tiles['rows']}, {tiles['passes']} "
            f"pass{'es' if tiles['passes'] > 1 else ''}, each piece of the input decoded {again:.3g} times; "
            f"speed is that of one tile, the whole run {digits_text(tiles['whole_run_gflops'], 4)} GFLOPS; waited for "
            f"{', '.join(waits)}",
        ),
        ("memory", f"peak {peak} of the process, planned {_mebibytes(tiles['planned_bytes'])}, {limit}"),
    ]
    proof = tiles["proof"]
    if proof is not None:
        first = proof["first"]
        found = (
            "the same, byte for byte"
            if first is None
            else f"DIFFERENT in {proof['differing_samples']:,}, first (y {first['y']}, x {first['x']}, "
            f"channel {first['channel']}): {first['written']} in the file, {first['expected']} expected"
        )
        against = f"{proof['compared_samples']:,} samples of the file against {proof['against']}"
        rows.append(("proof", f"{found}; {against} in {seconds_text(proof['seconds'])}"))
    return rows


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
