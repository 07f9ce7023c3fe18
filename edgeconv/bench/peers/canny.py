"""What one would use for Canny instead: a table of libraries on both devices, none of them needed.

    opencv      cv2.Canny, by all its threads: the same edges
    skimage     skimage.feature.canny without smoothing; its thinning interpolates, and there are no edges on its rim
    kornia      kornia.filters.canny, which smooths always; float tensors
    npp         nppiFilterCannyBorder of NVIDIA's Performance Primitives, grey, whole thresholds
    cucim       cucim.skimage.feature.canny, as scikit-image

A peer takes the picture on its device and leaves the edges there. Only OpenCV's are those of edgeconv to the last
pixel: how much another result differs is measured beside its time, and why is said here and in `differs`.

Source of NPP's signature: nppi_filtering_functions.h and nppdefs.h of NPP 13.2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from ctypes import POINTER, byref, c_int, c_short, c_void_p
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.peers.base import Library
from edgeconv.bench.peers.npp import (
    BORDER_REPLICATE,
    NPP_LIBRARY,
    PICTURE,
    NppContext,
    NppPair,
    call,
    context_of,
    open_all,
)
from edgeconv.core.canny import EDGE, CannySettings
from edgeconv.core.choices import DeviceName
from edgeconv.core.output import full_range
from edgeconv.errors import UnavailableError
from edgeconv.hardware.cuda.probe import cuda_unavailable_reason

SOBEL_FILTER, MASK_3X3 = 0, 200
NORM_L1, NORM_L2 = 1, 2
"""Of nppdefs.h."""
LARGEST_SHORT = 2**15 - 1


@dataclass(frozen=True)
class ReadyCanny:
    """A peer with its picture in place."""

    run: Callable[[], None]
    """On a GPU it need not wait."""
    result: Callable[[], NDArray[np.uint8]]
    """The edges of the last run (H, W), 0 and 255, on the host."""
    differs: str | None = None
    """In what the library's Canny is another one."""


class CannyPeer(Library):
    """One library on one device."""

    @abstractmethod
    def prepare(self, picture: NDArray[np.uint8], settings: CannySettings) -> ReadyCanny:
        """Set up with the picture, (H, W) or (H, W, 3), in place; raises UnavailableError for what it cannot do."""


def held(find: Callable[[], Any], to_host: Callable[[Any], Any] = np.asarray) -> tuple[Callable[[], None], Any]:
    """A run that keeps what `find` gives, and its result as a map of edges."""
    found: list[Any] = [None]

    def run() -> None:
        found[0] = find()

    def result() -> NDArray[np.uint8]:
        host: NDArray[Any] = to_host(found[0])
        return np.where(host > 0, np.uint8(EDGE), np.uint8(0))

    return run, result


class OpenCVCanny(CannyPeer):
    """cv2.Canny."""

    distributions = ("opencv-python-headless", "opencv-python")
    module = "cv2"

    def prepare(self, picture: NDArray[np.uint8], settings: CannySettings) -> ReadyCanny:
        cv2 = import_module(self.module)
        blur = (settings.blur, settings.blur)

        def find() -> Any:
            smoothed = cv2.GaussianBlur(picture, blur, 0) if settings.blur else picture
            return cv2.Canny(smoothed, settings.low, settings.high, L2gradient=settings.l2)

        return ReadyCanny(*held(find))


class ScikitImageCanny(CannyPeer):
    """skimage.feature.canny, and cuCIM's of the same signature."""

    distributions: tuple[str, ...] = ("scikit-image",)
    module = "skimage.feature"
    arrays = "numpy"

    def prepare(self, picture: NDArray[np.uint8], settings: CannySettings) -> ReadyCanny:
        refuse_other_than_grey(picture, settings)
        canny, xp = import_module(self.module).canny, import_module(self.arrays)
        image = xp.asarray(picture)
        low, high = settings.low, settings.high

        def find() -> Any:
            return canny(image, sigma=0, low_threshold=low, high_threshold=high)

        run, result = held(find, np.asarray if xp is np else xp.asnumpy)
        return ReadyCanny(
            run, result, "its thinning interpolates, its gradient is sqrt(gx² + gy²), its rim has no edges"
        )


class CuCIMCanny(ScikitImageCanny):
    """cucim.skimage.feature.canny."""

    distributions = ("cucim-cu13", "cucim-cu12")
    module = "cucim.skimage.feature"
    arrays = "cupy"


class KorniaCanny(CannyPeer):
    """kornia.filters.canny on float planes, hysteresis included."""

    distributions = ("kornia",)
    module = "kornia.filters"

    def prepare(self, picture: NDArray[np.uint8], settings: CannySettings) -> ReadyCanny:
        refuse_other_than_grey(picture, settings)
        torch, filters = import_module("torch"), import_module(self.module)
        white = full_range(picture.dtype)
        image = (torch.from_numpy(picture).to(self.device).float() / white)[None, None]
        low, high = (limit / white / KORNIA_SCALE for limit in (settings.low, settings.high))
        if not 0 < low < high < 1:
            raise UnavailableError("its thresholds lie between 0 and 1, the upper one above the lower")
        run, result = held(
            lambda: filters.canny(image, low, high, kernel_size=(3, 3), sigma=(SIGMA, SIGMA))[1],
            lambda edges: edges[0, 0].cpu().numpy(),
        )
        return ReadyCanny(run, result, "it smooths always, and its gradient is sqrt(gx² + gy²)")


