"""One side of `edgeconv bench ab`: a process with one version of the package, asked by lines of JSON.

    {"case": {...}}      set a case up: {}, or {"cannot": "why"}
    {"turn": 0.01}       run it for that many seconds: {"seconds": ...}, the tenth percentile of its runs

It runs as text in any interpreter (`python -c`), and uses the public calls alone, `plan`, `convolve`, `canny` and
`out=`, so that a version from before this file can be measured too.

On the CPU a sample is a run, or several where one is short. On a GPU `plan` is captured as one graph of runs over so
many pairs of arrays that they exceed the last cache `CACHES` times, so that each finds it cold and no launch is timed.
Other calls, which allocate, run over the same pairs by the host's clock.
"""

from __future__ import annotations

import inspect
import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SEED = 20_261_124
CACHES = 4
MAX_PAIRS = 2_500  # of arrays: pictures of a few pixels would take millions to exceed a cache
LEAST_SECONDS = 2e-4
"""Of a sample, so that the clock's own time is far below it."""
PERCENTILE = 10
CANNY_LIMITS = (100, 200)

Timed = Callable[[], float]
"""Seconds of one run, as a sample of it."""


def noise(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Whole numbers of the whole range, or floats from −1 to 1; the same for every side."""
    rng = np.random.default_rng(SEED)
    if np.dtype(dtype).kind == "u":
        return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
    return rng.uniform(-1, 1, shape).astype(dtype)


def caller(case: dict[str, Any]) -> tuple[Callable[[Any, Any], Any], tuple[int, ...], Any]:
    """The call of a case, of a picture and of an array for the result, and that array's shape and type."""
    import edgeconv

    words = dict(case["words"])
    known = inspect.signature(edgeconv.Options).parameters
    options = {name: words.pop(name) for name in case["words"] if name in known}
    if options:
        words["options"] = edgeconv.Options(**options)
    if isinstance(words.get("filter"), list):
        words["filter"] = np.array(words["filter"], np.float32)
    shape, dtype = tuple(case["shape"]), case["dtype"]
    if case["call"] == "canny":
        return (lambda image, out: edgeconv.canny(image, *CANNY_LIMITS, out=out, **words)), shape[:2], "uint8"
    plan = edgeconv.plan(shape, dtype, **words)
    if case["call"] == "plan":
        return (lambda image, out: plan(image, out=out)), plan.output_shape, plan.output_dtype
    return (lambda image, out: edgeconv.convolve(image, **words)), plan.output_shape, plan.output_dtype


def several(run: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> Timed:
    """A sample of as many runs as take `LEAST_SECONDS`."""

    def timed(times: int) -> float:
        started = time.perf_counter()
        for _ in range(times):
            run()
        wait()
        return (time.perf_counter() - started) / times

    timed(1)
    times = max(1, round(LEAST_SECONDS / min(timed(1) for _ in range(3))))
    return lambda: timed(times)


def on_cpu(case: dict[str, Any]) -> Timed:
    """The case, over the same arrays."""
    call, out_shape, out_dtype = caller(case)
    image, out = noise(tuple(case["shape"]), case["dtype"]), np.empty(out_shape, out_dtype)
    return several(lambda: call(image, out))


def on_gpu(case: dict[str, Any]) -> Timed:
    """The case with a cold cache."""
    import cupy

    call, out_shape, out_dtype = caller(case)
    first = (cupy.asarray(noise(tuple(case["shape"]), case["dtype"])), cupy.empty(out_shape, out_dtype))
    enough = CACHES * cupy.cuda.Device().attributes["L2CacheSize"] // sum(array.nbytes for array in first) + 2
    pairs = [[array.copy() for array in first] for _ in range(min(MAX_PAIRS, enough))]
    stream = cupy.cuda.Stream(non_blocking=True)

    def runs() -> None:
        for image, result in pairs:
            call(image, result)

    with stream:
        over_all = graph(stream, runs) if case["call"] == "plan" else several(runs, cupy.cuda.Device().synchronize)
    return lambda: over_all() / len(pairs)


def graph(stream: Any, put: Callable[[], None]) -> Timed:
    """`put` captured as a graph: its time on the device."""
    import cupy

    put()  # compiles, loads and allocates before the capture
    stream.synchronize()
    stream.begin_capture()
    put()
    captured = stream.end_capture()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def timed() -> float:
        begin.record(stream)
        captured.launch(stream)
        end.record(stream)
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3

    timed()
    return timed


def turn(timed: Timed, seconds: float) -> float:
    """The tenth percentile of samples for so long; the first is not among them: the other side had the machine."""
    timed()
    end, samples = time.perf_counter() + seconds, [timed()]
    while time.perf_counter() < end:
        samples.append(timed())
    return float(f"{np.percentile(samples, PERCENTILE):.6g}")


def main() -> None:
    """Answer until the questions end; whoever asks decides when, also at Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    timed: Timed | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any] = {}
        if timed is not None and "turn" in asked:
            answer["seconds"] = turn(timed, asked["turn"])
        else:
            timed = None  # the arrays of the case before are given up first
            try:
                timed = (on_gpu if asked["case"]["device"] == "cuda" else on_cpu)(asked["case"])
            except Exception as error:  # of any version of the package, which may not know a word of the case
                answer["cannot"] = (str(error).strip().splitlines() or [""])[0] or type(error).__name__
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
