"""The workers of a Dask cluster: an existing one, or one of processes on this machine (local_cluster.py).

A call processes a few pictures and returns the rows of the ledger, which only this process writes. Dask repeats a call
elsewhere when its worker dies. What that worker had written already is then found in place byte for byte, so nothing is
lost and nothing is in the ledger twice. Dask gives up on a call that has terminated several workers, and on others that
were queued there: all their pictures are processed at the end one by one, with nothing else running, so that only a
picture that terminates its workers by itself fails.

Where no worker is left, or the scheduler does not answer, the batch reports that, waits as long as `--worker-timeout`
allows, and then fails the remaining pictures. Every request to the cluster has a time limit, so a signal is handled at
any time.
"""

from __future__ import annotations

import pickle
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from edgeconv.api.auto import Choice
from edgeconv.batch.engines import dask_worker
from edgeconv.batch.engines.base import Connection, Engine, Settle
from edgeconv.batch.stores import from_the_root, is_remote, store_of
from edgeconv.batch.summary import PictureResult
from edgeconv.batch.task import Task
from edgeconv.batch.worker import PictureWorker
from edgeconv.core.chains import ChainProblem
from edgeconv.core.problem import Problem
from edgeconv.core.timing import Clock
from edgeconv.errors import EdgeconvError, UnavailableError, one_line
from edgeconv.io import temporary_files
from edgeconv.options import JpegCodec

CALL_SECONDS = 1.0
"""What a call should take: many times what Dask needs for one, and short enough to wait for when stopped."""
MOST_PICTURES = 32
CALLS_A_THREAD = 2
"""One running and one queued in the worker, so that no worker is idle."""
LOOK_SECONDS = 0.5
"""How often waiting is interrupted to check whether there are still workers."""
ANSWER_SECONDS = 5.0
"""Time limit for an answer of the scheduler, far above what a working one needs."""
SAY_SECONDS = 5.0
"""How long the cluster has no worker until that is reported: a supervised worker restarts sooner."""


def _call_by_value() -> Callable[..., Any]:
    def call(name: str, words: bytes, *results: Any) -> Any:
        """Call a function of dask_worker.py; `results` are those of earlier calls."""
        import pickle

        from edgeconv.batch.engines import dask_worker as there  # imported by the worker, not carried to it

        return getattr(there, name)(*pickle.loads(words), *results)

    return call


CALL = _call_by_value()
"""A function within a function travels by value: neither scheduler nor worker needs edgeconv to take it."""


Result = tuple[BaseException | None, Any]
"""What went wrong with a call, and else what it gave."""


class Absence:
    """How long a cluster has had no worker; tells the user, and when it has been too long."""

    def __init__(self, timeout_seconds: float, tell: Callable[[str], None], clock: Clock = time.monotonic) -> None:
        self.timeout_seconds, self._tell, self._clock = timeout_seconds, tell, clock
        self._since: float | None = None
        self._told = False

    def is_over_long(self, threads: int) -> bool:
        """Whether there has been no worker for longer than the timeout, now that there are so many threads."""
        if threads:
            if self._told:
                self._tell("the cluster has workers again")
            self._since, self._told = None, False
            return False
        now = self._clock()
        self._since = now if self._since is None else self._since
        waited = now - self._since
        if waited >= min(SAY_SECONDS, self.timeout_seconds) and not self._told:
            self._told = True
            more = max(0.0, self.timeout_seconds - waited)
            self._tell(f"no worker is left in the cluster; waiting {more:.0f} s for one (--worker-timeout)")
        return waited >= self.timeout_seconds


