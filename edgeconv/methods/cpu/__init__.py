"""Methods of the CPU engine, compiled by Numba for the vector width of the machine."""
