"""What one would use for Canny instead: a table of libraries on both devices, none of them needed.

    opencv      cv2.Canny, by all its threads: the same edges
    kornia-rs   kornia_rs.imgproc.canny, grey, no smoothing: the same edges
    skimage     skimage.feature.canny without smoothing; cucim the same on a GPU
    kornia      kornia.filters.canny on float planes, hysteresis included
    npp         nppiFilterCannyBorder of NVIDIA's Performance Primitives, grey, whole thresholds

A peer takes the picture on its device and leaves the edges there. How much another result differs from OpenCV's edges,
which are edgeconv's, is measured beside its time; why is said in `differs`.

Source of NPP's signature: nppi_filtering_functions.h and nppdefs.h of NPP 13.2.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from ctypes import byref, c_int
from importlib import import_module
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeconv.bench.peers.base import Kept, Library, installed, kept, on_host
from edgeconv.bench.peers.nvidia import BORDER_REPLICATE, MASK_3X3, NPPLibrary, NppPair, npp_call, npp_context
from edgeconv.core.canny import EDGE, CannySettings
from edgeconv.core.choices import DeviceName
from edgeconv.core.output import full_range
from edgeconv.errors import UnavailableError

NPP_SOBEL, NPP_NORMS, LARGEST_SHORT = 0, (1, 2), 2**15 - 1
"""Of nppdefs.h: the gradient, |gx| + |gy| or sqrt(gx² + gy²), and the greatest threshold."""
KORNIA_SCALE, KORNIA_SIGMA = 8.0, 0.8
"""kornia's Sobel is an eighth of OpenCV's; its smallest smoothing is what OpenCV takes for a size of 3."""


class CannyPeer(Library):
    """One library on one device."""

    name: str
    differs: str | None = None
    """In what its Canny is another one."""
    only_grey = has_l1 = True

    def prepare(self, picture: NDArray[np.uint8], settings: CannySettings) -> Kept:
        """Set up with the picture, (H, W) or (H, W, 3), in place: a run, which on a GPU need not wait, and its edges.

        Edges are (H, W), 0 and 255, on the host. Raises UnavailableError for what it cannot do.
        """
        if self.only_grey and (picture.ndim != 2 or settings.blur):
            raise UnavailableError("it takes grey pictures and does no binomial smoothing")
        if not self.has_l1 and not settings.l2:
            raise UnavailableError("its gradient is sqrt(gx² + gy²) alone")
        return kept(
            self.finder(picture, settings), lambda edges: np.where(on_host(edges) > 0, EDGE, 0).astype(np.uint8)
        )

    @abstractmethod
    def finder(self, picture: NDArray[np.uint8], settings: CannySettings) -> Callable[[], Any]:
        """What gives the map of edges (H, W), above 0 where there is one."""


class OpenCVCanny(CannyPeer):
    """cv2.Canny."""

    name, distributions, module = "opencv", ("opencv-python-headless", "opencv-python"), "cv2"
    only_grey = False

    def finder(self, picture: NDArray[np.uint8], settings: CannySettings) -> Callable[[], Any]:
        size = (settings.blur, settings.blur)

        def find() -> Any:
            smoothed = cv2.GaussianBlur(picture, size, 0) if settings.blur else picture
            return cv2.Canny(smoothed, settings.low, settings.high, L2gradient=settings.l2)

        return find


class KorniaRsCanny(CannyPeer):
    """kornia_rs.imgproc.canny."""

    name, distributions, module = "kornia-rs", ("kornia-rs",), "kornia_rs"

    def finder(self, picture: NDArray[np.uint8], settings: CannySettings) -> Callable[[], Any]:
        canny, image = import_module(self.module).imgproc.canny, np.ascontiguousarray(picture[..., np.newaxis])
        return lambda: canny(image, settings.low, settings.high, settings.l2)[:, :, 0]


class ScikitImageCanny(CannyPeer):
    """skimage.feature.canny."""

    distributions: tuple[str, ...] = ("scikit-image",)
    name, module = "skimage", "skimage.feature"
    arrays, has_l1 = "numpy", False
    differs = "its thinning interpolates, its gradient is sqrt(gx² + gy²), its rim has no edges"

    def finder(self, picture: NDArray[np.uint8], settings: CannySettings) -> Callable[[], Any]:
        canny, image = import_module(self.module).canny, import_module(self.arrays).asarray(picture)
        return lambda: canny(image, sigma=0, low_threshold=settings.low, high_threshold=settings.high)


class CuCIMCanny(ScikitImageCanny):
    """cucim.skimage.feature.canny."""

    name, distributions, module = "cucim", ("cucim-cu13", "cucim-cu12"), "cucim.skimage.feature"
    arrays = "cupy"


class KorniaCanny(CannyPeer):
    """kornia.filters.canny."""

    name, distributions, module = "kornia", ("kornia",), "kornia.filters"
    has_l1 = False
    differs = "it smooths always, and its gradient is sqrt(gx² + gy²)"

    def finder(self, picture: NDArray[np.uint8], settings: CannySettings) -> Callable[[], Any]:
        torch, filters = import_module("torch"), import_module(self.module)
        white = full_range(picture.dtype)
        image = (torch.from_numpy(picture).to(self.device).float() / white)[None, None]
        low, high = (limit / white / KORNIA_SCALE for limit in (settings.low, settings.high))
        if not 0 < low < high < 1:
            raise UnavailableError("its thresholds lie between 0 and 1, the upper one above the lower")
        sigma = (KORNIA_SIGMA, KORNIA_SIGMA)
        return lambda: filters.canny(image, low, high, kernel_size=(3, 3), sigma=sigma)[1][0, 0]


class NPPCanny(NPPLibrary, CannyPeer):
    """nppiFilterCannyBorder_8u_C1R."""

    name = "npp"
    differs = "some pixels are decided otherwise"

    def finder(self, picture: NDArray[np.uint8], settings: CannySettings) -> Callable[[], Any]:
        low, high = sorted((settings.low, settings.high))
        if high > LARGEST_SHORT or low != int(low) or high != int(high):
            raise UnavailableError(f"its thresholds are whole numbers up to {LARGEST_SHORT:,}")
        cupy = import_module("cupy")
        image, out = cupy.asarray(picture), cupy.empty(picture.shape, cupy.uint8)
        height, width = picture.shape
        size, context, needed = NppPair(width, height), npp_context(cupy), c_int()
        npp_call("nppiFilterCannyBorderGetBufferSize", size, byref(needed))
        scratch = cupy.empty(needed.value, cupy.uint8)
        rules = (NPP_SOBEL, MASK_3X3, int(low), int(high), NPP_NORMS[settings.l2], BORDER_REPLICATE)

        def find() -> Any:
            where = (image.data.ptr, width, size, NppPair(0, 0), out.data.ptr, width, size)
            npp_call("nppiFilterCannyBorder_8u_C1R_Ctx", *where, *rules, scratch.data.ptr, context)
            return out

        return find


CANNY_PEERS: tuple[CannyPeer, ...] = (
    *(OpenCVCanny("cpu"), KorniaRsCanny("cpu"), ScikitImageCanny("cpu"), KorniaCanny("cpu")),
    *(NPPCanny("cuda"), CuCIMCanny("cuda"), KorniaCanny("cuda")),
)


def canny_peers(device: DeviceName) -> tuple[list[CannyPeer], dict[str, str]]:
    """The peers of a device that are installed, and by name why the others are left out."""
    return installed(peer for peer in CANNY_PEERS if peer.device == device)


def share_elsewhere(expected: NDArray[np.uint8], found: NDArray[np.uint8]) -> float:
    """Edge pixels of either map that have none of the other within a pixel, as a share of all edge pixels of both.

    Of two equal neighbours every library keeps another one, which makes the same edge a pixel aside.
    """
    near = np.ones((3, 3), np.uint8)
    pairs = (expected, found), (found, expected)
    lone = sum(int(np.count_nonzero((one > 0) & (cv2.dilate(other, near) == 0))) for one, other in pairs)
    return lone / max(1, int(np.count_nonzero(expected)) + int(np.count_nonzero(found)))