class Cluster(Engine):
    """Every thread of every worker, those that join later too."""

    def __init__(self, client: Any, name: str, threads_each: int, how: Connection, warning: str | None = None) -> None:
        """`warning` is a line for the user about how the cluster is reached."""
        self.client, self._name, self.warning = client, name, warning
        self.threads_each = threads_each
        self._absence = Absence(how.worker_timeout_seconds, how.tell)
        self.workers = self._threads()
        if not self.workers:
            raise self._without_workers()
        self._peaks: dict[str, dict[str, int | None]] = {}

    def choose(self, method: str, device: str, problem: Problem | ChainProblem | None) -> Choice:
        """What all workers would take. Raises UnavailableError where one cannot, or two would take different things."""
        terms = dask_worker.Terms(dask_worker.maker_here())
        chosen = self.ask("choose_here", terms, method, device, problem)
        (first, choice), *others = chosen.items()
        for worker, other in others:
            if (other.method, other.device) != (choice.method, choice.device):
                raise UnavailableError(
                    f"Worker {first} would take {choice.method} on {choice.device} and {worker} {other.method} on "
                    f"{other.device}: say --method and --device."
                )
        taken: Choice = choice
        return taken

    def run(
        self, work: PictureWorker, tasks: Iterable[Task], stopped: Callable[[], bool], settle: Settle
    ) -> Generator[PictureResult, None, None]:
        """See Engine.run; outcomes are settled here, call by call, while a token lies in the output folder.

        Raises UnavailableError where a worker, or one that joins later, does not see it.
        """
        with _token_in(work.output, work.jpeg_codec) as terms:
            self.ask("look", terms, stopped=stopped)
            yield from self._outcomes(terms, work, iter(tasks), stopped, settle)

    def _outcomes(
        self,
        terms: dask_worker.Terms,
        work: PictureWorker,
        waiting: Iterator[Task],
        stopped: Callable[[], bool],
        settle: Settle,
    ) -> Generator[PictureResult, None, None]:
        calls: dict[Any, list[Task]] = {}
        suspects: list[Task] = []
        pictures_a_call = 1
        pickled = pickle.dumps(work)

        def carry() -> Any:
            """The work, as the result of a call: so Dask makes it again where the worker that held it dies."""
            with self._there():
                return self.client.submit(bytes, pickled, pure=False)

        def submit(batch: list[Task]) -> None:
            sent = [replace(task, source=from_the_root(task.source)) for task in batch]
            calls[self._submit("run_tasks", (terms, sent, self.threads_each), carried)] = batch

        carried = carry()
        try:
            while True:
                while not stopped() and len(calls) < CALLS_A_THREAD * max(1, self._threads()):
                    batch = list(islice(waiting, pictures_a_call))
                    if not batch:
                        break
                    submit(batch)
                alone = not calls and bool(suspects) and not stopped()
                if alone:
                    carried = carry()  # the one before may have been given up too
                    submit([suspects.pop()])
                if not calls:
                    return
                over = self._finished(calls, stopped)
                if over is None:
                    if not stopped():
                        left = [task for batch in calls.values() for task in batch] + suspects
                        yield from self._fail(work, chain(left, waiting), stopped, settle)
                    return
                for call, (error, answer) in over.items():
                    batch = calls.pop(call)
                    if error is None:
                        self._peaks[answer.worker] = answer.peak_bytes
                        pictures_a_call = _pictures_for(answer.seconds / len(batch))
                        outcomes = answer.outcomes
                    elif _is_of_the_worker(error):
                        raise _unusable("of the cluster", error) from None
                    elif not alone:
                        suspects += batch
                        continue
                    else:
                        what = f"{batch[0].source}: every worker that had this picture terminated"
                        outcomes = [work.lost(batch[0], f"{what} ({type(error).__name__}).")]
                    for outcome in outcomes:
                        settle(outcome)
                        yield outcome
        finally:
            with suppress(EdgeconvError, TimeoutError), self._there():
                self.client.sync(self.client._cancel, list(calls), callback_timeout=ANSWER_SECONDS)

    def _fail(
        self, work: PictureWorker, left: Iterable[Task], stopped: Callable[[], bool], settle: Settle
    ) -> Generator[PictureResult, None, None]:
        """Give up on pictures for which no worker came."""
        waited = f"there was no worker for {self._absence.timeout_seconds:g} s (--worker-timeout)"
        for task in left:
            if stopped():
                return
            error = f"{task.source}: {waited}: start workers, and continue with --retry-failed."
            outcome = work.lost(task, error)
            settle(outcome)
            yield outcome

    def peak_bytes(self) -> dict[str, int | None]:
        """See Engine.peak_bytes: what the workers had, added up, as far as they tell."""
        total: dict[str, int | None] = {}
        for peaks in self._peaks.values():
            for device, held in peaks.items():
                total[device] = None if held is None else held + (total.get(device) or 0)
        return total

    def ask(self, question: str, *words: Any, stopped: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """The answer of every worker there is now, by address; `question` is a function of dask_worker.py.

        Those that die meanwhile are left out. Raises UnavailableError where one cannot give any, or all are gone.
        """
        calls = {self._submit(question, words, workers=[worker]): worker for worker in self._nthreads()}
        answers: dict[str, Any] = {}
        while calls and not stopped():
            for call, (error, answer) in self._over(calls).items():
                worker = calls.pop(call)
                answers[worker] = answer
                if error is not None:
                    raise _unusable(worker, error) from None
            there = self._nthreads()
            for call in [call for call, worker in calls.items() if worker not in there]:
                del calls[call]
        if not answers and not stopped():
            raise self._without_workers()
        return answers

    def _submit(self, name: str, words: tuple[Any, ...], *results: Any, workers: list[str] | None = None) -> Any:
        with self._there():
            return self.client.submit(CALL, name, pickle.dumps(words), *results, workers=workers, pure=False)

    def _result(self, call: Any) -> Result | None:
        """What came of a call; None where it is not over after all."""
        try:
            with self._there():
                error = call.exception(ANSWER_SECONDS)
                return error, call.result(ANSWER_SECONDS) if error is None else None
        except TimeoutError:
            return None

    def _threads(self) -> int:
        return sum(self._nthreads().values())

    def _nthreads(self) -> dict[str, int]:
        """The threads of each worker; none of a scheduler that does not answer."""
        try:
            with self._there():
                found: dict[str, int] = self.client.nthreads(callback_timeout=ANSWER_SECONDS)
                return found
        except TimeoutError:
            return {}

    def _without_workers(self) -> UnavailableError:
        return UnavailableError(f"{self._name} has no workers: start some with 'dask worker ADDRESS'.")

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Whatever a client raises whose scheduler is gone becomes one error; a TimeoutError stays.

        What is asked of a closed client raises a class of Dask's own, which is another in every few versions of it.
        """
        try:
            yield
        except TimeoutError:
            raise
        except (OSError, CancelledError):
            raise self._gone() from None
        except Exception:
            if self.client.status != "closed":
                raise
            raise self._gone() from None

    def _gone(self) -> UnavailableError:
        return UnavailableError(f"{self._name} went away: start it again, and continue with --resume.")

    def _finished(self, calls: Iterable[Any], stopped: Callable[[], bool]) -> dict[Any, Result] | None:
        """What came of the calls that are over; waits for the first.

        None where there is no worker, and no wish to wait longer. A call that is over had a worker, even if no look
        found one: a picture that terminates its workers does so between two looks.
        """
        while True:
            over = self._over(calls)
            threads = len(over) or self._threads()
            too_long = self._absence.is_over_long(threads)
            if over:
                return over
            if too_long or (stopped() and not threads):
                return None

    def _over(self, calls: Iterable[Any]) -> dict[Any, Result]:
        """What came of the calls that are over, after a short wait for the first.

        What a call gave may be lost with its worker before it is here; then Dask does it again.
        """
        from distributed import wait

        try:
            with self._there():
                over = wait(list(calls), LOOK_SECONDS, "FIRST_COMPLETED").done
        except TimeoutError:
            return {}
        results = {call: self._result(call) for call in over}
        return {call: result for call, result in results.items() if result is not None}


@contextmanager
def _token_in(output: str, jpeg_codec: JpegCodec) -> Iterator[dask_worker.Terms]:
    """Terms with a token that lies in `output` as long as the block lasts. Raises ImageWriteError."""
    store = store_of(output)
    if is_remote(output):  # in a folder the batch has looked for these already
        for name in filter(temporary_files.is_of_a_dead_process, store.names(output)):
            store.remove(store.join(output, name))
    text = secrets.token_hex(16)
    token = store.join(output, temporary_files.new_name())
    store.write(token, text.encode())
    try:
        yield dask_worker.Terms(dask_worker.maker_here(jpeg_codec), token, text.encode(), jpeg_codec)
    finally:
        store.remove(token)


def _pictures_for(seconds_each: float) -> int:
    """Pictures for one call, from what one took."""
    return max(1, min(MOST_PICTURES, int(CALL_SECONDS / max(seconds_each, 1e-6))))


def _is_of_the_worker(error: BaseException) -> bool:
    """Whether no picture is to blame: a worker that lacks edgeconv, has another one, or sees other files."""
    return isinstance(error, EdgeconvError | ImportError | AttributeError)


def _unusable(worker: str, error: BaseException) -> UnavailableError:
    what = one_line(error).rstrip(".")
    if isinstance(error, ImportError | AttributeError):
        what = f"it lacks edgeconv, or has another one ({what}): install the same everywhere"
    return UnavailableError(f"Dask worker {worker} cannot help: {what}.")
