"""The workers of a Dask cluster: an existing one, or one of processes on this machine.

A call processes a few pictures and returns the rows of the ledger, which only this process writes. Dask repeats a call
elsewhere when its worker dies. What that worker had written already is then found in place byte for byte, so nothing is
lost and nothing is in the ledger twice. Dask gives up on a call that has terminated several workers, and on others that
were queued there: all their pictures are processed at the end one by one, with nothing else running, so that only a
picture that terminates its workers by itself fails. Every request to the cluster has a time limit, so a signal is
handled at any time.

A cluster of this machine has one worker per GPU, or one per core where there is no GPU. GPUs are assigned by
CUDA_VISIBLE_DEVICES, so each worker sees one GPU as its first. Anyone who can connect to a part of a Dask cluster can
run code as its user. So scheduler, nannies and workers listen on the loopback address only, serve no HTTP, and use TLS
with a key that is made for this cluster and held in memory: another user of this machine cannot connect either.
"""

from __future__ import annotations

import logging
import os
import pickle
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker, wait
from distributed.security import Security

from edgeconv.api.auto import Choice
from edgeconv.batch.engines import Engine, Record, cluster_worker
from edgeconv.batch.process import PictureProcessor
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import Task, from_the_root, join, store_of
from edgeconv.batch.summary import PictureResult
from edgeconv.core.chains import ChainProblem
from edgeconv.core.choices import DeviceName
from edgeconv.core.optional import install
from edgeconv.core.problem import Problem
from edgeconv.errors import EdgeconvError, UnavailableError, UsageError, one_line
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.threads import usable_threads
from edgeconv.io.atomic import temporary_name

CALL_SECONDS = 1.0
"""What a call should take: many times what Dask needs for one, and short enough to wait for when stopped."""
MAX_PICTURES = 32
CALLS_PER_THREAD = 2
"""One running and one queued in the worker, so that no worker is idle."""
LOOK_SECONDS = 0.5
"""How often waiting is interrupted to check whether there are still workers."""
ANSWER_SECONDS, CONNECT_SECONDS = 5.0, 10
"""Time limits for an answer of the scheduler and for a connection, far above what a working one needs."""
SAY_SECONDS = 5.0
"""How long the cluster has no worker until that is reported: a supervised worker restarts sooner."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
ENCRYPTED_SCHEMES = ("tls://", "wss://", "inproc://")
"""Of Dask's addresses: what goes through these no stranger reads or writes."""
SEAT_SECONDS = "1000 days"
"""When Dask gives up a worker that has terminated and is not back: by itself after 15 s, which a start on a busy
machine may take, and then nobody would start it again. How long a batch waits is for `--worker-timeout` to say."""

Tell = Callable[[str], None]
Seat = dict[str, Any]
"""What Dask's `Nanny` takes for one worker process: `nthreads`, and its environment as `env`."""


def _call_by_value() -> Callable[..., Any]:
    def call(name: str, arguments: bytes, *results: Any) -> Any:
        """Call a function of cluster_worker.py; `results` are those of earlier calls."""
        import pickle

        from edgeconv.batch.engines import cluster_worker as there  # imported by the worker, not carried to it

        return getattr(there, name)(*pickle.loads(arguments), *results)

    return call


CALL = _call_by_value()
"""A function within a function travels by value: neither scheduler nor worker needs edgeconv to take it."""


