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
    from edgeconv.api.convolve import result_memory as result_memory
    from edgeconv.api.figures import RunFigures as RunFigures
    from edgeconv.api.plan import ConvolutionPlan as ConvolutionPlan
    from edgeconv.core.chains import Chain as Chain
    from edgeconv.core.filters import FILTERS as FILTERS
    from edgeconv.core.filters import Filter as Filter
    from edgeconv.core.problem import Problem as Problem
    from edgeconv.core.problem import make_problem as make_problem
    from edgeconv.errors import EdgeconvError as EdgeconvError
    from edgeconv.io.encoding import write_image as write_image
    from edgeconv.io.read_limits import ReadRules as ReadRules
    from edgeconv.io.reading import read_image as read_image
    from edgeconv.methods.base import Method as Method
    from edgeconv.methods.base import Plan as Plan
    from edgeconv.methods.options import Options as Options

__version__ = "0.1.0"

_HOMES = {
    "FILTERS": "edgeconv.core.filters",
    "Chain": "edgeconv.core.chains",
    "ConvolutionPlan": "edgeconv.api.plan",
    "EdgeconvError": "edgeconv.errors",
    "Filter": "edgeconv.core.filters",
    "Method": "edgeconv.methods.base",
    "Options": "edgeconv.methods.options",
    "Plan": "edgeconv.methods.base",
    "Problem": "edgeconv.core.problem",
    "ReadRules": "edgeconv.io.read_limits",
    "RunFigures": "edgeconv.api.figures",
    "canny": "edgeconv.api.convolve",
    "chain": "edgeconv.api.convolve",
    "convolve": "edgeconv.api.convolve",
    "make_problem": "edgeconv.core.problem",
    "plan": "edgeconv.api.convolve",
    "read_image": "edgeconv.io.reading",
    "result_memory": "edgeconv.api.convolve",
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
