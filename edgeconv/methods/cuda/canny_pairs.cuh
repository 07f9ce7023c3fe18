// Pairs: two numbers side by side in a word, computed with as two halves (half precision), exactly.
//
// A whole number n from 0 to 2047 in 16 bits, read as a half, is n · 2^-24: below 2^-13 halves are that far apart. So
// bytes that were put into 16 bits each are halves already; their sums and differences are exact while they stay within
// ±2047, negative ones carry the half's sign bit, and reading one of either sign costs no instruction of its own.
//
//     "signs"    a word of which only bits 15 and 31 count: a truth value for each number of a pair
//
// tests/host_cuda/pairs.h is the same for a CPU.
#ifndef EDGECONV_PAIRS
#define EDGECONV_PAIRS
typedef unsigned Pair;

// --- arithmetic -----------------------------------------------------------------------------------------------------
__device__ __forceinline__ Pair add_pairs(Pair a, Pair b) {
    Pair sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

__device__ __forceinline__ Pair subtract_pairs(Pair a, Pair b) {
    Pair difference;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}

// a·b + c, rounded once; `a` is two halves, not whole numbers of pairs.
__device__ __forceinline__ Pair multiply_add_pairs(Pair a, Pair b, Pair c) {
    Pair sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}

__device__ __forceinline__ Pair multiply_pairs(Pair a, Pair b) {
    Pair product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

__device__ __forceinline__ Pair absolute_pair(Pair a) {
    Pair magnitude;
    asm("abs.f16x2 %0, %1;" : "=r"(magnitude) : "r"(a));
    return magnitude;
}

// a - b, or 0 where that is negative.
__device__ __forceinline__ Pair excess_of_pairs(Pair a, Pair b) {
#if __CUDA_ARCH__ >= 800
    Pair excess;
    asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(excess) : "r"(b), "r"(0xBC00BC00u), "r"(a));  // b · -1 + a
    return excess;
#else
    const Pair difference = subtract_pairs(a, b);
    unsigned negative;
    asm("prmt.b32 %0, %1, 0, 0xBB99;" : "=r"(negative) : "r"(difference));
    return difference & ~negative;
#endif
}

// The numbers of a pair as floats, in the same unit.
__device__ __forceinline__ float low_float(Pair a) {
    float value;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, low;\n}" : "=f"(value) : "r"(a));
    return value;
}
__device__ __forceinline__ float high_float(Pair a) {
    float value;
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, high;\n}" : "=f"(value) : "r"(a));
    return value;
}

// --- bytes ------------------------------------------------------------------------------------------------------------
// Four of the eight bytes of `low` (0 to 3) and `high` (4 to 7): those that the hexadecimal digits of `which` name, the
// last digit the lowest byte; 8 more is the byte's highest bit in all its bits.
__device__ __forceinline__ unsigned pick_bytes(unsigned low, unsigned high, unsigned which) {
    unsigned picked;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(low), "r"(high), "r"(which));
    return picked;
}
#endif
