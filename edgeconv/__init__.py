"""edgeconv: 3×3 edge-detection filters on RGB pictures, by interchangeable convolution methods.

    import edgeconv
    edges = edgeconv.convolve(image, filter="sobel", stride=2)      # NumPy or CuPy in, the same out

Importing this package loads neither CuPy, OpenCV nor the CPU engine's compiler; names are fetched when first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it: the import of typing is half of the time until Ctrl-C is heard
if TYPE_CHECKING:
    from typing import Any

    from edgeconv.api.convolve import canny as canny
    from edgeconv.api.convolve import chain as chain
    from edgeconv.api.convolve import convolve as convolve
    from edgeconv.api.convolve import plan as plan
    from edgeconv.api.plan import ConvolutionPlan as ConvolutionPlan
    from edgeconv.core.filters import FILTERS as FILTERS
    from edgeconv.errors import EdgeconvError as EdgeconvError
    from edgeconv.io.encoding import write_image as write_image
    from edgeconv.io.read_limits import ReadRules as ReadRules
    from edgeconv.io.reading import read_image as read_image
    from edgeconv.methods.options import Options as Options

__version__ = "0.1.0"

_HOMES = {
    "FILTERS": "edgeconv.core.filters",
    "EdgeconvError": "edgeconv.errors",
    "Options": "edgeconv.methods.options",
    "ReadRules": "edgeconv.io.read_limits",
    "ConvolutionPlan": "edgeconv.api.plan",
    "canny": "edgeconv.api.convolve",
    "chain": "edgeconv.api.convolve",
    "convolve": "edgeconv.api.convolve",
    "plan": "edgeconv.api.convolve",
    "read_image": "edgeconv.io.reading",
    "write_image": "edgeconv.io.encoding",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'edgeconv' has no attribute '{name}'")
