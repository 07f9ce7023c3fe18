"""A Dask cluster of processes on this machine: one worker per GPU, or one per core where there is no GPU.

GPUs are assigned by CUDA_VISIBLE_DEVICES, so each worker sees one GPU as its first: plans, streams, page-locked memory
and pools belong to one process and one GPU, and the host's cores are divided evenly.

Anyone who can connect to a part of a Dask cluster can run code as its user. So scheduler, nannies and workers listen on
the loopback address only, and use TLS with a key that is generated for this cluster and never written where others
could read it: another user of this machine cannot connect either. None of them serves HTTP.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from edgeconv.batch.engines.base import NOTHING_SAID, Connection
from edgeconv.batch.engines.cluster import Cluster
from edgeconv.batch.engines.connect import connected, quiet, temporary_security
from edgeconv.errors import UnavailableError, UsageError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason
from edgeconv.hardware.threads import usable_threads

VISIBLE = "CUDA_VISIBLE_DEVICES"
LOOPBACK = "127.0.0.1"
NEVER = "1000 days"
"""When Dask gives up a seat whose worker has terminated and is not back: by itself after 15 s, which a start on a busy
machine may take, and then nobody would start it again. How long a batch waits is for `--worker-timeout` to say."""


@dataclass(frozen=True)
class Seat:
    """One worker process."""

    threads: int
    environment: dict[str, str] = field(default_factory=dict)


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
    """Workers for `jobs` pictures at once (as many as there are usable cores, if None)."""
    threads = max(1, min(jobs or usable_threads(), pictures))
    if gpus:
        return [Seat(max(1, threads // len(gpus)), {VISIBLE: gpu}) for gpu in gpus]
    return [Seat(1)] * threads


def _without_http(kind: Any, name: str) -> Any:
    """A Dask scheduler or worker that answers its own protocol alone: its HTTP server would ask for no certificate."""

    def start_http_server(self: Any, *_: Any, **__: Any) -> None:
        pass

    return type(name, (kind,), {"start_http_server": start_http_server})


def worker_class(*words: Any, **options: Any) -> Any:
    """A worker of this cluster: by its name here, as a class that is made would not reach another process."""
    from distributed import Worker

    return _without_http(Worker, "LoopbackWorker")(*words, **options)


@contextmanager
def local_cluster(seats: list[Seat], how: Connection = NOTHING_SAID) -> Iterator[Cluster]:
    """An engine of one process a seat, ended with the block. Raises as `connected` does."""
    import dask
    from distributed import Nanny, Scheduler, SpecCluster

    security = temporary_security()
    here = {"host": LOOPBACK, "port": 0, "protocol": "tls://", "security": security}

    def options(seat: Seat) -> dict[str, object]:
        return {
            "nthreads": seat.threads,
            "env": seat.environment,
            "memory_limit": 0,  # one picture per thread bounds it; Dask would terminate a worker that it finds large
            "preload": ["edgeconv.batch.engines.dask_worker"],
            "silence_logs": logging.CRITICAL,
            "worker_class": worker_class,
            **here,
        }

    threads = sum(seat.threads for seat in seats)
    with (
        quiet(),
        dask.config.set({"distributed.deploy.lost-worker-timeout": NEVER}),
        SpecCluster(
            workers={number: {"cls": Nanny, "options": options(seat)} for number, seat in enumerate(seats)},
            scheduler={"cls": _without_http(Scheduler, "LoopbackScheduler"), "options": {"dashboard": False, **here}},
            security=security,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        connected(cluster, "The cluster of this machine", max(1, usable_threads() // threads), how) as engine,
    ):
        yield engine
