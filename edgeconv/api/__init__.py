"""A request made ready, run, timed and checked; and the Python door, `plan` and `convolve`, for the arrays people have.

auto.py, doctor.py        which method and device; what works here
prepared.py               a request made ready for pictures of one shape, for one thread
plan.py, arrays.py        the public plan, for arrays of NumPy, CuPy, PyTorch, JAX and DLPack
convolve.py, cache.py     `plan`, `convolve`, `canny`, `chain`; the plans that `convolve` remembers
check.py, measure.py      an output against the oracle; times and rates, which figures.py states as records
"""
