"""Two of the same after each other, with one thing changed: nothing that is kept answers for something else.

Each cache and key of the package stands here with the fields that it must tell apart. The fields are walked from the
signatures and data classes themselves, so that one that is added must be thought of here too.
"""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import re
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from batch_folders import settings_for
from command import PROJECT
from problems import random_image, random_weights

import edgeconv
from edgeconv.api import convolve as door
from edgeconv.api.convolve import PLANS
from edgeconv.batch.engines import dask_worker
from edgeconv.batch.previous_results import PreviousResults
from edgeconv.batch.settings import Settings
from edgeconv.batch.worker import PictureWorker
from edgeconv.bench.grid import named_grid
from edgeconv.bench.peers import PEERS, npp
from edgeconv.bench.peers import _load as load_peer
from edgeconv.core.canny import CannySettings
from edgeconv.core.chains import make_chain
from edgeconv.core.filters import named_filter
from edgeconv.core.problem import INPUT_DTYPES, make_problem
from edgeconv.core.request import Request, make_request
from edgeconv.core.timing import Stopwatch
from edgeconv.diff.scale import scale_for
from edgeconv.errors import EdgeconvError
from edgeconv.hardware import nvml
from edgeconv.hardware.cpu import jit
from edgeconv.hardware.cuda import kernels
from edgeconv.hardware.cuda.kernels import KernelVariant
from edgeconv.methods import METHODS
from edgeconv.methods.cpu import engine
from edgeconv.methods.cpu.canny_layout import make_shape
from edgeconv.methods.cpu.layout import make_layout
from edgeconv.methods.cpu.lowering import make_lowering
from edgeconv.methods.cuda import cudnn
from edgeconv.methods.options import Options
from edgeconv.run.tiled import memory
from edgeconv.run.tiled.grid import WindowRules
from edgeconv.run.tiled.pipeline import Clock, WindowFilter
from edgeconv.runtime import devices
from edgeconv.runtime.auto import Choice
from edgeconv.view import compute as view_work
from edgeconv.view.latest_request import Token
from edgeconv.view.parameters import Parameters
from edgeconv.view.sources import INPUT, OUTPUT, ViewSource
from edgeconv.view.state import ViewRequest as ViewRequest
from edgeconv.view.state import find_mode

PICTURE = random_image(12, 17, "uint8")

# --- convolve: plans that are remembered ----------------------------------------------------------------------------

PROBLEM = make_problem((12, 17, 3), "uint8", random_weights(), output_mode="abs")
OTHER_PROBLEM: dict[str, Any] = {
    "height": 17,
    "width": 12,
    "dtype": np.dtype(np.uint16),
    "weights": PROBLEM.weights + np.float32(1),
    "groups": 3,
    "combine": "maximum",
    "stride": 2,
    "padding": 0,
    "border": "reflect",
    "output_mode": "clip",
}
SAME_BYTES = PROBLEM.weights.reshape(3, 1, 3, 3, 3)
"""Other weights all the same: three directions of one output."""
OTHER_OPTIONS: dict[str, Any] = {
    "workspace_limit_bytes": 1,
    "threads": 3,
    "math": "tf32",
    "gemm": "cublas",
    "cudnn_find": True,
    "block": 32,
}


CALL: dict[str, Any] = {"image": PICTURE, "filter": "sobel", "method": "im2col", "device": "cpu", "output_mode": "raw"}
OTHER_CALL: dict[str, Any] = {
    "image": PICTURE[:, ::-1].astype(np.uint16),
    "filter": "scharr",
    "method": "opencv",
    "stride": 2,
    "padding": "valid",
    "border": "reflect101",
    "channels": "each",
    "luma": None,
    "output_mode": "abs",
    "threshold": 0.5,
    "device": "auto",
    "options": Options(workspace_limit_bytes=0),
    "out": np.zeros(PICTURE.shape, np.float32),
}


def answer_of(**words: Any) -> tuple[Any, ...]:
    """What `convolve` gives, or says."""
    try:
        out = edgeconv.convolve(**words)
    except EdgeconvError as error:
        return (str(error),)
    return out.shape, out.dtype.name, out.tobytes()


