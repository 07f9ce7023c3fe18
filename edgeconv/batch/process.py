"""Processing of pictures, in a thread or in the process of a cluster: five stages, each a function of a list.

    read → decode → filter (host to device → convolve → device to host) → encode → put

A stage that fails for one picture leaves the error with it, and later stages pass that picture over. Pixels that the
GPU decodes or encodes (`--jpeg-codec gpu`) are not copied between host and device. Each thread has its own plan,
buffers and CUDA stream. The engines give one picture at a time, or a list of what the GPU decodes, so memory is bounded
by the number of threads, or by `LIST_BYTES`. The row of the ledger is created here and written by the one process that
owns the ledger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

import numpy as np

from edgeconv.api.auto import Choice
from edgeconv.api.prepared import PreparedFilter
from edgeconv.batch.ledger import LedgerRow, PreviousResults, sha256_of
from edgeconv.batch.names import Names, refuse_device_name
from edgeconv.batch.settings import Settings
from edgeconv.batch.stores import Task, is_remote, join, store_of
from edgeconv.batch.summary import PictureResult, Stage
from edgeconv.core.choices import DeviceName
from edgeconv.core.filters import RGB_CHANNELS
from edgeconv.core.request import Request
from edgeconv.core.timing import Stopwatch
from edgeconv.errors import EdgeconvError, ImageReadError, ImageWriteError, MemoryLimitError, one_line_with_class
from edgeconv.hardware.devices import get_device
from edgeconv.hardware.pages import keep_what_is_freed
from edgeconv.io.atomic import NameTakenError
from edgeconv.io.contained_paths import ForeignFileError
from edgeconv.io.encoding import encode_image
from edgeconv.io.files import as_compared, is_same_file
from edgeconv.io.formats import FORMAT_OF_DTYPE, WRITTEN, Format
from edgeconv.io.formats.base import Header
from edgeconv.io.gpu_jpeg import the_gpu
from edgeconv.io.reading import Decoder, Picture, decode_image, read_header

MAX_LIST, LIST_BYTES = 64, 2**30
"""Pictures that the GPU decodes as a list, and their pixels: a longer list was no faster."""
MAX_TRIES = 8
"""To write an output whose file another process creates and removes again in between."""


@dataclass
class PictureWork:
    """A picture on its way through the stages."""

    task: Task
    row: LedgerRow
    """What is known so far; that of an earlier run, where it still holds, and then nothing is left to do."""
    new: bool = True
    """Whether the row is of this run."""
    data: bytes = b""
    header: Header | None = None
    picture: Picture | None = None
    output: Any = None
    """The filtered pixels, HWC or HW, a NumPy or CuPy array; of one picture alone, valid until this thread's next."""
    name: str = ""
    """Of the output, relative to the output folder."""
    encoded: bytes | memoryview = b""
    watch: Stopwatch = field(default_factory=Stopwatch)
    started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def stage(self, name: Stage | None = None) -> Iterator[None]:
        """Keep the time of a stage, where it has a name, and its error: one picture must not stop all the others."""
        try:
            with nullcontext() if name is None else self.watch.phase(name):
                yield
        except EdgeconvError as error:
            self.row.error = str(error)
        except MemoryError:
            self.row.error = str(MemoryLimitError(f"{self.task.source}: out of memory: lower --jobs."))
        except Exception as error:
            self.row.error = f"{self.task.source}: {one_line_with_class(error)}"

    @property
    def is_open(self) -> bool:
        """Whether there is something left to do."""
        return self.new and self.row.error is None

    @property
    def pixel_bytes(self) -> int:
        """Of what was read, once it is decoded by the GPU."""
        return 0 if self.header is None else self.header.width * self.header.height * RGB_CHANNELS

    def result(self) -> PictureResult:
        """What became of it."""
        if self.new:
            self.row.status = "done" if self.row.error is None else "failed"
            self.row.seconds = time.perf_counter() - self.started
        return PictureResult(self.row, self.new, self.watch.phases_seconds)


def _open(works: list[PictureWork]) -> list[PictureWork]:
    return [work for work in works if work.is_open]


@contextmanager
def _shared(works: list[PictureWork], name: Stage) -> Iterator[None]:
    """Each of the works gets its part of the time that a stage takes for all of them."""
    started = time.perf_counter()
    try:
        yield
    finally:
        for work in works:
            work.watch.add(name, (time.perf_counter() - started) / len(works))


