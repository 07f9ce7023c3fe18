"""A batch as a whole: find the pictures, settle the method, process them, record each, and sum up.

Only this process writes the ledger, whatever the engine: rows are appended in the order in which pictures finish.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from edgeconv.api.auto import Choice
from edgeconv.batch import tasks as finding
from edgeconv.batch.engines import Engine, Threads
from edgeconv.batch.ledger import Ledger, LedgerRow, PreviousResults, ledger_folder, read
from edgeconv.batch.names import Names
from edgeconv.batch.process import PictureProcessor
from edgeconv.batch.settings import ALL, Settings
from edgeconv.batch.stores import Task, from_the_root, is_remote, join, store_of
from edgeconv.batch.summary import BatchSummary, PictureResult, links_note
from edgeconv.core.chains import ChainProblem
from edgeconv.core.option import AUTO
from edgeconv.core.optional import install
from edgeconv.core.problem import Problem
from edgeconv.errors import EdgeconvError, ImageWriteError, UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_missing_reason
from edgeconv.io.atomic import make_folder, remove_left_over_in
from edgeconv.io.files import suffix_counts_text
from edgeconv.io.folder_lock import one_batch_in
from edgeconv.io.gpu_jpeg import require_gpu_jpeg
from edgeconv.io.reading import decode_image
from edgeconv.methods import require
from edgeconv.options import Workers

LOCAL = "local"
"""The value of `--scheduler` for a cluster of this machine's own processes."""
MAX_TRIED = 8
"""Pictures that are tried until one can be read."""


@dataclass
class Batch:
    """Pictures, ready to be processed. `stop` may be called from a signal handler: started ones are finished."""

    tasks: list[Task]
    processor: PictureProcessor
    engine: Engine
    ledger: Ledger
    summary: BatchSummary
    failures: Iterator[int] = field(default_factory=lambda: count(1))
    """Each is taken in one step, whichever thread has it."""

    def stop(self, reason: str) -> None:
        """Start no more pictures."""
        self.summary.stopped_because = reason

    def run(self, on_progress: Callable[[BatchSummary], None] = lambda summary: None) -> BatchSummary:
        """Process everything; raises only errors that stop the batch: no folder or ledger to write to, no worker."""
        started, summary, output = time.perf_counter(), self.summary, self.processor.settings.output
        folders = {output, *(join(output, task.folder) for task in self.tasks)}
        summary.left_overs = _remove_left_overs(folders)
        results = self.engine.run(self.processor, self.tasks, lambda: summary.stopped_because is not None, self._record)
        with closing(results):
            for result in results:
                summary.count(result, time.perf_counter() - started)
                on_progress(summary)
        self.ledger.refuse_if_moved()
        _remove_left_overs(folders)  # of workers that terminated meanwhile
        summary.peak_bytes = self.engine.peak_bytes(self.processor.device)
        return summary

    def _record(self, result: PictureResult) -> None:
        """Called once per result: in the worker where that is a thread, else when it arrives."""
        if not result.new:
            return
        if result.row.status == "failed":
            failed = next(self.failures)
            if failed == self.processor.settings.max_failures and self.summary.stopped_because is None:
                self.stop(f"{failed} failed")
        try:
            self.ledger.append(result.row)
        except ImageWriteError:
            self.stop("the ledger cannot be written")
            raise


@contextmanager
def open_batch(
    settings: Settings,
    inputs: finding.Inputs,
    tell: Callable[[str], None] = lambda text: None,
    engine: Engine | None = None,
) -> Iterator[Batch]:
    """A batch that is ready to run; within the block, its folders are locked and its engine is there.

    `tell` shows a line to the user. Without `engine`, the one that the settings ask for. Raises EdgeconvError for
    whatever can be refused before the first picture is read: then nothing was written. That includes another batch
    that is running in the same folder.
    """
    Names(settings)  # refuses a bad template before anything is looked for
    ledger_at = ledger_folder(settings.output, settings.ledger)
    places = [ledger_at] if is_remote(settings.output) else [settings.output, ledger_at]
    folders = {os.path.realpath(place): place for place in places}.values()  # one where both are the same
    new = [folder for folder in folders if not os.path.isdir(folder)]
    array = None if settings.share == ALL else f"{settings.parameters_sha256()} of {settings.share[1]}"
    with ExitStack() as held:

        def lock(folders: Iterable[str]) -> None:
            for folder in folders:
                held.enter_context(one_batch_in(folder, array, settings.share[0]))

        lock(folder for folder in folders if folder not in new)
        rows = read(ledger_at).rows
        found = finding.find(inputs, settings.output, rows)
        if found.links:
            tell(links_note(found.links))
        if found.passed_over:
            tell(f"skipped, as edgeconv does not read such files: {suffix_counts_text(found.passed_over)}")
        pictures = len(finding.shard(found.tasks, *settings.share))
        if engine is None:
            engine = held.enter_context(engine_for(settings.workers, settings.device, pictures, tell))
        here = isinstance(engine, Threads)
        settled, why = settle(settings, found.tasks, rows, engine)
        options = replace(settled.options, threads=settled.options.threads or engine.threads_each)
        output = settled.output if here else from_the_root(settled.output)
        settled = replace(settled, options=options, output=output)
        names = Names(settled)
        tasks = names.without_outputs(found.tasks) if settled.resume else found.tasks
        names.refuse_collisions(tasks)
        if settled.overwrite and names.sized and not (here and settled.share == ALL):
            raise UsageError(
                f"--overwrite and --name '{settled.name}' with {{width}} or {{height}} do not go together where "
                "several processes write: two pictures that get one name would replace each other. "
                "Leave one of them out."
            )
        for folder in new:  # no bucket is ever made for a mistyped name
            make_folder(folder)
        lock(new)
        kernel = settled.request.filter.file
        kept = {*(task.identity for task in found.tasks), *([] if kernel is None else [os.path.realpath(kernel)])}
        ledger = Ledger(ledger_at, settled.share, rows)
        held.callback(ledger.close)
        mine = finding.shard(tasks, *settled.share)
        summary = BatchSummary(
            pictures=len(mine),
            workers=engine.workers,
            method=settled.method,
            device=settled.device,
            why=why,
            ledger=str(ledger.path),
            earlier_outputs=found.earlier_outputs + len(found.tasks) - len(tasks),
            passed_over=dict(found.passed_over),
        )
        processor = PictureProcessor(settled, names, frozenset(kept), PreviousResults(rows, settled))
        yield Batch(mine, processor, engine, ledger, summary)


