"""The main job: a picture file in, its edges in another, and a report beside it.

Order matters for an honest report: decode, set up, one cold run whose result is the one that is saved, encode; only
then the samples, the roof and the check, so that none of them warms up what is called cold. Picture and report are
written last: the picture beside its place, the report, and then the picture takes its place. So a run that is stopped,
or whose report cannot be written, leaves neither, and one that is killed leaves no picture without its report.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from edgeconv.core import cost
from edgeconv.core.cost import Roof
from edgeconv.core.option import AUTO
from edgeconv.core.problem import Problem
from edgeconv.core.request import Request
from edgeconv.core.timing import Budget, Series, Stopwatch
from edgeconv.errors import ImageWriteError, UsageError
from edgeconv.hardware.system_files import read_system_file
from edgeconv.hardware.versions import installed_versions
from edgeconv.io import temporaries
from edgeconv.io.files import (
    STANDARD_STREAM,
    is_device,
    is_same_file,
    make_folder,
    parse_json,
    prepared,
    refuse_overwrite,
    write_bytes_atomically,
)
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.image import Picture, encode_image, read_image
from edgeconv.io.inside import ForeignFileError, open_regular
from edgeconv.io.read_rules import DEFAULT_RULES, ReadRules
from edgeconv.methods.base import Options
from edgeconv.run import report
from edgeconv.runtime import check as verify
from edgeconv.runtime.auto import Choice, choose
from edgeconv.runtime.session import Session

SAMPLED_CHECK = 300_000
"""Output samples that `--check sample` compares: enough for every border, a small part of a second in NumPy."""


@dataclass(frozen=True)
class Job:
    """One picture to filter and where it goes."""

    source: str
    request: Request
    method: str = AUTO
    device: str = AUTO
    output: str | None = None
    """A file, an existing folder or a name that ends in a separator, or None for the current folder; a device or a pipe
    gets the picture alone."""
    overwrite: bool = False
    options: Options = field(default_factory=Options)
    samples: int = 200
    """Most timed runs after the first; 0 for none."""
    time_limit_seconds: float = 0.15
    rules: ReadRules = DEFAULT_RULES
    check: str = "sample"
    """`full`, `sample` or `none`."""


MOST_REPORT_BYTES = 2**26
"""Of a file that may be an earlier run's report: thousands of times what one takes."""

CHECKS = ("sample", "full", "none")


def run(job: Job, process_seconds: float | None = None) -> dict[str, Any]:
    """Do the job and return its report, which is also written beside the picture.

    `process_seconds` is how long the process had run before this call. Raises EdgeconvError; then nothing is written.
    """
    if job.check not in CHECKS:
        raise UsageError(f"--check '{job.check}' is not one of {', '.join(CHECKS)}.")
    watch = Stopwatch()
    if process_seconds is not None:
        watch.phases_seconds["start"] = process_seconds
    with watch.phase("decode"):
        picture = read_image(job.source, job.rules)
    dtype = picture.pixels.dtype
    with watch.phase("set_up"):
        problem = job.request.problem(picture.pixels.shape, dtype)
        choice = choose(job.method, job.device, "one picture", problem)
        output_format = FORMAT_OF_DTYPE[job.request.output_dtype(dtype).name]
        target = output_path(job, choice.method, output_format)
        report_path = None if target is None or is_device(target) else target.with_suffix(".json")
    problem_record = report.describe_problem(job.request, problem)
    origin = Origin(picture, problem_record, choice.method)
    _refuse_to_overwrite(job, target, report_path, origin)
    if target is not None and report_path is not None:
        temporaries.remove_left_over_in(Path(os.path.realpath(target)).parent)

    filtered = filter_picture(picture, job.request, problem, choice, job.options, watch)
    finished = filtered.finished
    with ThreadPoolExecutor(2) as hashing:  # beside the encoder, which leaves part of the cores idle
        described = [hashing.submit(report.describe_pixels, pixels) for pixels in (picture.pixels, finished)]
        with watch.phase("encode"):
            form = None if target is not None and target.suffix else output_format
            encoded = encode_image(finished, target or STANDARD_STREAM, format=form)
        input_pixels, output_pixels = (future.result() for future in described)
    peak_bytes = filtered.session.device.peak_bytes()

    measured = measure(filtered, Budget(max_samples=job.samples, time_limit_seconds=job.time_limit_seconds), job.check)
    replace, replace_report = (job.overwrite or _is_there(path) for path in (target, report_path))
    report_is_new = not _is_there(report_path)
    _refuse_to_overwrite(job, target, report_path, origin)  # again: another run may have written there meanwhile
    with ExitStack() as writing:
        with watch.phase("encode"):
            put = writing.enter_context(prepared(target or STANDARD_STREAM, encoded, replace=replace))
        record = {
            **report.header(),
            "kind": "run",
            "input": {"file": job.source, "format": picture.format, "notes": list(picture.notes)} | input_pixels,
            "output": {"file": STANDARD_STREAM if target is None else str(target), **_file_identity(encoded)}
            | output_pixels,
            **describe(filtered, measured, asked_for=job.method, peak_bytes=peak_bytes),
        }
        if report_path is not None:
            write_bytes_atomically(report_path, report.to_json(record), replace=replace_report)
            writing.enter_context(withdrawn_without_picture(report_path, report_is_new))
        put()
    return record


