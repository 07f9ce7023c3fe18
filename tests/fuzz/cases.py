"""Cases drawn from a seed: case K of a seed and device is the same on every machine and in any order.

A configuration is what a kernel is compiled for (method, type, filter, channels, stride, output mode, options; on CUDA
border and padding too). It holds for a group of cases, which draw shape, samples, layout and alignment: so most of the
time goes into running. On the CPU the weights are compiled in and belong to the configuration; on CUDA to the case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oracle import LUMA, NAMED, Asked, named

GROUP = {"cpu": 24, "cuda": 64}
"""Cases of one configuration."""

METHODS = {
    "cpu": ("reference", "opencv", "opencv", "sliding", "sliding", "im2col", "im2col", "auto"),
    "cuda": ("sliding", "strips", "strips", "textbook", "im2col", "implicit", "cudnn", "auto"),
}
"""As often as they are drawn. `strips` are what `sliding` does with larger pictures."""

TYPES = ("uint8", "uint16", "float16", "float32")
BORDERS = ("zero", "replicate", "reflect", "reflect101")
STRIDES = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 9)
PADDINGS: tuple[int | str, ...] = ("same", "same", "valid", 0, 1, 2, 3, 4, 5)
PAST_THE_PICTURE = (7, 40)

WHOLE = {"whole 1": 1, "whole 10": 10, "whole 127": 127, "whole 2000": 2000, "whole 1e5": 10**5, "whole 1e6": 10**6}
KERNELS = (*WHOLE, "fractions", "large", "tiny", "small channel", "zero sum", "sparse")
GENTLE_KERNELS = ("whole 1", "whole 10", "fractions")
"""For the tensor cores' arithmetic, whose operands are rounded."""

WHOLE_SAMPLES = ("noise", "noise", "extremes", "bright", "constant", "sparse")
FLOAT_SAMPLES = ("unit", "unit", "positive", "constant", "huge", "tiny", "denormals", "any bits", "holes", "many holes")

LAYOUTS = (
    "contiguous",
    "every second",
    "cut out",
    "Fortran order",
    "rows reversed",
    "all reversed",
    "read-only",
    "other byte order",
    "unaligned",
)
DEVICE_LAYOUTS = LAYOUTS[:6]

SHAPES = ("tiny", "small", "small", "prime", "edge", "edge", "wide", "tall", "large")
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
TILE_SIDES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)

WORKSPACE_LIMITS = (0, 1_000, 30_000, 200_000, 2_000_000)


@dataclass(frozen=True)
class FuzzCase:
    """One call: what is asked, of whom, with which samples, lying how in memory."""

    device: str
    seed: int
    index: int
    method: str
    dtype: str
    filter: Any
    """A name, or an array of weights."""
    kernel_kind: str
    channels: str
    luma: str
    stride: int
    padding: int | str
    border: str
    mode: str | None
    options: dict[str, Any]
    shape: tuple[int, int]
    shape_kind: str
    samples: str
    layout: str
    door: str
    """`call`: edgeconv.convolve; `plan`: the plan itself, with guard bytes around the output."""
    on_device: bool
    """A call on CUDA with an array that lies there already."""
    offsets: tuple[int, int]
    """Samples past an aligned address where a plan's picture and output start."""
    sample_seed: tuple[int, ...] = field(repr=False, default=())

    @property
    def command(self) -> str:
        """What repeats this one."""
        return f"python3 scripts/fuzz.py --device {self.device} --seed {self.seed} --case {self.index}"

    def __str__(self) -> str:
        named_filter = self.filter if isinstance(self.filter, str) else f"{self.kernel_kind} {self.filter.ndim}-D"
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        place = f"plan +{self.offsets[0]}/+{self.offsets[1]}" if self.door == "plan" else f"call {self.layout}"
        height, width = self.shape
        return (
            f"{self.device} {self.method} {self.dtype} {named_filter} {self.channels} s{self.stride} p{self.padding} "
            f"{self.border} {height}x{width} {self.mode or 'default'} {self.samples} {place}"
            f"{' on device' if self.on_device else ''}{' ' + options if options else ''}"
        )

    @property
    def asked(self) -> Asked:
        """The same for the oracle."""
        if isinstance(self.filter, str):
            kernels, combine = named(self.filter)
        else:
            kernels, combine = self.filter[np.newaxis], "single"
        pixels = {"same": 1, "valid": 0}.get(self.padding, self.padding)  # type: ignore[call-overload]
        return Asked(kernels, combine, self.channels, self.luma, self.stride, pixels, self.border, self.mode)

    @property
    def classes(self) -> dict[str, str]:
        """What is counted."""
        return {
            "method": self.method,
            "type": self.dtype,
            "kernel": self.kernel_kind if not isinstance(self.filter, str) else self.filter,
            "channels": self.channels,
            "stride": str(self.stride),
            "padding": "more" if self.asked.padding > 5 else str(self.padding),
            "border": self.border,
            "output mode": self.mode or "default",
            "samples": self.samples,
            "shape": self.shape_kind,
            "layout": self.layout if self.door == "call" else "plan, guard bytes",
            "options": " ".join(self.options) or "none",
        }

    def picture(self) -> np.ndarray:
        """The samples, C-contiguous."""
        return draw_samples(np.random.default_rng(self.sample_seed), self.samples, self.shape, np.dtype(self.dtype))


