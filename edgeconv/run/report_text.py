"""The report of a run for a person: three lines, or all of it as a table of about a dozen.

Both are rows of a label and a text. Whoever prints them chooses colours and breaks long texts (cli/printing.py).
"""

from __future__ import annotations

from edgeconv.api.check import size_of
from edgeconv.api.figures import Check, ProblemPart, RunFigures
from edgeconv.api.figures_text import NOTHING_TO_CHECK, before, errors, found_text, speed_text, throughput_text
from edgeconv.core.chains import Chain
from edgeconv.core.exactness import LEVEL_OFF, LEVEL_OFF_BELOW
from edgeconv.core.output import threshold_text
from edgeconv.core.text import TextRow, digits_text, seconds_text, share_text
from edgeconv.run.report import InputPart, OutputPart, RunReport

NO_LIMIT = "no limit of this run: it was faster than its copy, or its arithmetic is narrower than float32"
MAX_NAMES = 4
"""Files of a bank that are named in a line."""
MAX_BOUNDS = 6
"""Output channels whose bounds are named in a line."""

Measured = RunReport | RunFigures


def summary(report: RunReport) -> list[TextRow]:
    """What was written, how fast beside the floor, and whether it is right; a note for what a reader should know."""
    result = report.output
    measured = report.timing.kernel is not None or report.check is not None
    wall = f", {seconds_text(report.wall_seconds)} with measuring" if measured and report.wall_seconds else ""
    size = f"{result.width}×{result.height} {result.dtype}"
    why = report.method.why.rpartition("; ")[2]
    instead = f"; by {report.method.name}, as {why}" if "does not compute" in why else ""
    written = f"{_files_text(result)}  {size}, {seconds_text(report.whole_run_seconds)}{wall}{instead}"
    rows = [TextRow("wrote", written), TextRow("speed", speed_text(report)), _verdict(report)]
    return rows + [TextRow("note", note, "note") for note in report.input.notes]


def table(report: RunReport) -> list[TextRow]:
    """The report in about a dozen lines."""
    source, result, problem, method = report.input, report.output, report.problem, report.method
    phases = "  ".join(f"{name} {seconds_text(value)}" for name, value in report.phases_seconds.items())
    wall = report.wall_seconds
    whole = seconds_text(report.whole_run_seconds)
    whole += "" if wall is None else f"; {seconds_text(wall)} with timed runs and check"
    threshold = "" if problem.threshold is None else f", threshold {threshold_text(problem.threshold)}"
    package = f" of package {method.package}" if method.package else ""
    return [
        TextRow("picture", f"{source.file}  {_size_text(source)}"),
        *(TextRow("note", note, "note") for note in source.notes),
        TextRow("output", f"{_files_text(result)}  {_size_text(result)}"),
        TextRow(
            "filter",
            f"{chain_text(problem) or problem.filter.name}, channels {problem.channels}, stride {problem.stride}, "
            f"padding {problem.padding} {problem.border}, output {problem.output_mode}{threshold}",
        ),
        TextRow("method", f"{method.name}{package} on {report.device.name} ({method.why})"),
        TextRow("phases", f"{phases}; whole run {whole}"),
        *_time_rows(report),
        *_speed_rows(report),
        TextRow("workspace", f"{method.workspace_bytes:,} bytes"),
        *_check_rows(report),
        *_tile_rows(report),
    ]


def measured(report: Measured) -> list[TextRow]:
    """Times, speed and what the check found: of the report what is known with or without files."""
    check = report.check
    if check is None:
        return [*_time_rows(report), *_speed_rows(report)]
    found = found_text(report, check) if check.checked_samples else NOTHING_TO_CHECK
    return [*_time_rows(report), *_speed_rows(report), TextRow("check", found)]


def chain_text(problem: ProblemPart) -> str:
    """The stages of a chain and its thresholds: `canny (sobel, thin, hysteresis; l1, thresholds 50 to 150)`."""
    part = problem.filter.chain
    if part is None:
        return ""
    chain = Chain(problem.filter.name, tuple(part.stages), part.gradient, part.low, part.high, part.rule)
    return f"{chain.name} ({chain.text})"


def _size_text(picture: InputPart | OutputPart) -> str:
    files = len(picture.files) if isinstance(picture, OutputPart) else 0
    each = f"{picture.width}×{picture.height}×{picture.channels // max(1, files)} {picture.dtype}"
    return f"{each} each" if files else each


def _files_text(result: OutputPart) -> str:
    """The file, or of a bank in several their number and names, as far as they go on a line."""
    names = [each.file for each in result.files]
    if not names:
        return result.file
    shown = names if len(names) <= MAX_NAMES else [*names[: MAX_NAMES - 1], "…", names[-1]]
    return f"{len(names)} files: {', '.join(shown)}"


# --- times --------------------------------------------------------------------------------------------------------


def _time_rows(report: Measured) -> list[TextRow]:
    timing, kernel = report.timing, report.timing.kernel
    cold = f"cold {seconds_text(timing.cold_seconds)}"
    if kernel is None:
        return [TextRow("kernel", f"{cold}; no samples were asked for")]
    ends = zip(("p10", "p90"), kernel.spread_seconds or (), strict=False)
    spread = "".join(f"{name} {seconds_text(seconds)}, " for name, seconds in ends)
    warm = f"median {seconds_text(kernel.median_seconds)} ({spread}n {kernel.n}, L2 {timing.l2_state})"
    rows = [TextRow("kernel", f"{cold}; {warm}")]
    if timing.end_to_end is not None:
        end_to_end = seconds_text(timing.end_to_end.median_seconds)
        rows.append(TextRow("end to end", f"{end_to_end}, host array to host array"))
    if timing.parts_seconds:
        parts = (f"{name} {seconds_text(seconds)}" for name, seconds in timing.parts_seconds.items())
        rows.append(TextRow("parts", f"{', '.join(parts)}, each by itself"))
    return rows