@pytest.mark.parametrize("name", inspect.signature(edgeconv.convolve).parameters)
def test_convolve_answers_what_was_asked_last(name: str) -> None:
    base, other = CALL, CALL | {name: OTHER_CALL[name]}
    if name == "luma":
        base, other = ({**CALL, "channels": "luma", "luma": luma} for luma in ("bt601", "bt709"))
    fresh = []
    for words in (base, other):
        PLANS.clear()
        fresh.append(answer_of(**words))
    PLANS.clear()
    assert [answer_of(**words) for words in (base, other, base, other)] == [*fresh, *fresh]
    if name not in ("method", "device", "out"):  # which are right in the same way
        assert fresh[0] != fresh[1]


@pytest.mark.parametrize("name", [field.name for field in fields(Options)])
def test_a_plan_has_the_options_that_were_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Options] = []
    whole = door._make_plan
    monkeypatch.setattr(door, "_make_plan", lambda *words: asked.append(words[-1]) or whole(*words[:-1], Options()))
    PLANS.clear()
    other = Options(**{name: OTHER_OPTIONS[name]})
    for options in (Options(), other, Options(), other):
        edgeconv.convolve(PICTURE, "sobel", "reference", options=options)
    assert asked == [Options(), other], "each is made once, and neither is taken for the other"


def test_weights_that_were_changed_in_place_are_new_weights() -> None:
    weights = np.zeros((3, 3), np.float32)
    weights[1, 1] = 1
    assert np.array_equal(edgeconv.convolve(PICTURE, weights, "reference", channels="each"), PICTURE)
    weights[1, 1] = 0
    assert not edgeconv.convolve(PICTURE, weights, "reference", channels="each").any()


