"""A batch as a whole: an engine processes the pictures, and their results are counted and recorded here.

Only this process writes the ledger, whatever the engine: rows are appended in the order in which pictures finish.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, nullcontext
from dataclasses import replace

from edgeconv.batch.engines.base import Engine
from edgeconv.batch.engines.threads import Threads
from edgeconv.batch.ledger import ALL, open_ledger
from edgeconv.batch.plan import shard
from edgeconv.batch.previous_results import PreviousResults
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import from_the_root, is_remote, store_of
from edgeconv.batch.stores.base import Store
from edgeconv.batch.summary import PictureResult, Summary
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker
from edgeconv.errors import ImageWriteError
from edgeconv.io.folder_lock import one_batch_in


class Batch:
    """Runs tasks. `stop` may be called from a signal handler: started pictures are finished, no more are started."""

    def __init__(
        self, tasks: list[Task], settings: Settings, engine: Engine | None = None, outputs: Iterable[Task] = ()
    ) -> None:
        """`tasks` are those of all shares, so that no share overwrites another's input; without `engine`, threads.

        `outputs` are not filtered, and overwritten no more than an input.
        """
        if engine is not None:
            settings = replace(settings, output=from_the_root(settings.output))
        self.tasks = shard(tasks, *settings.share)
        self._settings = settings
        self._engine = engine or Threads(settings.jobs, len(self.tasks), settings.choice.device)
        kernel = settings.request.filter.file
        self._inputs = frozenset(
            (*(task.identity for task in (*tasks, *outputs)), *([] if kernel is None else [os.path.realpath(kernel)]))
        )
        self._stop_reason: str | None = None
        self._failures = 0
        self._failures_lock = threading.Lock()

    def stop(self, reason: str) -> None:
        """Start no more pictures."""
        self._stop_reason = reason

    def run(self, on_progress: Callable[[Summary], None] = lambda summary: None) -> Summary:
        """Filter everything; raises only errors that stop the batch: no folder or ledger to write to.

        That includes another batch that is running in the same folder.
        """
        output = self._settings.output
        store = store_of(output)
        store.make_folder(output)
        with nullcontext() if is_remote(output) else one_batch_in(output, self._array()):
            return self._run_alone(store, on_progress)

    def _run_alone(self, store: Store, on_progress: Callable[[Summary], None]) -> Summary:
        """See `run`; results of earlier runs are read here, under the lock, as no other batch can add to them now."""
        started = time.perf_counter()
        settings, output = self._settings, self._settings.output
        options = replace(settings.options, threads=settings.options.threads or self._engine.threads_each)
        work = PictureWorker(settings, options, self._inputs, PreviousResults(output, settings.parameters_sha256()))
        folders = {output, *(store.join(output, task.folder) for task in self.tasks)}
        left_overs = store.remove_left_overs(folders)
        summary = Summary(pictures=len(self.tasks), workers=self._engine.workers, left_overs=left_overs)
        with open_ledger(output, self._settings.share) as ledger:

            def settle(outcome: PictureResult) -> None:
                """Called once per result: in the worker where that is a thread, else when it arrives."""
                if outcome.row is None:
                    return
                if outcome.row.status == "failed":
                    self._count_failure()
                try:
                    ledger.append(outcome.row)
                except ImageWriteError:
                    self.stop("the ledger cannot be written")
                    raise

            with closing(self._engine.run(work, self.tasks, self._is_stopped, settle)) as outcomes:
                try:
                    for outcome in outcomes:
                        summary.count(outcome)
                        summary.seconds = time.perf_counter() - started
                        on_progress(summary)
                except BaseException:
                    self.stop("an error")  # so that the engine, when closed, waits only for started pictures
                    raise
        store.remove_left_overs(folders)  # of workers that terminated meanwhile
        summary.stopped_because = self._stop_reason
        summary.peak_bytes = self._engine.peak_bytes()
        return summary

    def _array(self) -> str | None:
        """What the shares of one job array have in common; None where the batch is not sharded."""
        share = self._settings.share
        return None if share == ALL else f"{self._settings.parameters_sha256()} of {share[1]}"

    def _is_stopped(self) -> bool:
        return self._stop_reason is not None

    def _count_failure(self) -> None:
        limit = self._settings.max_failures
        with self._failures_lock:
            self._failures += 1
            if limit is not None and self._failures >= limit and self._stop_reason is None:
                self._stop_reason = f"{self._failures} failed"
