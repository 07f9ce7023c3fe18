"""What comes between the turns of a benchmark."""

from __future__ import annotations

from time import perf_counter, process_time, sleep

MAX_QUIET_SECONDS = 0.25
QUIET_LOOK_SECONDS = 0.002
QUIET_SHARE = 0.2
"""Of one core, in all threads together."""


def wait_until_quiet() -> None:
    """Wait until the threads of this process rest, `MAX_QUIET_SECONDS` at most.

    Threads of many libraries spin for milliseconds after their last work (OpenMP's, ONNX Runtime's), on the very cores
    that the next to be timed would work on.
    """
    deadline = perf_counter() + MAX_QUIET_SECONDS
    while (started := perf_counter()) < deadline:
        before = process_time()
        sleep(QUIET_LOOK_SECONDS)
        if process_time() - before < QUIET_SHARE * (perf_counter() - started):
            return
