"""What tests use that a machine need not have: what is missing here, and how many tests were skipped for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

OTHERS = "other reasons, which -rs lists"

OPTIONAL = {
    "NVIDIA GPU": "NVIDIA GPU|CUDA driver|sees no GPU",
    "nvImageCodec, nvJPEG": "nvImageCodec|nvJPEG",
    "CuPy": "(?i)cupy",
    "cuDNN": "cuDNN",
    "cuBLAS": "cuBLAS",
    "PyTorch": "'torch",
    "JAX": "'jax",
    "Numba": "'numba",
    "Dask": "'(dask|distributed)",
    "zarr": "'?zarr",
    "tifffile, imagecodecs": "'?(tifffile|imagecodecs)",
    "libvips": "'?pyvips|libvips",
    "fsspec": "'?(fsspec|s3fs)",
    "Qt": "Qt|PySide6",
    "an X server": "Xvfb|python-xlib|X server",
    "Chromium": "Chromium",
    "axe-core": "axe-core",
    "g++ with sanitizers": r"g\+\+",
    "the CUDA compiler": "CUDA compiler|nvrtc",
}
"""By name: how a reason to skip a test calls it. The first that is found in a reason counts."""


def absences(reasons: Iterable[str]) -> Counter[str]:
    """How many tests were skipped for each thing that is missing, and for `OTHERS`."""
    return Counter(
        next((name for name, called in OPTIONAL.items() if re.search(called, reason)), OTHERS) for reason in reasons
    )
