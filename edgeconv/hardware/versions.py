"""Which versions of the libraries that compute are installed."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = (
    "numpy",
    "opencv-python-headless",
    "llvmlite",
    "isal",
    "tifffile",
    "imagecodecs",
    "zarr",
    "pyvips",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
    "nvidia-nvimgcodec-cu13",
    "nvidia-nvimgcodec-cu12",
)


def installed_versions() -> dict[str, str]:
    """Installed versions of what computes, by distribution name."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
