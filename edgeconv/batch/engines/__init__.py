"""What processes the pictures of a batch: threads of this process, or the workers of a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from edgeconv.batch.engines.base import NOTHING_SAID, Connection
from edgeconv.errors import UsageError

if TYPE_CHECKING:
    from edgeconv.batch.engines.cluster import Cluster

LOCAL = "local"
"""The word of `--scheduler` for a cluster of this machine's own processes."""


def engine_for(
    scheduler: str | None,
    devices: str | None,
    device: str,
    jobs: int | None,
    pictures: int,
    how: Connection = NOTHING_SAID,
) -> AbstractContextManager[Cluster | None]:
    """The cluster that `--scheduler` or `--devices` ask for, as long as the block lasts; None for threads here.

    `how` is what is said about the cluster beside. Raises UsageError for words that do not go together,
    UnavailableError for what is not there.
    """
    if scheduler is None and devices is None:
        return nullcontext()
    if devices is not None and device == "cpu":
        raise UsageError("--devices are GPUs, and --device is cpu: leave one of the two out.")
    elsewhere = scheduler is not None and scheduler != LOCAL
    for option, given in (("--devices", devices), ("--jobs", jobs)):
        if elsewhere and given is not None:
            raise UsageError(f"{option} is for this machine: the workers of {scheduler} have GPUs and threads already.")

    from edgeconv.batch.engines import connect, local_cluster

    connect.refuse_without_dask("--devices" if scheduler is None else "--scheduler")
    if elsewhere:
        return connect.connected_to(str(scheduler), how)
    gpus = local_cluster.gpus_here() if device != "cpu" else []
    if devices is not None:
        gpus = local_cluster.parse_devices(devices, gpus)
    return local_cluster.local_cluster(local_cluster.seats_for(gpus, jobs, pictures), how)
