"""Which versions of the libraries that compute are installed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

LIBRARIES = (
    "numpy",
    "opencv-python-headless",
    "llvmlite",
    "deflate",
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
SUFFIXES = (".dist-info", ".egg-info")


def installed_versions() -> dict[str, str]:
    """Installed versions of what computes, by distribution name.

    They are read from the names of folders (`numpy-2.3.4.dist-info`): to import `importlib.metadata`, which opens the
    files in them, takes as long as to decode a small picture.
    """
    found: dict[str, str] = {}
    for folder in reversed(sys.path):  # what comes first is what an import finds
        with suppress(OSError):
            for entry in os.listdir(folder or os.curdir):
                stem, suffix = os.path.splitext(entry)
                name, _, rest = stem.partition("-")
                if suffix in SUFFIXES and rest:
                    found[name.lower().replace("_", "-").replace(".", "-")] = rest.partition("-")[0]
    known = {name: found[name] for name in LIBRARIES if name in found}
    return {"python": sys.version.split()[0], **known}