KORNIA_SCALE = 8.0
"""kornia's Sobel is an eighth of OpenCV's."""
SIGMA = 0.8
"""Of its smallest smoothing: what OpenCV takes for a size of 3."""


class NPPCanny(CannyPeer):
    """nppiFilterCannyBorder_8u_C1R."""

    distributions = ("nvidia-npp", "nvidia-npp-cu12")
    module = "cupy"

    def unavailable_reason(self) -> str | None:
        return cuda_unavailable_reason() or open_all(NPP_CANNY)

    def prepare(self, picture: NDArray[np.uint8], settings: CannySettings) -> ReadyCanny:
        refuse_other_than_grey(picture, settings, has_l1=True)
        low, high = sorted((settings.low, settings.high))
        if high > LARGEST_SHORT or low != int(low) or high != int(high):
            raise UnavailableError(f"its thresholds are whole numbers up to {LARGEST_SHORT:,}")
        cupy = import_module(self.module)
        image, out = cupy.asarray(picture), cupy.empty(picture.shape, cupy.uint8)
        height, width = picture.shape
        size, start, context = NppPair(width, height), NppPair(0, 0), context_of(cupy)
        needed = c_int()
        call(NPP_CANNY, "nppiFilterCannyBorderGetBufferSize", size, byref(needed))
        scratch = cupy.empty(needed.value, cupy.uint8)
        norm = NORM_L2 if settings.l2 else NORM_L1

        def run() -> None:
            thresholds = (SOBEL_FILTER, MASK_3X3, int(low), int(high), norm, BORDER_REPLICATE)
            target = (out.data.ptr, width, size)
            source = (image.data.ptr, width, size, start)
            call(
                NPP_CANNY, "nppiFilterCannyBorder_8u_C1R_Ctx", *source, *target, *thresholds, scratch.data.ptr, context
            )

        return ReadyCanny(run, lambda: np.asarray(out.get()), "some pixels are decided otherwise")


NPP_CANNY: dict[str, tuple[str, tuple[Any, ...]]] = {
    "nppiFilterCannyBorderGetBufferSize": (NPP_LIBRARY, (NppPair, POINTER(c_int))),
    "nppiFilterCannyBorder_8u_C1R_Ctx": (
        NPP_LIBRARY,
        (
            *PICTURE,
            NppPair,
            NppPair,
            *PICTURE,
            NppPair,
            c_int,
            c_int,
            c_short,
            c_short,
            c_int,
            c_int,
            c_void_p,
            NppContext,
        ),
    ),
}


def refuse_other_than_grey(picture: NDArray[Any], settings: CannySettings, has_l1: bool = False) -> None:
    """Raise UnavailableError for colours, smoothing, or the gradient that a library does not have."""
    if picture.ndim != 2:
        raise UnavailableError("it takes grey pictures")
    if settings.blur:
        raise UnavailableError("it has no binomial smoothing of its own")
    if not settings.l2 and not has_l1:
        raise UnavailableError("its gradient is sqrt(gx² + gy²) alone")


@dataclass(frozen=True)
class CannyPeerEntry:
    """One line of the table."""

    name: str
    device: DeviceName
    kind: type[CannyPeer]


CANNY_PEERS: tuple[CannyPeerEntry, ...] = (
    CannyPeerEntry("opencv", "cpu", OpenCVCanny),
    CannyPeerEntry("skimage", "cpu", ScikitImageCanny),
    CannyPeerEntry("kornia", "cpu", KorniaCanny),
    CannyPeerEntry("npp", "cuda", NPPCanny),
    CannyPeerEntry("cucim", "cuda", CuCIMCanny),
    CannyPeerEntry("kornia", "cuda", KorniaCanny),
)


def share_elsewhere(expected: NDArray[np.uint8], found: NDArray[np.uint8]) -> float:
    """Edge pixels of either map that have none of the other within a pixel, as a share of all edge pixels of both.

    Of two equal neighbours every library keeps another one, which makes the same edge a pixel aside.
    """
    pairs = (expected, found), (found, expected)
    lone = sum(int(np.count_nonzero((one > 0) & ~_widened(other))) for one, other in pairs)
    return lone / max(1, int(np.count_nonzero(expected)) + int(np.count_nonzero(found)))


def _widened(edges: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Edge pixels and their eight neighbours."""
    rows = np.pad(edges > 0, 1)
    rows = rows[:-2] | rows[1:-1] | rows[2:]
    return np.asarray(rows[:, :-2] | rows[:, 1:-1] | rows[:, 2:], bool)


def canny_peers(device: DeviceName) -> tuple[list[tuple[str, CannyPeer]], dict[str, str]]:
    """The peers of a device that are installed, by name, and why the others are left out."""
    here, left_out = [], {}
    for entry in CANNY_PEERS:
        if entry.device == device:
            peer = entry.kind(device)
            reason = peer.unavailable_reason()
            if reason is None:
                here.append((entry.name, peer))
            else:
                left_out[entry.name] = reason
    return here, left_out
