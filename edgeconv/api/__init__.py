"""The Python door: `plan` and `convolve`, for the arrays that people have.

arrays.py      NumPy, CuPy, PyTorch, JAX, DLPack: where samples lie, new arrays, streams
plan.py        a prepared filter, called from any thread
cache.py       the plans that `convolve` remembers
convolve.py    the two functions
"""
