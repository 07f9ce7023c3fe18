"""Methods for NVIDIA cards, through CuPy. Importing this package loads neither CuPy nor a driver."""
