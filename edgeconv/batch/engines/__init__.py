"""What processes the pictures of a batch: threads of this process, or the workers of a Dask cluster (cluster.py)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from edgeconv.batch.engines.threads import Engine, Threads
from edgeconv.errors import UsageError
from edgeconv.options import Workers

LOCAL = "local"
"""The value of `--scheduler` for a cluster of this machine's own processes."""


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

    from edgeconv.batch.engines import cluster

    cluster.refuse_without_dask("--devices" if scheduler is None else "--scheduler")
    if elsewhere:
        return cluster.connected_to(str(scheduler), workers.worker_timeout, tell)
    gpus = cluster.gpus_here() if device != "cpu" else []
    if workers.devices is not None:
        gpus = cluster.parse_devices(workers.devices, gpus)
    return cluster.local_cluster(cluster.seats_for(gpus, jobs, pictures), workers.worker_timeout, tell)
