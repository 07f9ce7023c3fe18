"""Ladders of kernels for learners: `bench conv` and `bench gemm`, one step better than the one before."""
