"""A picture that is filtered at once: from a file to a file with a report beside it, or from an array to an array.

A filter bank gives several pictures, each in a file of its own or all in one (outputs.py).

The order of the steps keeps the report honest: decode, set up, one cold run whose result is the one that is saved,
encode; only then the samples, the roof and the check, so that none of them warms up what is called cold.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from edgeconv.api import figures
from edgeconv.api.auto import Choice, choose
from edgeconv.api.measure import Filtered, describe, filter_picture, measure
from edgeconv.api.measure import Roofs as Roofs
from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import Problem
from edgeconv.core.records import fields_of, header, plain
from edgeconv.core.timing import Budget, Stopwatch
from edgeconv.io.files import STANDARD_STREAM, prepared
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.image import Picture, encode_bank, encode_image, pictures_of, read_image
from edgeconv.run import report
from edgeconv.run.job import Job, sampling_seconds
from edgeconv.run.outputs import OutputFiles, Provenance, Replaceable, output_path
from edgeconv.run.steps import Run


def run(job: Job, process_seconds: float | None = None, roofs: Roofs | None = None) -> report.RunReport:
    """Do the job and return its report, which is also written beside the picture.

    `process_seconds` is how long the process had run before this call; `roofs` are those measured before, to which
    this run adds. Raises EdgeconvError; then nothing is written.
    """
    return WholeRun(job, process_seconds, {} if roofs is None else roofs).run()


class WholeRun(Run):
    """One job, whose picture fits in memory."""

    _picture: Picture
    _problem: Problem | ChainProblem
    _choice: Choice
    _outputs: OutputFiles
    _filtered: Filtered
    _encoded: list[bytes | memoryview]
    """The files, in the order of `OutputFiles.pictures`; one of a stream."""
    _input_pixels: dict[str, Any]
    _output_pixels: dict[str, Any]
    _peak_bytes: int | None

    def __init__(self, job: Job, process_seconds: float | None, roofs: Roofs) -> None:
        self._job, self._roofs = job, roofs
        self._began = time.perf_counter() - (process_seconds or 0.0)
        self._watch = Stopwatch()
        if process_seconds is not None:
            self._watch.phases_seconds["start"] = process_seconds

    def open(self, resources: ExitStack) -> None:
        with self._watch.phase("decode"):
            self._picture = read_image(self._job.source, self._job.rules)

    def choose(self) -> OutputFiles:
        job, pixels = self._job, self._picture.pixels
        with self._watch.phase("set_up"):
            job = self._job = replace(job, request=job.request.settled(pixels))
            self._problem = job.request.picture_problem(pixels.shape, pixels.dtype)
            self._choice = choose(job.method, job.device, self._problem)
            self._format = job.format or FORMAT_OF_DTYPE[job.request.output_dtype(pixels.dtype).name]
            target = output_path(job, self._choice.method, self._format)
        problem_record = plain(figures.describe_problem(job.request, self._problem))
        provenance = Provenance(problem_record, self._problem.in_channels, self._choice.method, self._is_same_input)
        self._outputs = OutputFiles(job, target, provenance)
        return self._outputs

    def _is_same_input(self, recorded: dict[str, Any]) -> bool:
        return bool(recorded["sha256"] == figures.sha256_of(self._picture.pixels))

    def prepare(self, resources: ExitStack) -> None:
        """See Run.prepare: the plan is made with the first run, which is the cold one."""

    def filter(self) -> None:
        job, watch = self._job, self._watch
        self._filtered = filter_picture(self._picture, job.request, self._choice, job.options, watch, job.method)
        finished = self._filtered.finished
        with ThreadPoolExecutor(2) as hashing:  # beside the encoder, which leaves part of the cores idle
            described = [hashing.submit(report.describe_pixels, pixels) for pixels in (self._picture.pixels, finished)]
            with watch.phase("encode"):
                self._encoded = self._encode(finished)
            self._input_pixels, self._output_pixels = (future.result() for future in described)
        self._peak_bytes = self._filtered.plan.processor.peak_bytes()

    def _encode(self, finished: NDArray[Any]) -> list[bytes | memoryview]:
        """The files of the output."""
        finished = finished.reshape(self._job.request.output_shape(self._picture.shape, finished.shape))
        chosen, paths, target = self._job.request.filter, self._outputs.pictures, self._outputs.target
        if len(paths) > 1:
            pictures = pictures_of(finished, chosen.filters)
            quality = self._job.quality
            return [encode_image(picture, path, quality=quality) for picture, path in zip(pictures, paths, strict=True)]
        place = target or STANDARD_STREAM
        named = target is not None and bool(target.suffix)
        if chosen.labels:
            return [encode_bank(finished, chosen.filters, place, format=None if named else "npy")]
        return [encode_image(finished, place, format=None if named else self._format, quality=self._job.quality)]

    def check(self) -> None:
        job = self._job
        limit_seconds = job.time_limit_seconds or sampling_seconds(sum(self._watch.phases_seconds.values()))
        budget = Budget(max_samples=job.samples, time_limit_seconds=limit_seconds)
        self._filtered = measure(self._filtered, budget, job.check, self._roofs)

    def write(self, replaceable: Replaceable, resources: ExitStack) -> Callable[[], None]:
        paths: tuple[Path | str, ...] = self._outputs.pictures or (STANDARD_STREAM,)
        with self._watch.phase("encode"):
            files = zip(paths, self._encoded, replaceable.pictures, strict=True)
            puts = [resources.enter_context(prepared(path, data, replace=replace)) for path, data, replace in files]

        def put_all() -> None:
            """All into place; where one fails, those before it whose names were free go again."""
            done: list[Path] = []
            try:
                for path, put, replace in zip(paths, puts, replaceable.pictures, strict=True):
                    put()
                    if not replace and len(paths) > 1:
                        done.append(Path(path))
            except BaseException:  # Ctrl-C too
                for path in done:
                    path.unlink(missing_ok=True)
                raise

        return put_all

    def report(self) -> report.RunReport:
        picture, target = self._picture, self._outputs.target
        file = STANDARD_STREAM if target is None else str(target)
        digests = [hashlib.sha256(data).hexdigest() for data in self._encoded]
        encoded: dict[str, Any] = {
            "file_bytes": sum(map(len, self._encoded)),
            "file_sha256": digests[0] if len(digests) == 1 else None,
        }
        if len(digests) > 1:
            labels = self._job.request.filter.labels
            files = zip(labels, self._outputs.pictures, self._encoded, digests, strict=True)
            encoded["files"] = [
                report.OutputFilePart(filter=label, file=str(path), file_bytes=len(data), file_sha256=digest)
                for label, path, data, digest in files
            ]
        return report.RunReport(
            **header(),
            kind=report.KIND,
            input=report.InputPart(
                file=self._job.source, format=picture.format, notes=list(picture.notes), **self._input_pixels
            ),
            output=report.OutputPart(file=file, **encoded, **self._output_pixels),
            wall_seconds=time.perf_counter() - self._began,
            **fields_of(describe(self._filtered, self._peak_bytes)),
        )
