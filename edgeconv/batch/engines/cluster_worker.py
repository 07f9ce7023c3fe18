"""The code that runs in a Dask worker.

It is called by name with pickled arguments (see `cluster.CALL`), so that Dask itself never unpickles objects of
edgeconv: a worker without edgeconv then returns an error, where Dask would lose the whole connection.
"""

from __future__ import annotations

import pickle
import signal
import threading
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import edgeconv
from edgeconv.api.auto import Choice, choose
from edgeconv.batch.process import PictureProcessor, held_bytes, share_machine
from edgeconv.batch.stores import Task, store_of
from edgeconv.batch.summary import PictureResult
from edgeconv.core.chains import ChainProblem
from edgeconv.core.optional import import_problem
from edgeconv.core.problem import Problem
from edgeconv.errors import ImageReadError, UnavailableError
from edgeconv.io.gpu_jpeg import nvimgcodec_version, require_gpu_jpeg
from edgeconv.options import JpegCodec


@dataclass(frozen=True)
class Terms:
    """What must hold in every worker, so that it does not matter which one has a picture."""

    maker: tuple[str, ...]
    """See `maker_here`."""
    jpeg_codec: JpegCodec = "host"
    token: str = ""
    """A file of a random name that is in the output folder for the time being: every worker must see it."""


@dataclass(frozen=True)
class WorkerReply:
    """What one call of `run_tasks` gave."""

    results: list[PictureResult]
    worker: str
    peak_bytes: dict[str, int | None]


def maker_here(jpeg_codec: JpegCodec = "host") -> tuple[str, ...]:
    """What the bytes of an output depend on beside its parameters."""
    import cv2

    png = "zlib" if import_problem("isal.isal_zlib") else "isal"  # as png.py decides
    makers = (f"edgeconv {edgeconv.__version__}", f"OpenCV {cv2.__version__}", f"PNG by {png}")
    return makers if jpeg_codec == "host" else (*makers, f"nvImageCodec {nvimgcodec_version()}")


@cache
def check(terms: Terms) -> None:
    """Raise UnavailableError where this process cannot work for the batch."""
    for there, here in zip(terms.maker, maker_here(terms.jpeg_codec), strict=True):
        if there != here:
            raise UnavailableError(f"it has {here} and the client {there}: install the same everywhere")
    if terms.jpeg_codec == "gpu":
        require_gpu_jpeg()
    try:
        if terms.token:
            store_of(terms.token).read(terms.token)
    except ImageReadError:
        folder = terms.token.rpartition("/")[0]
        raise UnavailableError(f"it does not see {folder}: use a folder that all machines share, or a URL") from None


def look(terms: Terms, method: str, device: str, problem: Problem | ChainProblem | None) -> Choice:
    """What this worker would take. Raises UnavailableError where it cannot work for the batch."""
    check(terms)
    return choose(method, device, problem)


def run_tasks(terms: Terms, tasks: list[Task], threads_each: int, pickled: bytes) -> WorkerReply:
    """Process a few pictures, one after the other; `pickled` is the processor that all calls share."""
    from distributed import get_worker

    check(terms)
    share_machine(threads_each)
    processor = _unpickled(pickled)
    results = [result for task in tasks for result in processor.process([task])]
    return WorkerReply(results, str(get_worker().name), held_bytes(processor.device))


@lru_cache(maxsize=1)
def _unpickled(pickled: bytes) -> PictureProcessor:
    """One PictureProcessor for all threads of this worker; the bytes are one object whose hash is kept."""
    processor: PictureProcessor = pickle.loads(pickled)
    return processor


def dask_setup(worker: Any) -> None:
    """Called by Dask in each worker of a local cluster: the client handles Ctrl-C and lets workers finish."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