def test_a_plan_that_could_not_be_made_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANS.clear()
    with monkeypatch.context() as patch:
        patch.setattr(door, "choose", lambda *words: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            edgeconv.convolve(PICTURE, "sobel", "opencv")
    assert edgeconv.convolve(PICTURE, "sobel", "opencv").shape == PICTURE.shape
    assert len(PLANS) == 1


# --- batch, tiles, the window ----------------------------------------------------------------------------------------

SHAPES = ((12, 17), (17, 12), (12, 18))
PICTURES = [random_image(height, width, dtype) for height, width in SHAPES for dtype in INPUT_DTYPES]


def work_of(tmp_path: Path, **settings: Any) -> PictureWorker:
    return PictureWorker(settings_for(tmp_path, **settings), Options(), frozenset(), PreviousResults(str(tmp_path), ""))


def test_pictures_of_one_batch_are_filtered_by_their_own_shape_and_type(tmp_path: Path) -> None:
    """Each pair of them, both ways round: 8 and 16 bits of one size too."""
    expected = [edgeconv.convolve(each, method="reference", channels="each", device="cpu") for each in PICTURES]
    work = work_of(tmp_path)
    for first in range(len(PICTURES)):
        for second in range(len(PICTURES)):
            for which in (first, second):
                out = work.convolve(PICTURES[which], Stopwatch())
                assert (out.dtype, out.shape) == (expected[which].dtype, expected[which].shape)
                assert np.array_equal(out, expected[which])


OTHER_REQUEST: dict[str, Any] = {
    "filter": named_filter("scharr"),
    "channels": "mix",
    "luma": "bt709",
    "stride": 2,
    "padding": 0,
    "border": "reflect",
    "output_mode": "raw",
    "threshold": 40.0,
}


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_works_after_each_other_in_one_worker_keep_apart(tmp_path: Path, name: str) -> None:
    one = work_of(tmp_path)
    base = make_request(channels="luma") if name == "luma" else one._settings.request
    one = PictureWorker(replace(one._settings, request=base), Options(), frozenset(), one._previous)
    changed = replace(base, **{name: OTHER_REQUEST[name]})
    other = PictureWorker(replace(one._settings, request=changed), Options(), frozenset(), one._previous)
    sent = [pickle.dumps(each) for each in (one, other)]
    results = []
    for which in (0, 1, 0, 1):
        results.append(dask_worker._unpickled(sent[which]).convolve(PICTURE, Stopwatch()).copy())
    assert np.array_equal(results[0], results[2])
    assert np.array_equal(results[1], results[3])
    assert not np.array_equal(results[0], results[1])


SETTINGS_THAT_COUNT = {
    "request": None,  # field by field below
    "choice": Choice("opencv", "cpu", "another"),
    "names": None,  # its template
    "options": None,  # field by field below
    "format": "tiff",
    "quality": 3,
    "png_level": 3,
    "jpeg_codec": "gpu",
}
SETTINGS_THAT_DO_NOT = {
    "output": "elsewhere",
    "share": (1, 2),
    "overwrite": True,
    "resume": True,
    "retry_failed": True,
    "jobs": 3,
    "max_failures": 3,
    "rules": None,
}
OPTIONS_THAT_DO_NOT = {"workspace_limit_bytes", "threads", "block"}
"""They change how long it takes and how much memory, and no bit of the output."""


def test_every_setting_of_a_batch_decides_what_an_output_holds_or_is_known_not_to(tmp_path: Path) -> None:
    assert {field.name for field in fields(Settings)} == set(SETTINGS_THAT_COUNT) | set(SETTINGS_THAT_DO_NOT)
    assert {field.name for field in fields(Request)} == set(OTHER_REQUEST)
    base = settings_for(tmp_path)
    hashes = {"nothing": base.parameters_sha256()}
    changed = {name: replace(base, **{name: value}) for name, value in SETTINGS_THAT_COUNT.items() if value is not None}
    changed |= {f"request.{name}": replace(base, request=replace(base.request, **{name: value}))
                for name, value in OTHER_REQUEST.items()}  # fmt: skip
    changed |= {f"options.{name}": replace(base, options=Options(**{name: value}))
                for name, value in OTHER_OPTIONS.items() if name not in OPTIONS_THAT_DO_NOT}  # fmt: skip
    changed["names"] = replace(base, names=replace(base.names, template="{stem}{ext}"))
    changed["choice.device"] = replace(base, choice=Choice("sliding", "cuda", ""))
    changed["choice.device of another"] = replace(base, choice=Choice("sliding", "cpu", ""))
    hashes |= {name: settings.parameters_sha256() for name, settings in changed.items()}
    alike = [name for name, found in hashes.items() if list(hashes.values()).count(found) > 1]
    assert alike == []
    for name, value in SETTINGS_THAT_DO_NOT.items():
        if value is not None:
            assert replace(base, **{name: value}).parameters_sha256() == hashes["nothing"], name
    for name in OPTIONS_THAT_DO_NOT:
        options = Options(**{name: OTHER_OPTIONS[name]})
        assert replace(base, options=options).parameters_sha256() == hashes["nothing"], name


def test_windows_of_tiles_are_filtered_by_their_own_shape() -> None:
    filtering = WindowFilter(make_request("sobel"), Choice("opencv", "cpu", ""), Options(), np.dtype(np.uint8), Clock())
    for height, width in (*SHAPES, *reversed(SHAPES)):
        window = random_image(height, width, "uint8")
        expected = edgeconv.convolve(window, "sobel", "opencv", padding=0, device="cpu")
        assert np.array_equal(filtering.run(window), expected)


SHOWN = Parameters(device="cpu", method="im2col", filter="sobel", output_mode="raw")
OTHER_SHOWN: dict[str, Any] = {
    "filter": "scharr",
    "kernel": "1,2,3;4,5,6;7,8,9",
    "channels": "each",
    "luma": "bt709",
    "stride": 2,
    "padding": "valid",
    "border": "reflect",
    "output_mode": "clip",
    "threshold": 300.0,
    "chain": "gaussian,sobel",
    "thresholds": "900,1000",
    "gradient": "l2",
    "blur": 3,
    "method": "opencv",
    "device": "cuda",
    "threads": 1,
    "workspace_limit": "1",
    "math": "tf32",
    "gemm": "cublas",
    "cudnn_find": True,
    "block": 8,
}


def layer_of(workshop: view_work.Workshop, path: Path, parameters: Parameters, source: ViewSource = OUTPUT) -> Any:
    """The pixels of a side and how they were made, or the line that says why there are none."""
    answers: list[Any] = []
    token = Token()
    token.wait = lambda seconds: False  # type: ignore[method-assign]  # nothing is measured
    workshop.serve(ViewRequest(1, str(path), parameters, find_mode("single"), INPUT, source), token, answers.append)
    for answer in answers:
        if isinstance(answer, view_work.Failed):
            return answer.message
        if isinstance(answer, view_work.LayerReady):
            options = workshop._computed(str(path), parameters, source).filtered.options
            return answer.layer.pixels.tobytes(), answer.layer.pixels.dtype.name, answer.layer.label, options
    raise AssertionError("nothing was answered")


@pytest.mark.parametrize("name", [field.name for field in fields(Parameters)])
def test_the_window_shows_what_was_asked_last(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in.png"
    edgeconv.write_image(PICTURE, path)
    base = SHOWN
    if name == "luma":
        base = replace(SHOWN, channels="luma")
    if name == "kernel":
        base = replace(SHOWN, filter=Parameters().filter)
    if name in ("thresholds", "gradient", "blur"):
        base = Parameters(filter="canny", device="cpu")
    if name == "chain":
        base = replace(SHOWN.with_filter(Parameters().filter), device="cpu")
    if name == "kernel_file":
        kernel = tmp_path / "kernel.json"
        kernel.write_text("[[0, 1, 0], [1, -4, 1], [0, 1, 1]]", encoding="ascii")
        base = replace(SHOWN, filter=Parameters().filter)
        changed = replace(base, kernel_file=str(kernel))
    else:
        changed = replace(base, **{name: OTHER_SHOWN[name]})
    fresh = [layer_of(view_work.Workshop(), path, parameters) for parameters in (base, changed)]
    assert fresh[0] != fresh[1]
    workshop = view_work.Workshop()
    assert [layer_of(workshop, path, each) for each in (base, changed, base, changed)] == [*fresh, *fresh]


# --- what is read, loaded and compiled -------------------------------------------------------------------------------


def test_each_entry_of_a_table_is_its_own_class() -> None:
    for entry in (*METHODS, *reversed(METHODS)):
        method = entry.load()
        assert f"{type(method).__module__}:{type(method).__name__}" == entry.location
    for peer in (*PEERS, *reversed(PEERS)):
        loaded = load_peer(peer)
        assert f"{type(loaded).__module__}:{type(loaded).__name__}" == peer.location
        assert loaded is load_peer(peer)
    assert len({id(load_peer(peer)) for peer in PEERS}) == len(PEERS)


def test_a_scale_is_that_of_its_type() -> None:
    tops = {"uint8": "128–255", "uint16": "32,768–65,535"}
    tops |= dict.fromkeys(("float16", "float32", "float64"), "NaN or infinite")
    for dtype in (*INPUT_DTYPES, *reversed(INPUT_DTYPES)):
        for asked in (dtype, np.dtype(dtype)):
            assert scale_for(asked).labels[-1] == tops[dtype]


SEAMS: dict[str, Any] = {
    "size": 100,
    "rules": WindowRules(1, 1, "zero"),
    "step": 16,
    "chunk_cuts": (0, 32, 64, 96, 100),
}
OTHER_SEAMS: dict[str, tuple[Any, ...]] = {
    "size": (99,),
    "rules": (WindowRules(2, 1, "zero"), WindowRules(1, 40, "zero"), WindowRules(1, 40, "reflect")),
    "step": (32,),
    "chunk_cuts": ((0, 10, 20, 100),),
}


@pytest.mark.parametrize("name", inspect.signature(memory._sharing).parameters)
def test_what_tiles_share_is_counted_for_their_own_cuts(name: str) -> None:
    plain = memory._sharing.__wrapped__
    memory._sharing.cache_clear()
    for other in OTHER_SEAMS[name]:
        asked = SEAMS | {name: other}
        if name == "size":
            asked["chunk_cuts"] = (*SEAMS["chunk_cuts"][:-1], other)
        for words in (SEAMS, asked, SEAMS):
            assert memory._sharing(**words) == plain(**words)


def test_a_kernel_is_compiled_for_its_own_source_entry_and_macros(monkeypatch: pytest.MonkeyPatch) -> None:
    def module(code: str, options: tuple[str, ...], backend: str) -> Any:
        return SimpleNamespace(get_function=lambda entry: (code, options, entry))

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(RawModule=module))
    monkeypatch.setattr(kernels, "_load", functools.cache(kernels._load.__wrapped__))
    base = KernelVariant("methods/cuda/textbook.cu", "textbook", (("BLOCK", 16),))
    others = {
        "source": replace(base, source="methods/cuda/gemm.cu"),
        "entry": replace(base, entry="gemm"),
        "defines": replace(base, defines=(("BLOCK", 8),)),
    }
    assert set(others) == {field.name for field in fields(KernelVariant)}
    for variant in (base, *others.values(), base):
        code, options, entry = kernels.load(variant)
        own = (kernels.FOLDER / variant.source).read_text(encoding="utf-8")
        assert own.splitlines()[0] in code
        assert entry == variant.entry
        assert [option for option in options if option.startswith("-D")] == [f"-D{k}={v}" for k, v in variant.defines]


def test_a_handle_of_cudnn_is_of_one_gpu_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn, "Handle", object)
    cudnn._handle.cache_clear()
    try:
        places = [(0, 1), (1, 1), (0, 2), (1, 0)]
        found = [cudnn._handle(*place) for place in places]
        assert len(set(map(id, found))) == len(places)
        assert [cudnn._handle(*place) for place in places] == found
    finally:
        cudnn._handle.cache_clear()