class PictureProcessor:
    """Processes pictures, in any number of threads at once. Another process gets a copy by pickling."""

    def __init__(self, settings: Settings, names: Names, inputs: frozenset[str], previous: PreviousResults) -> None:
        """`inputs` are the identities of all input files of all shares, which no output may ever replace."""
        self.settings, self._names, self._inputs, self._previous = settings, names, inputs, previous
        self._parameters = settings.parameters_sha256()
        self.device: DeviceName = "cuda" if settings.device == "cuda" else "cpu"
        self._on = get_device(self.device)
        self._store = store_of(settings.output)
        self._names_taken: dict[str, Task] = {}
        self._thread = threading.local()
        self._set_up = threading.Lock()
        """One plan at a time: threads that start together would each compile what the first one puts in the cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.settings, self._names, self._inputs, self._previous)

    def process(self, tasks: list[Task]) -> list[PictureResult]:
        """Process pictures, from files to rows. Any error ends up in a row; nothing is raised."""
        works = [self.begin(task) for task in tasks]
        self.read(works)
        self.compute(works)
        self.put(works)
        return [work.result() for work in works]

    def begin(self, task: Task) -> PictureWork:
        """The work on a picture of which nothing is known yet."""
        by = (self._parameters, self.settings.method, self.device)
        return PictureWork(task, LedgerRow(task.source, task.identity, *by, status="done", seconds=0.0))

    def lost(self, task: Task, why: str) -> PictureResult:
        """The result for a picture whose worker process terminated."""
        work = self.begin(task)
        work.row.error = f"{task.source}: {why}"
        return work.result()

    # --- the stages -----------------------------------------------------------------------------------------------

    def read(self, works: list[PictureWork]) -> None:
        """Bytes and hash; where an earlier result of these bytes still holds, that is the result."""
        for work in works:
            with work.stage("read"):
                if work.task.problem is not None:
                    raise ImageReadError(work.task.problem)
                work.data = store_of(work.task.source).read(work.task.source, self.settings.rules)
                work.row.input_bytes, work.row.input_sha256 = len(work.data), sha256_of(work.data)
                earlier = self._previous.still_holding(work.task, work.row.input_sha256)
                if earlier is not None:
                    work.row, work.new = earlier, False
                else:
                    work.header = read_header(work.data, work.task.source, self.settings.rules)

    def goes_by_lists(self, work: PictureWork) -> bool:
        """Whether the GPU decodes what was read."""
        return self.settings.jpeg_codec == "gpu" and work.header is not None and work.header.gpu_jpeg

    def compute(self, works: list[PictureWork]) -> None:
        """All between the two files."""
        if any(work.is_open for work in works):
            with self._on.own_stream(self.settings.options.threads):
                self.decode(works)
                self.filter(works)
                self.encode(works)

    def decode(self, works: list[PictureWork]) -> None:
        """Pixels, on the host or on the GPU that decoded them."""
        listed = [work for work in _open(works) if self.goes_by_lists(work)]
        decoded: dict[int, Any] = {}
        if listed:
            with _shared(listed, "decode"), suppress(MemoryError, RuntimeError):  # no room for them: the host has
                files = [(work.data, cast(Header, work.header)) for work in listed]
                decoded = dict(zip(map(id, listed), the_gpu().decode(files), strict=True))
        for work in _open(works):
            with work.stage("decode"):
                pixels = decoded.pop(id(work), None)
                given: Decoder | None = None if self.settings.jpeg_codec == "host" else lambda *file, it=pixels: it
                work.picture = decode_image(
                    work.data, work.task.source, self.settings.rules, header=work.header, decoder=given
                )
                work.row.notes = work.picture.notes

    def filter(self, works: list[PictureWork]) -> None:
        """The finished output, by this thread's plan, which times the parts of this stage."""
        for work in sorted(_open(works), key=_shape):  # a plan is for one shape
            with work.stage():
                assert work.picture is not None
                output = self._filtered(work.picture.pixels, work.watch)
                if len(works) > 1:  # the array is this thread's, and the next picture needs it
                    output = output.copy()
                request = self.settings.request
                work.output = output.reshape(request.output_shape(work.picture.shape, output.shape))
                work.picture = None

    def encode(self, works: list[PictureWork]) -> None:
        """The name and the bytes of the output file."""
        settings = self.settings
        for work in _open(works):
            with work.stage("encode"):
                height, width = work.output.shape[:2]
                suffix = "." + (settings.format or FORMAT_OF_DTYPE[work.output.dtype.name])
                name = self._names.name(work.task, suffix, width, height)
                refuse_device_name(name)
                work.name = (work.task.folder / name).as_posix()
                if not encodes_on_gpu(work.output.shape, work.output.dtype, settings):
                    work.encoded = encode(work.output, join(settings.output, work.name), settings)
        listed = [work for work in _open(works) if not work.encoded]
        if listed:
            encoded: list[bytes | None] = [None] * len(listed)
            with _shared(listed, "encode"), suppress(MemoryError, RuntimeError):
                encoded = the_gpu().encode([work.output for work in listed], settings.quality)
            for work, data in zip(listed, encoded, strict=True):
                if data is None:
                    work.row.error = f"{join(settings.output, work.name)}: JPEG: it cannot be encoded on the GPU."
                else:
                    work.encoded = data
        for work in works:
            work.output = None

    def put(self, works: list[PictureWork]) -> None:
        """The file in its place, unless the same bytes are there already; never over an input or a file to be kept."""
        for work in _open(works):
            with work.stage("write"):
                row, digest = work.row, sha256_of(work.encoded)
                self._put(work, digest)
                row.output, row.output_bytes, row.output_sha256 = work.name, len(work.encoded), digest

    # --- their parts ----------------------------------------------------------------------------------------------

    def _filtered(self, pixels: Any, watch: Stopwatch) -> Any:
        """The finished output of a picture (HWC) on the host or the GPU; it stays on the GPU if it is encoded there."""
        with watch.phase("set_up"):
            given = np if isinstance(pixels, np.ndarray) else import_module("cupy")  # decoded on the GPU
            request = self.settings.request.settled(pixels, given)
            plan = self._plan(request.unfinished, pixels)
        out, arrays = plan.run(pixels, self._thread.result, watch), self._thread.arrays
        with watch.phase("convolve"):
            finished = request.finish(out, pixels.dtype, arrays, image=pixels)
        if request.threshold is None:
            return finished
        with watch.phase("threshold"):
            return request.mask(finished, arrays)

    def _plan(self, request: Request, pixels: Any) -> PreparedFilter:
        """This thread's plan and the array for its results; made anew only for another shape, type or chain.

        A chain is another one where its thresholds are.
        """
        key = (pixels.shape, pixels.dtype, request.chain)
        if getattr(self._thread, "key", None) != key:
            self._thread.plan = self._thread.result = None  # free the old buffers before allocating new ones
            self._thread.key = None
            choice = Choice(self.settings.method, self.device, "the method of the batch")
            with self._set_up:
                problem = request.picture_problem(pixels.shape, pixels.dtype)
                plan = PreparedFilter(request, problem, choice, self.settings.options)
            finished_dtype = self.settings.request.output_dtype(pixels.dtype)
            on_gpu = encodes_on_gpu(problem.output_shape, finished_dtype, self.settings)
            self._thread.plan, self._thread.arrays = plan, plan.processor.array_module if on_gpu else np
            self._thread.result = self._thread.arrays.empty(problem.output_shape, problem.output_dtype)
            self._thread.key = key
        found: PreparedFilter = self._thread.plan
        return found

    def _put(self, work: PictureWork, digest: str) -> None:
        """A file that appears between the check and the writing is checked again."""
        task, name, folder = work.task, work.name, self.settings.output
        target = join(folder, name)
        first = self._names_taken.setdefault(as_compared(name), task)
        if first != task:
            raise ImageWriteError(
                f"{target}: is the output of {first.source} too: choose a --name that gives them different names."
            )
        try:
            for _ in range(MAX_TRIES):
                present = self._store.output_digest(folder, name)
                if present is not None:
                    if not is_remote(task.source) and not is_remote(target) and is_same_file(task.source, target):
                        raise ImageWriteError(f"{target}: is the input itself: choose another folder with -o.")
                    if present == digest:
                        return
                    if self._store.identity(target) in self._inputs:
                        raise ImageWriteError(f"{target}: is one of the inputs: choose another folder with -o.")
                    if not self.settings.overwrite:
                        self._previous.refuse_to_replace(name, present, task)
                with suppress(NameTakenError):
                    self._store.write_output(folder, name, work.encoded, replace=present is not None)
                    return
        except ForeignFileError as error:
            raise ImageWriteError(f"{target}: {error}: remove it, or choose another folder with -o.") from None
        raise ImageWriteError(f"{target}: another process keeps creating and removing it: choose another folder.")


