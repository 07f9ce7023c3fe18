"""edgeconv: 3×3 edge-detection filters on RGB pictures, by interchangeable convolution methods.

Importing this package loads neither CuPy, OpenCV nor Numba.
"""

__version__ = "0.1.0"