def test_a_device_is_that_of_its_name_and_one_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [SimpleNamespace(CudaDevice=lambda: SimpleNamespace(name="cuda"))]
    monkeypatch.setitem(sys.modules, "edgeconv.runtime.devices.cuda", made[0])
    monkeypatch.setattr(devices, "get_device", functools.cache(devices.get_device.__wrapped__))
    names: list[Any] = ["cpu", "cuda", "cpu", "cuda"]
    found = [devices.get_device(name) for name in names]
    assert [device.name for device in found] == names
    assert (found[0] is found[2], found[1] is found[3]) == (True, True)


class Driver:
    """NVML, which has a GPU at each place on the bus but one."""

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, place: bytes, handle: Any) -> int:
        if place == b"none":
            return 6  # NVML_ERROR_NOT_FOUND
        handle._obj.value = int(place, 16)
        return 0


def test_a_gpus_clocks_are_those_of_its_place_on_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml.ctypes, "CDLL", lambda name: Driver())
    monkeypatch.setattr(nvml, "open_gpu", functools.cache(nvml.open_gpu.__wrapped__))
    places = ["17", "none", "65", "17", "none", "65"]
    found: list[Any] = [nvml.open_gpu(place) for place in places]
    assert [None if each is None else each._handle.value for each in found] == [0x17, None, 0x65] * 2
    assert found[:3] == found[3:]