def _shape(work: PictureWork) -> tuple[int, ...]:
    assert work.picture is not None
    return work.picture.shape


def encodes_on_gpu(shape: tuple[int, ...], dtype: Any, settings: Settings) -> bool:
    """Whether `encode` takes an output of this shape from GPU memory."""
    entry: Format | None = WRITTEN.get(f".{settings.format}")
    if settings.jpeg_codec == "host" or entry is None or entry.name != "JPEG":
        return False
    return dtype.name in entry.writes and shape[2:] == (RGB_CHANNELS,) and max(shape[:2]) <= entry.max_side


def encode(output: Any, target: str, settings: Settings) -> bytes | memoryview:
    """The bytes of an output file, from a NumPy array. Raises ImageWriteError."""
    chosen = settings.request.filter
    return encode_image(
        output,
        target,
        bank=chosen.filters if chosen.labels else 0,
        threads=settings.options.threads,
        quality=settings.quality,
        png_level=settings.png_level,
    )


def held_bytes(device: DeviceName) -> dict[str, int | None]:
    """Peak memory of this process, and of its pool on a GPU, so far."""
    return {each.name: each.peak_bytes() for each in dict.fromkeys((get_device("cpu"), get_device(device)))}


def share_machine(threads: int) -> None:
    """Limit OpenCV to `threads` threads per picture, its share of the cores, and keep memory for the next picture."""
    import cv2

    cv2.setNumThreads(threads)
    keep_what_is_freed()
