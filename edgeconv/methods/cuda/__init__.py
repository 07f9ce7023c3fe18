"""Methods for NVIDIA GPUs, through CuPy. Importing this package loads neither CuPy nor a driver."""
