"""The kernel that measures a GPU's float32 multiply-adds (roof.cu); apart from the device, which needs CuPy."""

from __future__ import annotations

from edgeconv.hardware.cuda.kernels import KernelVariant

FMA_CHAINS = 8
FMA_STEPS = 4096
FMA_THREADS = 256
FMA_BLOCKS_PER_MULTIPROCESSOR = 8

ROOF_KERNEL = KernelVariant("hardware/cuda/roof.cu", "fma_chains", (("CHAINS", FMA_CHAINS), ("STEPS", FMA_STEPS)))


def variants() -> tuple[KernelVariant, ...]:
    """Every kernel that the device may ask for."""
    return (ROOF_KERNEL,)