class Cluster(Engine):
    """Every thread of every worker, those that join later too."""

    def __init__(self, client: Any, name: str, threads_each: int, timeout_seconds: float, tell: Tell) -> None:
        """`timeout_seconds` is how long the cluster may be without a worker. Raises UnavailableError."""
        self.client, self._name, self.threads_each = client, name, threads_each
        self._timeout_seconds, self._tell = timeout_seconds, tell
        self.workers = self._threads()
        self._peaks: dict[str, dict[str, int | None]] = {}

    def choose(self, method: str, device: str, problem: Problem | ChainProblem | None) -> Choice:
        """What a worker would take, all of which must be able to run it. Raises UnavailableError."""
        terms = cluster_worker.Terms(cluster_worker.maker_here())
        return next(iter(self._look(terms, method, device, problem).values()))

    def run(
        self, processor: PictureProcessor, tasks: Iterable[Task], stopped: Callable[[], bool], record: Record
    ) -> Generator[PictureResult, None, None]:
        """See Engine.run; results are recorded here, call by call.

        Raises UnavailableError where a worker, or one that joins later, does not see the output folder, and where
        there is none for too long.
        """
        waiting, calls = iter(tasks), dict[Any, list[Task]]()
        suspects: list[Task] = []
        pictures_per_call = 1
        pickled = pickle.dumps(processor)

        def carry() -> Any:
            """The processor, as the result of a call: so Dask makes it again where the worker that held it dies."""
            with self._connection():
                return self.client.submit(bytes, pickled, pure=False)

        def submit(tasks: list[Task]) -> None:
            sent = [replace(task, source=from_the_root(task.source)) for task in tasks]
            arguments = pickle.dumps((terms, sent, self.threads_each))
            with self._connection():
                calls[self.client.submit(CALL, "run_tasks", arguments, carried, pure=False)] = tasks

        with _token_for(processor.settings) as terms:
            self._look(terms, processor.settings.method, processor.device, None)
            carried = carry()
            while True:
                while not stopped() and len(calls) < CALLS_PER_THREAD * max(1, self._threads()):
                    taken = list(islice(waiting, pictures_per_call))
                    if not taken:
                        break
                    submit(taken)
                alone = not calls and bool(suspects) and not stopped()
                if alone:
                    carried = carry()  # the one before may have been given up too
                    submit([suspects.pop()])
                over = self._first_over(calls, stopped) if calls else {}
                if not over:
                    return
                for call, (error, reply) in over.items():
                    done = calls.pop(call)
                    if error is None:
                        self._peaks[reply.worker] = reply.peak_bytes
                        seconds = sum(sum(result.stage_seconds.values()) for result in reply.results)
                        fitting = CALL_SECONDS * len(done) / max(seconds, 1e-6)
                        pictures_per_call = max(1, min(MAX_PICTURES, int(fitting)))
                        results = reply.results
                    elif isinstance(error, EdgeconvError | ImportError | AttributeError):  # no picture is to blame
                        raise _unusable("of the cluster", error) from None
                    elif not alone:
                        suspects += done
                        continue
                    else:
                        why = f"every worker that had this picture terminated ({type(error).__name__})."
                        results = [processor.lost(done[0], why)]
                    for result in results:
                        record(result)
                        yield result

    def peak_bytes(self, device: DeviceName) -> dict[str, int | None]:
        """See Engine.peak_bytes: what the workers had, added up, as far as they tell."""
        total: dict[str, int | None] = {}
        for peaks in self._peaks.values():
            for each, held in peaks.items():
                total[each] = None if held is None else held + (total.get(each) or 0)
        return total

    def _look(self, *arguments: Any) -> dict[str, Choice]:
        """What `cluster_worker.look` gives in every worker there is now, by address.

        Raises UnavailableError where a worker cannot work for the batch, or there is none.
        """
        with self._connection():
            answers: dict[str, Any] = self.client.run(CALL, "look", pickle.dumps(arguments), on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, BaseException):
                raise _unusable(worker, answer) from None
        if not answers:
            raise UnavailableError(f"{self._name} has no workers: start some with 'dask worker ADDRESS'.")
        return answers

    def _first_over(self, calls: Iterable[Any], stopped: Callable[[], bool]) -> dict[Any, tuple[Any, Any]]:
        """Error and reply of the calls that are over; waits for the first.

        A reply may be lost with its worker before it is here; then Dask does the call again. Empty where the batch was
        stopped and no worker is left. Raises UnavailableError where none is for too long.
        """
        since, told = time.monotonic(), False
        over: dict[Any, tuple[Any, Any]] = {}
        while True:
            with suppress(TimeoutError), self._connection():
                for call in wait(list(calls), LOOK_SECONDS, "FIRST_COMPLETED").done:
                    with suppress(TimeoutError):
                        error = call.exception(ANSWER_SECONDS)
                        over[call] = error, call.result(ANSWER_SECONDS) if error is None else None
            if over:
                return over
            waited = time.monotonic() - since
            if self._threads():
                since, told = time.monotonic(), False
            elif stopped():
                return {}
            elif waited >= self._timeout_seconds:
                waited_for = f"no worker for {self._timeout_seconds:g} s (--worker-timeout)"
                raise UnavailableError(f"{self._name} had {waited_for}: start some, and continue with --resume.")
            elif waited >= SAY_SECONDS and not told:
                told = True
                more = self._timeout_seconds - waited
                self._tell(f"no worker is left in the cluster; waiting {more:.0f} s for one (--worker-timeout)")

    def _threads(self) -> int:
        """The threads of all workers; none of a scheduler that does not answer."""
        try:
            with self._connection():
                return sum(self.client.nthreads(callback_timeout=ANSWER_SECONDS).values())
        except TimeoutError:
            return 0

    @contextmanager
    def _connection(self) -> Iterator[None]:
        """Whatever a client raises whose scheduler is gone becomes one error; a TimeoutError stays.

        What is asked of a closed client raises a class of Dask's own, which is another in every few versions of it.
        """
        try:
            yield
        except (TimeoutError, EdgeconvError):
            raise
        except Exception as error:
            if self.client.status != "closed" and not isinstance(error, OSError | CancelledError):
                raise
            gone = f"{self._name} went away: start it again, and continue with --resume."
            raise UnavailableError(gone) from None


@contextmanager
def _token_for(settings: Settings) -> Iterator[cluster_worker.Terms]:
    """Terms with a token that lies in the output folder as long as the block lasts. Raises ImageWriteError."""
    store, token = store_of(settings.output), temporary_name()
    place = join(settings.output, token)
    store.write_output(settings.output, token, b"here", replace=False)
    try:
        yield cluster_worker.Terms(cluster_worker.maker_here(settings.jpeg_codec), settings.jpeg_codec, place)
    finally:
        store.remove(place)


