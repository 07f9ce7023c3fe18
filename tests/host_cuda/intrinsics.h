// intrinsics.cuh for g++: the same instructions written out. Its include guard keeps the GPU's version away.
#pragma once
#include "warp_mma.h"

#define EDGECONV_INTRINSICS

// --- arithmetic -----------------------------------------------------------------------------------------------------
inline float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
inline float plain_multiply(float a, float b) { return a * b; }
inline float larger_or_nan(float a, float b) { return b > a || b != b ? b : a; }
inline float approximate_root(float value) { return sqrtf(value); }
inline float clipped_multiply_add(float a, float b, float c) { return fminf(fmaxf(fmaf(a, b, c), 0.0f), 1.0f); }

inline int dot_of_bytes(unsigned pixels, int weights, int sum) {
    for (int i = 0; i < 4; ++i)
        sum += static_cast<int>(pixels >> 8 * i & 0xFF) * static_cast<signed char>(weights >> 8 * i);
    return sum;
}

inline unsigned pack_clipped(int first, int second, unsigned above) {
    return min(max(first, 0), 255) | min(max(second, 0), 255) << 8 | above << 16;
}

inline void mark_halves_not_finite(unsigned halves, unsigned &mark) {
    if ((halves & 0x7C00u) == 0x7C00u || (halves & 0x7C000000u) == 0x7C000000u) mark = 0x7FFF7FFFu;
}

// --- tensor cores -----------------------------------------------------------------------------------------------------
namespace host_cuda {

inline int dot(unsigned a, unsigned b, int) { return dot_of_bytes(a, static_cast<int>(b), 0); }
inline float dot(unsigned a, unsigned b, float) {
    float sum = 0;
    for (int i = 0; i < 2; ++i)
        sum += __half2float(__ushort_as_half(static_cast<unsigned short>(a >> 16 * i))) *
               __half2float(__ushort_as_half(static_cast<unsigned short>(b >> 16 * i)));
    return sum;
}

// d += a·b: lane 4·g + t holds of a row g (and g + 8) from word t on, of b column g, of d columns 2t and 2t + 1.
template <typename Sum, int A_WORDS, int B_WORDS>
void multiply_words(Sum (&d)[4], const unsigned (&a)[A_WORDS], const unsigned (&b)[B_WORDS]) {
    const int lane = threadIdx.x % warpSize, group = lane / 4, pair = lane % 4;
    const auto *lanes = share_words(a, b);
    for (int i = 0; i < B_WORDS; ++i)
        for (int t = 0; t < 4; ++t)
            for (int half = 0; half < 2; ++half)
                for (int k = 0; k < 2; ++k)
                    d[2 * half + k] +=
                        dot(lanes[group * 4 + t].a[2 * i + half], lanes[(2 * pair + k) * 4 + t].b[i], Sum());
    __syncwarp();
}

}  // namespace host_cuda

inline void mma_bytes(int (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
    host_cuda::multiply_words(d, a, b);
}
inline void mma_bytes(int (&d)[4], const unsigned (&a)[2][2], const unsigned (&b)[2][1]) {
    mma_bytes(d, a[0], b[0]);
    mma_bytes(d, a[1], b[1]);
}
inline void mma_halves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    host_cuda::multiply_words(d, a, b);
}

// --- memory -------------------------------------------------------------------------------------------------------------
inline void copy_4_bytes(const float *from, float *to) { *to = *from; }
inline void copy_16_bytes(const float *from, float *to) {
    *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from);
}
inline void wait_for_copies() {}

// --- the compiler -------------------------------------------------------------------------------------------------------
inline void hide_origin(const unsigned *&) {}
inline int block_index_anew() { return blockIdx.x; }