def _speed_rows(report: Measured) -> list[TextRow]:
    speed, rates = report.speed, report.throughput
    if rates is not None:
        end_to_end = digits_text(rates.end_to_end_pixels_per_second / 1e6, 4)
        per_second = digits_text(rates.gigabytes_per_second, 4)
        return [
            TextRow("speed", f"{throughput_text(report)} (end to end {end_to_end}), {per_second} GB/s"),
            TextRow("counted", f"{report.counts.nominal_flops:,} FLOPs: {rates.counted}"),
        ]
    if speed is None:
        return []
    gflops, end_to_end = (digits_text(rate, 4) for rate in (speed.kernel_gflops, speed.end_to_end_gflops))
    per_second = digits_text(speed.gigabytes_per_second, 4)
    rows = [TextRow("speed", f"{gflops} nominal GFLOPS (end to end {end_to_end}), {per_second} GB/s")]
    roof, share, memory = speed.roof, speed.roofline_share, speed.memory_floor_share
    if roof is not None:
        copy, fma = (digits_text(rate / 1e9, 4) for rate in (roof.copy_bytes_per_second, roof.fma_flops_per_second))
        of_memory = "" if memory is None else f", memory {share_text(memory)}"
        shares = NO_LIMIT if share is None else f"{share_text(share)} (bound by {speed.bound_by}){of_memory}"
        rows.append(
            TextRow("roofline", f"{shares}; measured here {copy} GB/s copy, {fma} GFLOPS of float32 multiply-adds")
        )
    return rows


def _tile_rows(report: RunReport) -> list[TextRow]:
    """Only of a picture that was filtered by tiles."""
    tiles = report.tiles
    if tiles is None:
        return []
    again = tiles.chunks_decoded / tiles.passes / max(1, tiles.chunks)
    decoded = "once" if again == 1 else f"{again:.3g} times"
    gflops = tiles.whole_run_gflops
    whole_run = "" if gflops is None else f", the whole run {digits_text(gflops, 4)} nominal GFLOPS"
    peak = "not known here" if tiles.peak_bytes is None else _mebibytes(tiles.peak_bytes)
    limit = "no limit" if tiles.limit_bytes is None else f"limit {_mebibytes(tiles.limit_bytes)}"
    return [
        TextRow(
            "tiles",
            f"{tiles.count:,} of {tiles.columns}×{tiles.rows}, {tiles.passes} pass{'es' if tiles.passes > 1 else ''}, "
            f"each piece of the input decoded {decoded}; speed is that of one tile{whole_run}",
        ),
        TextRow("memory", f"peak {peak} of the process, planned {_mebibytes(tiles.planned_bytes)}, {limit}"),
    ]


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


# --- right or wrong -----------------------------------------------------------------------------------------------


def _verdict(report: RunReport) -> TextRow:
    check = report.check
    if check is None or not check.checked_samples:
        return TextRow("check", "not asked for" if check is None else NOTHING_TO_CHECK, "note")
    if not check.passed:
        return TextRow("WRONG", found_text(report, check).removeprefix("WRONG").lstrip(": "), "bad")
    share = "all" if check.checked_share == 1 else f"{100 * check.checked_share:.3g} %"
    found = f"{check.checked_samples:,} samples ({share}) {_agreement(check)}"
    return TextRow("right", f"{found}{before(report)}", "good")


def _agreement(check: Check) -> str:
    """How near a right output comes to the reference; equal is what has no error at all."""
    if check.max_abs_error == 0:
        return "are equal to the float64 reference"
    if not check.arithmetic:  # a report from before bounds were derived
        return "agree with the float64 reference"
    within = "are within the error bound of the float64 reference"
    if check.differing_samples:  # of whole numbers; all differences lie where the bound lets a value round either way
        return f"{within}, {check.differing_samples:,} of them off by at most {check.max_abs_error:g}"
    absolute, relative = errors(check)
    allowed = f"where {check.tolerance:.2g} is allowed"
    return f"{within}: largest error {absolute}, {relative} of the largest value {allowed}"


def _check_rows(report: RunReport) -> list[TextRow]:
    check, verdict = report.check, _verdict(report)
    if check is None or not check.checked_samples:
        return [verdict]
    found = TextRow("check", found_text(report, check), verdict.tone)
    rounds = report.output.dtype.startswith("uint") and report.problem.output_mode != "normalize"
    return [found, TextRow("exactness", exactness_text(check, rounds))] if check.arithmetic else [found]


def exactness_text(check: Check, rounds: bool) -> str:
    """How exact the method's arithmetic is, for a person; `rounds` where what was checked is of integers."""
    if check.exact and not any(check.bound_by_channel):  # of exact sums, a root may still be rounded
        return f"exact ({check.arithmetic}): every sample must be equal to the rounded oracle"
    bounds = [f"{bound:.2g}" if bound is not None else "none" for bound in check.bound_by_channel]
    of = f"of each output channel in this picture before it is stored ({check.arithmetic})"
    if len(bounds) > MAX_BOUNDS:
        known = [bound for bound in check.bound_by_channel if bound is not None]
        largest = f"{max(known):.2g}" if len(known) == len(bounds) else "none"
        return f"largest error bound {of}: {largest}; all {len(bounds)} are in the report"
    is_near = rounds and max(map(size_of, check.bound_by_channel)) < LEVEL_OFF_BELOW
    return f"error bound {of}: {', '.join(bounds)}{f'; {LEVEL_OFF}' if is_near else ''}"