def test_a_function_of_npp_is_that_of_its_name_in_its_own_library(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    class Library:
        def __init__(self, name: str) -> None:
            opened.append(name)
            self.file = name

        def __getattr__(self, name: str) -> Any:
            return SimpleNamespace(name=name, library=self.file)

    def no_finder(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(npp, "import_module", no_finder)
    monkeypatch.setattr(npp.ctypes, "CDLL", Library)
    monkeypatch.setattr(npp, "_open", functools.cache(npp._open.__wrapped__))
    monkeypatch.setattr(npp, "_function", functools.cache(npp._function.__wrapped__))
    names = [*npp.SIGNATURES, *reversed(npp.SIGNATURES)]
    for name in names:
        library, arguments = npp.SIGNATURES[name]
        function = npp._function(name, library, arguments)
        assert (function.name, function.library) == (name, f"lib{library}.so.13")
        assert (function.argtypes, function.restype) == (arguments, npp.c_int)
        assert function is npp._function(name, library, arguments)
    assert sorted(opened) == ["libnppial.so.13", "libnppif.so.13"], "each library once"


LOWERING = make_lowering(make_problem((9, 9, 3), "uint8", random_weights(), output_mode="abs"))
PROCESSOR = jit.Processor("x86_64-linux-gnu", "generic", "+avx2", 32, has_half=True)
LAYOUT = make_layout(LOWERING, PROCESSOR, 64, False)


@pytest.mark.parametrize("place", range(3), ids=["lowering", "layout", "processor"])
def test_machine_code_is_that_of_its_lowering_layout_and_processor(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "code_for", functools.cache(engine.code_for.__wrapped__))
    monkeypatch.setattr(engine.rowcode, "write", lambda lowering, layout: (lowering, layout))
    monkeypatch.setattr(engine.jit, "compile_module", lambda text, processor: (*text, processor))
    asked = (LOWERING, LAYOUT, PROCESSOR)
    assert engine.code_for(*asked) == asked
    for field in fields(asked[place]):
        changed = with_other(asked[place], field.name)
        words = (*asked[:place], changed, *asked[place + 1 :])
        found = engine.code_for(*words)
        assert getattr(found[place], field.name) is getattr(changed, field.name), field.name
        assert engine.code_for(*asked)[place] == asked[place]


class Other:
    """A value that nothing else is equal to."""


def with_other(record: Any, name: str) -> Any:
    """A copy of a frozen record with another value in one field, whatever its constructor would say."""
    changed = copy.copy(record)
    object.__setattr__(changed, name, Other())
    return changed


KEYS: tuple[Any, ...] = (
    LOWERING,
    LAYOUT,
    PROCESSOR,
    Options(),
    KernelVariant("a.cu", "a"),
    WindowRules(1, 1, "zero"),
    METHODS[0],
    PEERS[0],
    named_grid("surface"),
    dask_worker.Terms(("edgeconv",)),
    Parameters(),
    ViewSource("file"),
    make_shape("u8", 3, CannySettings(1, 2), 32),
    make_chain("canny", low=1, high=2),
)
"""Records by which something is kept. (A Problem is compared field by field above: its weights are an array.)"""


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
def test_every_field_of_a_key_tells_keys_apart(key: Any) -> None:
    assert is_dataclass(key)
    assert copy.copy(key) == key
    for field in fields(key):
        changed = with_other(key, field.name)
        assert changed != key, field.name
        assert len({changed, key, copy.copy(key)}) == 2, field.name


def test_the_records_above_are_those_that_functions_are_cached_by() -> None:
    """A cached function with arguments that is added to the package must be thought of here."""

    found = set()
    for path in (PROJECT / "edgeconv").rglob("*.py"):
        names = CACHED_FUNCTION.findall(path.read_text(encoding="utf-8"))
        found |= {f"{path.stem}.{name}" for name in names}
    assert found == CACHED


CACHED_FUNCTION = re.compile(r"^ *@(?:functools\.)?(?:lru_)?cache\b.*\n *def (\w+)\((?!self\b|\))", re.MULTILINE)

CACHED = {
    "commands.load",
    "option.options_of",
    "__init__._load",  # of peers
    "entry._load",  # of methods
    "outside.outside_methods",  # by the names of the table, which do not change
    "__init__.get_device",
    "dask_worker._check",
    "dask_worker._unpickled",
    "cudnn._handle",
    "canny.code_for",
    "engine.code_for",
    "kernels._with_headers",
    "kernels._load",
    "memory._sharing",
    "npp._function",
    "npp._open",
    "nvml.open_gpu",
    "scale.scale_for",
    "surface.drawn_cases",
}