def _unusable(worker: str, error: BaseException) -> UnavailableError:
    what = one_line(error).rstrip(".")
    if isinstance(error, ImportError | AttributeError):
        what = f"it lacks edgeconv, or has another one ({what}): install the same everywhere"
    return UnavailableError(f"Dask worker {worker} cannot help: {what}.")


# --- connecting ---------------------------------------------------------------------------------------------------


@contextmanager
def connected_to(
    cluster: Any, timeout_seconds: float, tell: Tell, name: str | None = None, threads_each: int = 1
) -> Iterator[Cluster]:
    """An engine of the cluster whose scheduler is at an address, or of a cluster of Dask's. Raises UnavailableError.

    Certificates for an address are those of Dask's own configuration.
    """
    address = cluster if isinstance(cluster, str) else ""
    name = name or f"The Dask scheduler at {address}"
    with quiet():
        try:
            client = Client(cluster, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TypeError) as error:  # TypeError: an address of TLS, and no certificates for it
            way_out = "check the address, and whether it wants TLS"
            if address.startswith("tls://"):
                way_out = "check the address, and distributed.comm.tls in Dask's configuration"
            raise UnavailableError(f"{name} does not answer ({one_line(error)}): {way_out}.") from None
        with client:
            if address and not address.startswith(ENCRYPTED_SCHEMES):
                tell(
                    f"the Dask scheduler at {address} is reached without TLS: anyone who can connect to it can run "
                    "code on its workers and see the pictures; see docs/batch.md for TLS"
                )
            yield Cluster(client, name, threads_each, timeout_seconds, tell)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Dask's log lines, and what it says of a busy machine: errors are reported by our own one-line message."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Creating scratch directories")
            yield
    finally:
        logging.disable(before)


# --- a cluster of this machine ------------------------------------------------------------------------------------


def gpus_here() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; none where CUDA does not run."""
    if cuda_unavailable_reason() is not None:
        return []
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    named = os.environ.get(VISIBLE)
    return [str(number) for number in range(count)] if named is None else named.split(",")[:count]


def parse_devices(text: str, gpus: list[str]) -> list[str]:
    """`all`, or numbers from 0 such as `0,2`, as the names of those GPUs. Raises UsageError, UnavailableError."""
    if not gpus:
        raise UnavailableError(f"--devices '{text}': {cuda_unavailable_reason() or 'no NVIDIA GPU found'}.")
    if text == "all":
        return gpus
    numbers = text.split(",")
    if not all(number.isdecimal() for number in numbers) or len(set(numbers)) < len(numbers):
        raise UsageError(f"--devices '{text}' is not all, or different numbers such as 0,1.")
    if missing := [number for number in numbers if int(number) >= len(gpus)]:
        raise UnavailableError(f"--devices '{text}': there is no GPU {missing[0]}, they go from 0 to {len(gpus) - 1}.")
    return [gpus[int(number)] for number in numbers]


def seats_for(gpus: list[str], jobs: int | None, pictures: int) -> list[Seat]:
    """Worker processes for `jobs` pictures at once (as many as there are usable cores, if None)."""
    threads = max(1, min(jobs or usable_threads(), pictures))
    if gpus:
        return [{"nthreads": max(1, threads // len(gpus)), "env": {VISIBLE: gpu}} for gpu in gpus]
    return [{"nthreads": 1}] * threads


WITHOUT_HTTP = {"__module__": __name__, "start_http_server": lambda self, *_, **__: None}
"""Dask's scheduler and workers answer their own protocol alone: their HTTP server would ask for no certificate."""
LoopbackScheduler = type("LoopbackScheduler", (Scheduler,), WITHOUT_HTTP)
LoopbackWorker = type("LoopbackWorker", (Worker,), WITHOUT_HTTP)


@contextmanager
def local_cluster(seats: list[Seat], timeout_seconds: float, tell: Tell) -> Iterator[Cluster]:
    """An engine of one process a seat, ended with the block. Raises UnavailableError."""
    try:
        security = Security.temporary()
    except ImportError:
        raise UnavailableError(
            f"A cluster on this machine needs 'cryptography', so that no stranger can connect to it: {install('dask')}."
        ) from None
    here = {"host": "127.0.0.1", "port": 0, "protocol": "tls://", "security": security}
    nanny = here | {
        "memory_limit": 0,  # one picture per thread bounds it; Dask would terminate a worker that it finds large
        "preload": ["edgeconv.batch.engines.cluster_worker"],
        "silence_logs": logging.CRITICAL,
        "worker_class": LoopbackWorker,
    }
    specs = {number: {"cls": Nanny, "options": nanny | seat} for number, seat in enumerate(seats)}
    scheduler = {"cls": LoopbackScheduler, "options": here | {"dashboard": False}}
    threads_each = max(1, usable_threads() // sum(seat["nthreads"] for seat in seats))
    with (
        quiet(),
        dask.config.set({"distributed.deploy.lost-worker-timeout": SEAT_SECONDS}),
        SpecCluster(specs, scheduler=scheduler, security=security, silence_logs=logging.CRITICAL) as cluster,
        connected_to(cluster, timeout_seconds, tell, "The cluster of this machine", threads_each) as engine,
    ):
        yield engine
