"""One picture, filtered as a whole: from a file to a file with a report beside it.

A filter bank gives several pictures, each in a file of its own or all in one (naming.py).

The header says what is to be computed, under which names, and so whether that may be written; only then pixels are
decoded, unless thresholds must be found in them, while the plan is made beside them: its phase `set_up` is what was
waited for. The order keeps the report honest: decode and set up, one cold run whose result is the one that is saved,
encode; only then the samples and the check, so that none of them warms up what is called cold. Nothing has its final
name before the end: a run that is stopped, whose input is damaged, or whose report cannot be written leaves nothing
behind.
"""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from edgeconv.api import figures
from edgeconv.api.auto import choose
from edgeconv.api.measure import filter_picture, measure, prepare_filter
from edgeconv.core.records import fields_of, header, to_json
from edgeconv.core.timing import Budget, Stopwatch
from edgeconv.io.encoding import encode_image, pictures_of
from edgeconv.io.files import STANDARD_STREAM, label_of
from edgeconv.io.formats import FORMAT_OF_DTYPE
from edgeconv.io.reading import decode_image, read_header, read_picture_bytes
from edgeconv.run import report
from edgeconv.run.job import Job, sampling_seconds
from edgeconv.run.naming import output_path, picture_paths
from edgeconv.run.ownership import Made, report_path, reserve


def run_picture(job: Job, process_seconds: float | None = None) -> report.RunReport:
    """Do the job and return its report, which is also written beside the picture.

    `process_seconds` is the processor time that the process took to start. Raises EdgeconvError; then nothing is
    written.
    """
    began, watch = time.perf_counter() - (process_seconds or 0.0), Stopwatch()
    if process_seconds is not None:
        watch.phases_seconds["start"] = process_seconds
    with watch.phase("decode"):
        data = read_picture_bytes(job.source, job.rules)
        name = label_of(job.source)
        stated = read_header(data, name, job.rules)
        decoded = partial(decode_image, data, name, job.rules, header=stated)
        picture = decoded() if job.request.needs_picture else None
    with watch.phase("set_up"):
        request = job.request if picture is None else job.request.settled(picture.pixels)
        problem = request.picture_problem(stated.shape(job.rules.rgb), stated.dtype)
        choice = choose(job.method, job.device, problem)
        format = job.format or FORMAT_OF_DTYPE[request.output_dtype(stated.dtype).name]
        target = output_path(job, choice.method, format)
        paths = picture_paths(job, target, choice.method)
        places, bank = paths or (Path(STANDARD_STREAM),), request.filter
    file_sha256 = hashlib.sha256(data).hexdigest()
    made = Made(figures.describe_problem(request, problem), problem.in_channels, choice.method, lambda: file_sha256)
    beside = report_path(target)
    with reserve(job, made, paths, beside) as outputs, ThreadPoolExecutor(2) as others:
        ready = others.submit(prepare_filter, problem.input_shape, problem.dtype, request, choice, job.options)
        with watch.phase("decode"):
            picture = picture or decoded()
        with watch.phase("set_up"):
            plan = ready.result()
        filtered = filter_picture(picture.pixels, request, plan, watch)
        # Beside the encoder, which leaves part of the cores idle.
        described = [others.submit(report.describe_pixels, pixels) for pixels in (picture.pixels, filtered.finished)]
        with watch.phase("encode"):
            finished = filtered.finished.reshape(request.output_shape(picture.shape, filtered.finished.shape))
            pictures = [finished] if len(places) == 1 else pictures_of(finished, bank.filters)
            together = bank.filters if bank.labels and len(places) == 1 else 0
            unnamed = "npy" if bank.labels else format
            encoded = [
                encode_image(
                    pixels, place, format=None if place.suffix else unnamed, bank=together, quality=job.quality
                )
                for pixels, place in zip(pictures, places, strict=True)
            ]
        input_pixels, output_pixels = (future.result() for future in described)
        limit_seconds = job.time_limit_seconds or sampling_seconds(sum(watch.phases_seconds.values()))
        found = measure(filtered, Budget(max_samples=job.samples, time_limit_seconds=limit_seconds), job.check)
        with watch.phase("encode"):
            for path, content in zip(places, encoded, strict=True):
                outputs.add(path, content)
        notes, chain = list(picture.notes), request.chain
        if chain is not None and chain.has_hysteresis and not finished.any():
            notes.append(f"no edge: no gradient here is above the upper threshold, {chain.thresholds[1]:g}")
        digests = [hashlib.sha256(content).hexdigest() for content in encoded]
        files = zip(bank.labels, paths, encoded, digests, strict=False)
        record = report.RunReport(
            **header(),
            kind=report.KIND,
            input=report.InputPart(
                file=job.source,
                format=picture.format,
                notes=notes,
                file_bytes=len(data),
                file_sha256=file_sha256,
                **input_pixels,
            ),
            output=report.OutputPart(
                file=STANDARD_STREAM if target is None else str(target),
                file_bytes=sum(map(len, encoded)),
                file_sha256=digests[0] if len(digests) == 1 else None,
                files=[
                    report.OutputFilePart(label, str(path), len(content), digest)
                    for label, path, content, digest in files
                    if len(digests) > 1
                ],
                **output_pixels,
            ),
            wall_seconds=time.perf_counter() - began,
            **fields_of(found),
        )
        if beside is not None:
            outputs.add(beside, to_json(record))
        outputs.put()
    return record