@dataclass(frozen=True, eq=False)
class Filtered:
    """A picture that was filtered once, and the session that did it, which may be measured."""

    picture: Picture
    request: Request
    problem: Problem
    choice: Choice
    options: Options
    session: Session
    raw: NDArray[Any]
    """What the method gave, HWC."""
    finished: NDArray[Any]
    """The output: `raw` after the second pass of `normalize`."""
    cold_seconds: float
    watch: Stopwatch


def filter_picture(
    picture: Picture, request: Request, problem: Problem, choice: Choice, options: Options, watch: Stopwatch
) -> Filtered:
    """Set a session up and run it once; phases are added to `watch`."""
    with watch.phase("set_up"):
        second_pass = request.second_pass(picture.pixels.dtype)
        session = Session(problem, choice.method, choice.device, options, second_pass)
        session.take_arrays()
    finished = session.convolve(picture.pixels, watch)
    cold_seconds = watch.phases_seconds["convolve"]
    raw = finished if second_pass is None else session.raw()
    return Filtered(picture, request, problem, choice, options, session, raw, finished, cold_seconds, watch)


@dataclass(frozen=True)
class Measurement:
    """How fast and how right; None for what was not asked for."""

    kernel: Series | None
    end_to_end: Series | None
    roof: Roof | None
    check: verify.Check | None


def measure(filtered: Filtered, budget: Budget, check: str) -> Measurement:
    """Sample the session (not at all for a budget of no samples), measure the roof, and compare with the oracle."""
    session, pixels = filtered.session, filtered.picture.pixels
    kernel = end_to_end = roof = checked = None
    if budget.max_samples > 0:
        kernel = session.time_kernel(pixels, budget)
        end_to_end = session.time_end_to_end(pixels, budget) if session.device.moves_data else kernel
        session.release_arrays()
        roof = session.measure_roof()
    if check != "none":
        limit = SAMPLED_CHECK if check == "sample" else None
        checked = verify.check(pixels, filtered.raw, filtered.problem, session.plan.arithmetic, limit)
    return Measurement(kernel, end_to_end, roof, checked)


def describe(filtered: Filtered, measured: Measurement, asked_for: str, peak_bytes: int | None) -> dict[str, Any]:
    """The part of the report that holds with or without files: problem, method, device, times, speed and check."""
    session, phases = filtered.session, filtered.watch.phases_seconds
    kernel, end_to_end = measured.kernel, measured.end_to_end
    counts = cost.count(filtered.problem, stored=filtered.finished.dtype)
    speed = None
    if kernel is not None and end_to_end is not None:
        gflops_end_to_end = counts.nominal_flops / end_to_end.statistics.median_seconds / 1e9
        rates = cost.speed(counts, kernel.statistics.median_seconds, measured.roof)
        speed = report.describe_speed(rates, gflops_end_to_end, measured.roof)
    normalized = filtered.request.mode_for(filtered.problem.dtype) == "normalize"
    return {
        "problem": report.describe_problem(filtered.request, filtered.problem),
        "method": {
            "name": filtered.choice.method,
            "asked_for": asked_for,
            "why": filtered.choice.why,
            "options": asdict(filtered.options),
            "workspace_bytes": session.plan.workspace_bytes,
            "moved_bytes": session.plan.moved_bytes,
            "launches": session.plan.launches,
            "choice": session.plan.choice,
        },
        "device": {"kind": filtered.choice.device, **session.device.describe()},
        "versions": installed_versions(),
        "phases_seconds": {name: phases[name] for name in report.PHASES if name in phases},
        "whole_run_seconds": sum(phases.values()),
        "timing": {
            "kernel_clock": "CUDA events" if session.device.moves_data else "host",
            "leaves_out": "normalize" if normalized else None,
            "l2_state": session.device.l2_state,
            "cold_seconds": filtered.cold_seconds,
            "kernel": None if kernel is None else report.describe_series(kernel),
            "end_to_end": None
            if end_to_end is None or not session.device.moves_data
            else report.describe_series(end_to_end),
        },
        "counts": report.describe_counts(counts),
        "speed": speed,
        "peak_bytes": peak_bytes,
        "check": report.describe_check(measured.check),
    }


