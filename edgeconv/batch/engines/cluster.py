"""The workers of a Dask cluster: one that is there already, or one of this machine's own processes (own_cluster.py).

A call takes a small batch of pictures; its answer is the rows of the ledger, which this process alone writes. Dask
does a call again elsewhere when its worker dies. What that worker had written already is then found in place byte for
byte, so nothing is lost and nothing is in the ledger twice. A call that has ended several workers is given up by Dask,
and so are others that waited there: all their pictures are done at the end one by one, with nothing else at work, so
that only a picture which ends its workers all alone fails.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from edgeconv.batch.engines import at_worker
from edgeconv.batch.engines.base import Engine, Settle
from edgeconv.batch.settings import JpegCodec
from edgeconv.batch.stores import from_the_root, store_of
from edgeconv.batch.summary import Outcome
from edgeconv.batch.task import Task
from edgeconv.batch.work import Work
from edgeconv.choose import Choice
from edgeconv.errors import EdgeconvError, UnavailableError
from edgeconv.problem import Problem

CALL_SECONDS = 1.0
"""What a call should take: many times what Dask needs for one, and short enough to wait for when stopped."""
MOST_PICTURES = 32
CALLS_A_THREAD = 2
"""One at work and one that waits in the worker, so that no worker waits for us."""
LOOK_SECONDS = 0.5
"""How often a wait is broken off to see whether there is still anybody to wait for."""


def _call_by_value() -> Callable[..., Any]:
    def call(name: str, words: bytes, *results: Any) -> Any:
        """Call a function of at_worker.py; `results` are those of earlier calls."""
        import pickle

        from edgeconv.batch.engines import at_worker

        return getattr(at_worker, name)(*pickle.loads(words), *results)

    return call


CALL = _call_by_value()
"""A function within a function travels by value: neither scheduler nor worker needs edgeconv to take it."""


class Cluster(Engine):
    """Every thread of every worker, those that join later too."""

    def __init__(self, client: Any, name: str, threads_each: int) -> None:
        self.client, self._name = client, name
        self.threads_each = threads_each
        self.workers = self._threads()
        if not self.workers:
            raise UnavailableError(f"{name} has no workers: start some with 'dask worker ADDRESS'.")
        self._peaks: dict[str, dict[str, int | None]] = {}

    def choose(self, method: str, device: str, problem: Problem | None) -> Choice:
        """What all workers would take. Raises UnavailableError where one cannot, or two would take different things."""
        terms = at_worker.Terms(at_worker.maker_here())
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
        self, work: Work, tasks: Iterable[Task], stopped: Callable[[], bool], settle: Settle
    ) -> Generator[Outcome, None, None]:
        """See Engine.run; outcomes are settled here, call by call, while a token lies in the output folder.

        Raises UnavailableError where a worker, or one that joins later, does not see it.
        """
        with _token_in(work.output, work.jpeg_codec) as terms:
            self.ask("look", terms)
            yield from self._outcomes(terms, work, iter(tasks), stopped, settle)

    def _outcomes(
        self,
        terms: at_worker.Terms,
        work: Work,
        waiting: Iterator[Task],
        stopped: Callable[[], bool],
        settle: Settle,
    ) -> Generator[Outcome, None, None]:
        calls: dict[Any, list[Task]] = {}
        suspects: list[Task] = []
        pictures_a_call = 1
        pickled = pickle.dumps(work)

        def carry() -> Any:
            """The work, as the result of a call: so Dask makes it again where the worker that held it dies."""
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
                for call in self._finished(calls, stopped):
                    batch = calls.pop(call)
                    error, answer = self._result(call)
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
                        words = f"{batch[0].source}: every worker that had this picture ended"
                        outcomes = [work.lost(batch[0], f"{words} ({type(error).__name__}).")]
                    for outcome in outcomes:
                        settle(outcome)
                        yield outcome
        finally:
            with suppress(OSError, CancelledError):
                self.client.cancel(list(calls))

    def peak_bytes(self) -> dict[str, int | None]:
        """See Engine.peak_bytes: what the workers had, added up, as far as they tell."""
        total: dict[str, int | None] = {}
        for peaks in self._peaks.values():
            for device, held in peaks.items():
                total[device] = None if held is None else held + (total.get(device) or 0)
        return total

    def ask(self, question: str, *words: Any) -> dict[str, Any]:
        """The answer of every worker there is now, by address; `question` is a function of at_worker.py.

        Raises UnavailableError where one cannot give any.
        """
        calls = {worker: self._submit(question, words, workers=[worker]) for worker in self.client.nthreads()}
        answers = {}
        for worker, call in calls.items():
            error, answers[worker] = self._result(call)
            if error is not None:
                raise _unusable(worker, error) from None
        return answers

    def _submit(self, name: str, words: tuple[Any, ...], *results: Any, workers: list[str] | None = None) -> Any:
        return self.client.submit(CALL, name, pickle.dumps(words), *results, workers=workers, pure=False)

    def _result(self, call: Any) -> tuple[BaseException | None, Any]:
        """What went wrong with a call, and else what came of it."""
        try:
            error = call.exception()
            return error, call.result() if error is None else None
        except (OSError, CancelledError):
            raise self._gone() from None

    def _threads(self) -> int:
        try:
            return sum(self.client.nthreads().values())
        except (OSError, CancelledError):
            raise self._gone() from None

    def _gone(self) -> UnavailableError:
        return UnavailableError(f"{self._name} went away: start it again, and go on with --resume.")

    def _finished(self, calls: Iterable[Any], stopped: Callable[[], bool]) -> list[Any]:
        """The calls that are over; waits for the first. None where all workers are gone and nobody wants to wait."""
        from distributed import wait

        while True:
            try:
                return list(wait(list(calls), LOOK_SECONDS, "FIRST_COMPLETED").done)
            except TimeoutError:
                if stopped() and not self._threads():
                    return []
            except CancelledError:
                raise self._gone() from None


@contextmanager
def _token_in(output: str, jpeg_codec: JpegCodec) -> Iterator[at_worker.Terms]:
    """Terms with a token that lies in `output` as long as the block lasts. Raises ImageWriteError."""
    store = store_of(output)
    text = secrets.token_hex(16)
    token = store.join(output, f".edgeconv-{text[:12]}.tmp")
    store.write(token, text.encode())
    try:
        yield at_worker.Terms(at_worker.maker_here(jpeg_codec), token, text.encode(), jpeg_codec)
    finally:
        store.remove(token)


def _pictures_for(seconds_each: float) -> int:
    """Pictures for one call, from what one took."""
    return max(1, min(MOST_PICTURES, int(CALL_SECONDS / max(seconds_each, 1e-6))))


def _is_of_the_worker(error: BaseException) -> bool:
    """Whether no picture is to blame: a worker that lacks edgeconv, has another one, or sees other files."""
    return isinstance(error, EdgeconvError | ImportError | AttributeError)


def _unusable(worker: str, error: BaseException) -> UnavailableError:
    what = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, ImportError | AttributeError):
        what = f"it lacks edgeconv, or has another one ({what}): install the same everywhere"
    return UnavailableError(f"Dask worker {worker} cannot help: {what}.")
