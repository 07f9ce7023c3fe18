"""CUDA through CuPy: is it there, and how kernels are compiled and launched."""