def engine_for(
    workers: Workers, device: str, pictures: int, tell: Callable[[str], None]
) -> AbstractContextManager[Engine]:
    """The engine that the options ask for, as long as the block lasts; `tell` shows a line about a cluster.

    Raises UsageError for options that exclude each other, UnavailableError for what is not there.
    """
    jobs, scheduler = workers.parsed_jobs(), workers.scheduler
    if scheduler is None and workers.devices is None:
        return nullcontext(Threads(jobs, pictures))
    if workers.devices is not None and device == "cpu":
        raise UsageError("--devices are GPUs, and --device is cpu: leave one of the two out.")
    elsewhere = scheduler not in (None, LOCAL)
    for option, given in (("--devices", workers.devices), ("--jobs", jobs)):
        if elsewhere and given is not None:
            raise UsageError(f"{option} is for this machine: the workers of {scheduler} have GPUs and threads already.")

    try:
        from edgeconv.batch.engines import cluster
    except ImportError:
        option = "--devices" if scheduler is None else "--scheduler"
        raise UnavailableError(f"{option} needs Dask: {install('dask')}.") from None
    if elsewhere:
        return cluster.connected_to(str(scheduler), workers.worker_timeout, tell)
    gpus = cluster.gpus_here() if device != "cpu" else []
    if workers.devices is not None:
        gpus = cluster.parse_devices(workers.devices, gpus)
    return cluster.local_cluster(cluster.seats_for(gpus, jobs, pictures), workers.worker_timeout, tell)


def _remove_left_overs(folders: Iterable[str]) -> list[str]:
    """Remove what killed runs left half-written in folders, and return the names; objects are never so."""
    here = sorted(folder for folder in folders if not is_remote(folder))
    return [str(path) for folder in here for path in remove_left_over_in(Path(folder))]


def settle(settings: Settings, tasks: Iterable[Task], rows: list[LedgerRow], engine: Engine) -> tuple[Settings, str]:
    """The settings with a method and a device for all pictures, and why; `rows` are those of the ledger.

    A resumed batch with `auto` keeps the method of its last row, since another method means that every picture is
    filtered again. A chain is settled for the first picture, which represents all. Raises UsageError,
    UnavailableError.
    """
    device = "cuda" if settings.workers.devices is not None else settings.device  # --devices are GPUs
    if settings.jpeg_codec == "gpu" and device == AUTO and cuda_missing_reason() is None:
        device = "cuda"  # pictures that are decoded on a GPU do not cross the bus
    choice: Choice | None = None
    last = next((row for row in reversed(rows) if row.status == "done"), None)
    if settings.method == AUTO and settings.resume and last is not None:
        fits = last.parameters_sha256 == settings.parameters_sha256() and device in (AUTO, last.device)
        with suppress(UnavailableError, UsageError):  # it may not run here, or be a name that somebody put there
            choice = engine.choose(last.method, last.device, None) if fits else None
            choice = choice and replace(choice, why="as in the earlier run that this one resumes")
    if choice is None:
        chain = settings.request.chain is not None  # some methods compute no chains: said before the first picture
        choice = engine.choose(settings.method, device, _first_problem(tasks, settings) if chain else None)
    settled = replace(settings, method=choice.method, device=choice.device)
    if isinstance(engine, Threads) or choice.device == "cpu":  # GPUs of other machines are theirs to ask
        require_jpeg_codec(settled, settings.device, choice.why)
        require(choice.method, choice.device, settings.options)
    return settled, choice.why


def require_jpeg_codec(settings: Settings, device: str, why: str) -> None:
    """Raise UsageError or UnavailableError where this machine lacks what --jpeg-codec needs.

    `device` is the value of --device as given; the settings have the device that was settled, and `why`.
    """
    if settings.jpeg_codec == "host":
        return
    if device == "cpu":
        raise UsageError("--jpeg-codec gpu needs a GPU: leave --device cpu out, or use --jpeg-codec host.")
    require_gpu_jpeg()
    if settings.device != "cuda":
        raise UnavailableError(
            f"--jpeg-codec gpu needs pictures that are filtered on a GPU, and the device is {settings.device} "
            f"({why}): use --device cuda, or --jpeg-codec host."
        )


def _first_problem(tasks: Iterable[Task], settings: Settings) -> Problem | ChainProblem | None:
    """The problem of the first picture that can be read."""
    readable = (task for task in tasks if task.problem is None)
    for task, _ in zip(readable, range(MAX_TRIED), strict=False):
        with suppress(EdgeconvError):  # it is reported in the picture's row of the ledger
            data = store_of(task.source).read(task.source, settings.rules)
            pixels = decode_image(data, task.source, settings.rules).pixels
            return settings.request.settled(pixels).picture_problem(pixels.shape, pixels.dtype)
    return None