def output_path(job: Job, method: str, output_format: str) -> Path | None:
    """Where the picture goes, in `output_format` unless the name says otherwise; None for standard output."""
    if job.output == STANDARD_STREAM:
        return None
    stem = "stdin" if job.source == STANDARD_STREAM else Path(job.source).stem
    name = f"{stem}_{job.request.filter.name}_{method}_s{job.request.stride}.{output_format}"
    if job.output is None:
        return Path(name)
    path = Path(job.output)
    if is_device(path):
        return path
    is_folder = job.output.endswith(("/", "\\")) or os.path.isdir(path) or not path.suffix
    if not is_folder:
        if path.suffix.lower() == ".json":
            raise UsageError(f"Output '{path}' ends in .json, which is the report's own: name a picture.")
        return path
    make_folder(path)
    return path / name


def _file_identity(encoded: bytes | memoryview) -> dict[str, Any]:
    """Length and hash of a file's content: how an earlier output is known again."""
    return {"file_bytes": len(encoded), "file_sha256": hashlib.sha256(encoded).hexdigest()}


@dataclass(frozen=True)
class Origin:
    """What an output comes from: an earlier one of the same origin may be replaced."""

    picture: Picture
    problem: dict[str, Any]
    method: str

    def made(self, earlier: dict[str, Any]) -> bool:
        """Whether the record of an earlier run tells of the same picture, problem and method."""
        if earlier["problem"] != self.problem or earlier["method"]["name"] != self.method:
            return False
        return bool(earlier["input"]["sha256"] == report.sha256_of(self.picture.pixels))


@contextmanager
def withdrawn_without_picture(report_path: Path, is_new: bool) -> Iterator[None]:
    """The block puts the picture of a report in place: where it fails, the report is removed if it is new.

    One that took the place of an earlier report stays, as that is gone.
    """
    try:
        yield
    except BaseException:  # Ctrl-C too
        if is_new:
            report_path.unlink(missing_ok=True)
        raise


def _is_there(path: Path | None) -> bool:
    return path is not None and os.path.lexists(path)


def refuse_inputs(job: Job, target: Path, report_path: Path) -> None:
    """Raise ImageWriteError where picture or report would replace what the job reads, or the report a folder."""
    kernel = job.request.filter.file
    for path in (target, report_path):
        refuse_overwrite(job.source, path)
        if kernel is not None and is_same_file(kernel, path):
            raise ImageWriteError(f"{path}: is the kernel file: choose another name or folder for the output.")
    if report_path.is_dir():
        raise ImageWriteError(f"{report_path}: is a folder where the report goes: choose another name with -o.")


def _refuse_to_overwrite(job: Job, target: Path | None, report_path: Path | None, origin: Origin) -> None:
    """Never the input; nothing else either, but for this very job's own earlier output that nobody touched since."""
    if target is None or report_path is None:
        return
    refuse_inputs(job, target, report_path)
    if job.overwrite or not (os.path.lexists(target) or os.path.lexists(report_path)):
        return
    if not _is_own_output(target, report_path, origin):
        taken = target if os.path.lexists(target) else report_path
        raise ImageWriteError(f"Output '{taken}' exists: pass --overwrite to replace it, or -o for another place.")


def read_earlier(report_path: Path) -> Any:
    """What stands where a report goes, as JSON. Raises OSError, ValueError: anybody may have put anything there.

    A link is none of edgeconv's own, whatever it leads to: who made it must not choose what is replaced without a word.
    """
    try:
        with open_regular(report_path) as stream:
            return parse_json(stream.read(MOST_REPORT_BYTES).decode("utf-8"))
    except (RecursionError, ForeignFileError) as error:
        raise ValueError(str(error)) from None


def _sha256_of(path: Path) -> str:
    """Of a plain file that is no link. Raises OSError, ValueError."""
    try:
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except ForeignFileError as error:
        raise ValueError(str(error)) from None


def _is_own_output(target: Path, report_path: Path, origin: Origin) -> bool:
    """True where the report beside it tells of the same job and still describes the very bytes of the picture."""
    try:
        earlier = read_earlier(report_path)
        recorded = {name: earlier["output"][name] for name in ("file_bytes", "file_sha256")}
        if not origin.made(earlier) or not os.path.lexists(target):
            return origin.made(earlier)  # a run that was killed between the two leaves the report alone
        return bool(recorded["file_bytes"] == target.stat().st_size and recorded["file_sha256"] == _sha256_of(target))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def seconds_since_process_start() -> float | None:
    """Wall time since the process began, where the system tells (Linux); None elsewhere."""
    try:
        fields = (read_system_file("/proc/self/stat") or "").rpartition(")")[2].split()
        started_after_boot = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_after_boot
    except (OSError, AttributeError, ValueError, IndexError):
        return None
