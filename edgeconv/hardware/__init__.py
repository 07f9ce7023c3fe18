"""What a machine has, and how code gets to run on it: threads, GPUs, kernels, clocks, measured limits."""