def draw(device: str, seed: int, index: int) -> FuzzCase:
    """Case `index` of a seed."""
    key = (seed, ("cpu", "cuda").index(device), index // GROUP[device])
    shared, own = np.random.default_rng(key), np.random.default_rng((*key, index % GROUP[device] + 1))
    method, dtype = _pick(shared, METHODS[device]), _pick(shared, TYPES)
    options = _draw_options(shared, device, method)
    gentle = options.get("math", "fma") != "fma"
    if gentle and dtype == "uint16":
        dtype = "uint8"  # refused: samples of 16 bits do not fit such operands
    stride = _pick(shared, STRIDES)
    mode = _pick(shared, (None, "abs", "raw", "normalize", *(("clip",) * (dtype[0] == "u"))))
    kind = _pick(shared, ("named", "named", *(GENTLE_KERNELS if gentle else KERNELS)))
    channels, luma = _pick(shared, ("mix", "mix", "each", "luma")), _pick(shared, tuple(LUMA))
    full = kind == "small channel" or (kind != "named" and channels == "mix" and shared.random() < 0.5)
    name = _pick(shared, NAMED)
    weights: Any = draw_kernel(shared if device == "cpu" else own, kind, full) if kind != "named" else name
    padding, border = _draw_edges(shared if device == "cuda" else own)

    shape_kind = _pick(own, SHAPES) if own.random() < 0.99 else "largest"
    shape = _draw_shape(own, shape_kind)
    if device == "cpu" and own.random() < 0.1:
        padding = max(shape) + 2 if max(shape) < 60 else padding
    least = 3 - 2 * {"same": 1, "valid": 0}.get(padding, padding)  # type: ignore[call-overload, operator]
    door = "plan" if method == "strips" or (method != "auto" and own.random() < 0.6) else "call"
    if mode == "normalize":
        door = "call" if method != "strips" else door
        mode = None if door == "plan" else mode
    on_device = device == "cuda" and door == "call" and bool(own.random() < 0.6)
    layout = _pick(own, DEVICE_LAYOUTS if on_device else LAYOUTS) if door == "call" else "contiguous"
    samples = _pick(own, WHOLE_SAMPLES if dtype[0] == "u" else FLOAT_SAMPLES)
    if gentle and dtype[0] == "f":
        samples = _pick(own, ("unit", "positive", "constant"))
    return FuzzCase(
        device=device,
        seed=seed,
        index=index,
        method=method,
        dtype=dtype,
        filter=weights,
        kernel_kind=kind,
        channels="mix" if full else channels,
        luma=luma,
        stride=stride,
        padding=padding,
        border=border,
        mode=mode,
        options=options,
        shape=(max(shape[0], least), max(shape[1], least)),
        shape_kind=shape_kind,
        samples=samples,
        layout=layout,
        door=door,
        on_device=on_device,
        offsets=(int(own.integers(0, 17)), int(own.integers(0, 17))) if own.random() < 0.7 else (0, 0),
        sample_seed=(*key, index % GROUP[device] + 1, 1),
    )


def _pick(rng: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _draw_options(rng: np.random.Generator, device: str, method: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.2:
        options["workspace_limit_bytes"] = _pick(rng, WORKSPACE_LIMITS)
    if device == "cpu" and rng.random() < 0.4:
        options["threads"] = _pick(rng, (1, 2, 3))
    if method == "cudnn" and rng.random() < 0.5:
        options["math"] = _pick(rng, ("tf32", "half"))
    if device == "cuda" and method == "im2col" and rng.random() < 0.3:
        options["gemm"] = "cublas"
    if method == "textbook" and rng.random() < 0.5:
        options["block"] = _pick(rng, (8, 32))
    if method == "cudnn" and rng.random() < 0.1:
        options["cudnn_find"] = True
    return options


def _draw_edges(rng: np.random.Generator) -> tuple[int | str, str]:
    paddings = PADDINGS if rng.random() < 0.9 else PAST_THE_PICTURE
    return _pick(rng, paddings), _pick(rng, BORDERS)


def _draw_shape(rng: np.random.Generator, kind: str) -> tuple[int, int]:
    def from_to(first: int, last: int) -> int:
        return int(rng.integers(first, last + 1))

    if kind == "tiny":
        return from_to(1, 4), from_to(1, 4)
    if kind == "small":
        return from_to(1, 48), from_to(1, 48)
    if kind == "prime":
        return _pick(rng, PRIMES), _pick(rng, PRIMES)
    if kind == "edge":
        return from_to(1, 6), max(1, _pick(rng, TILE_SIDES) * from_to(1, 3) + from_to(-2, 2))
    if kind == "wide":
        return from_to(1, 2), from_to(500, 3000)
    if kind == "tall":
        return from_to(500, 3000), from_to(1, 2)
    if kind == "large":
        return from_to(40, 90), from_to(40, 140)
    return from_to(200, 420), from_to(200, 420)


def draw_kernel(rng: np.random.Generator, kind: str, full: bool) -> np.ndarray:
    """Weights of a kind, 3×3 or (out, in, row, column), exact in float32."""
    shape = (3, 3, 3, 3) if full else (3, 3)
    if kind in WHOLE:
        largest = WHOLE[kind]
        values = rng.integers(-largest, largest + 1, shape).astype(np.float64)
    elif kind == "zero sum":
        values = rng.integers(-400, 401, shape).astype(np.float64)
        values[..., 1, 1] -= values.sum(axis=(-2, -1))
    elif kind == "sparse":
        values = np.where(rng.random(shape) < 0.2, rng.integers(-300, 301, shape), 0) * (1.0, 0.37)[rng.integers(2)]
    else:
        values = rng.uniform(-1, 1, shape)
        if kind == "large":
            values *= 10.0 ** rng.integers(3, 31)
        elif kind == "tiny":
            values *= 10.0 ** -rng.integers(6, 31)
        elif kind == "small channel":
            values[rng.integers(3)] *= (1e-6, 1e-7)[rng.integers(2)]
    rounded: np.ndarray = values.astype(np.float32)
    return rounded


def draw_samples(rng: np.random.Generator, kind: str, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """A picture (HWC, three channels) of a kind of samples."""
    sides = (*shape, 3)
    if dtype.kind == "u":
        most = int(np.iinfo(dtype).max)
        if kind == "extremes":
            return (rng.integers(0, 2, sides) * most).astype(dtype)
        if kind == "bright":
            return rng.integers(most - 3, most, sides, dtype, endpoint=True)
        if kind == "constant":
            return np.full(sides, rng.integers(0, most, endpoint=True), dtype)
        noise = rng.integers(0, most, sides, dtype, endpoint=True)
        return np.where(rng.random(sides) < 0.05, noise, 0).astype(dtype) if kind == "sparse" else noise

    limits = np.finfo(dtype)
    unit = rng.uniform(-1, 1, sides)
    if kind == "positive":
        return abs(unit).astype(dtype)
    if kind == "constant":
        return np.full(sides, unit.flat[0], dtype)
    if kind == "huge":
        return (unit * float(limits.max) * 10.0 ** -rng.integers(0, 20 if dtype.itemsize == 4 else 3)).astype(dtype)
    if kind == "tiny":
        return (unit * 10.0 ** -rng.integers(3, 38 if dtype.itemsize == 4 else 5)).astype(dtype)
    if kind == "denormals":
        return (unit * float(limits.tiny) * (1.0, 1e-3)[rng.integers(2)]).astype(dtype)
    if kind == "any bits":
        bits = rng.integers(0, 256, (*shape, 3 * dtype.itemsize), np.uint8).view(dtype)
        return np.where(np.isfinite(bits), bits, dtype.type(1))
    image = unit.astype(dtype)
    if kind in ("holes", "many holes"):
        count = int(rng.integers(1, 4)) if kind == "holes" else max(1, image.size // 20)
        places = rng.integers(0, image.size, count)
        image.reshape(-1)[places] = rng.choice([np.nan, np.inf, -np.inf], count).astype(dtype)
    return image


def lay_out(image: np.ndarray, layout: str, xp: Any = np) -> Any:
    """The same picture as an array of `xp` that lies in memory as `layout` says."""
    height, width = image.shape[:2]
    if layout == "every second":
        whole = xp.zeros((2 * height, 2 * width, 3), image.dtype)
        view = whole[::2, 1::2]
    elif layout == "cut out":
        whole = xp.zeros((height + 3, width + 5, 4), image.dtype)
        view = whole[1 : height + 1, 3 : width + 3, 1:]
    elif layout == "Fortran order":
        view = xp.zeros(image.shape, image.dtype, order="F")
    elif layout == "rows reversed":
        view = xp.zeros(image.shape, image.dtype)[::-1]
    elif layout == "all reversed":
        view = xp.zeros(image.shape, image.dtype)[::-1, ::-1, ::-1]
    elif layout == "unaligned":
        memory = np.zeros(image.nbytes + 1, np.uint8)
        view = memory[1:].view(image.dtype).reshape(image.shape)
    elif layout == "other byte order":
        return image.astype(image.dtype.newbyteorder())
    else:
        view = xp.zeros(image.shape, image.dtype)
    view[...] = image if xp is np else xp.asarray(image)
    if layout == "read-only":
        view.flags.writeable = False
    return view
