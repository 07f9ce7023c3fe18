// intrinsics.cuh for g++: the same instructions written out. Its include guard keeps the GPU's version away.
#pragma once
#include "cuda_pipeline.h"
#include "warp_mma.h"

#define EDGECONV_INTRINSICS

// --- arithmetic -----------------------------------------------------------------------------------------------------
inline float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
inline float plain_multiply(float a, float b) { return a * b; }
inline float plain_add(float a, float b) { return a + b; }
inline float plain_subtract(float a, float b) { return a - b; }
inline float larger_number(float a, float b) { return fmaxf(a, b); }
inline float larger_size_or_nan(float a, float b) {
    const float x = fabsf(a), y = fabsf(b);
    return y > x || y != y ? y : x;
}
inline float larger_or_nan(float a, float b) { return b > a || b != b ? b : a; }
inline double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }
inline double plain_multiply(double a, double b) { return a * b; }
inline double plain_add(double a, double b) { return a + b; }
inline double plain_subtract(double a, double b) { return a - b; }
inline double larger_number(double a, double b) { return b > a ? b : a; }
inline double larger_or_nan(double a, double b) { return b > a || b != b ? b : a; }
inline double larger_size_or_nan(double a, double b) { return larger_or_nan(fabs(a), fabs(b)); }
inline float approximate_root(float value) { return sqrtf(value); }
inline float clipped_multiply_add(float a, float b, float c) { return fminf(fmaxf(fmaf(a, b, c), 0.0f), 1.0f); }

inline int dot_of_bytes(unsigned pixels, int weights, int sum) {
    for (int i = 0; i < 4; ++i)
        sum += static_cast<int>(pixels >> 8 * i & 0xFF) * static_cast<signed char>(weights >> 8 * i);
    return sum;
}

inline unsigned dot_of_shorts(unsigned samples, unsigned weights, unsigned sum) {
    return sum + (samples & 0xFFFF) * (weights & 0xFF) + (samples >> 16) * (weights >> 8 & 0xFF);
}
inline unsigned pack_shorts(int first, int second) {
    return min(max(first, 0), 65535) | static_cast<unsigned>(min(max(second, 0), 65535)) << 16;
}

inline unsigned pack_clipped(int first, int second, unsigned above) {
    return min(max(first, 0), 255) | min(max(second, 0), 255) << 8 | above << 16;
}

inline unsigned pick_bytes(unsigned low, unsigned high, unsigned which) { return __byte_perm(low, high, which); }

inline void mark_halves_not_finite(unsigned halves, unsigned &mark) {
    if ((halves & 0x7C00u) == 0x7C00u || (halves & 0x7C000000u) == 0x7C000000u) mark = 0x7FFF7FFFu;
}

// --- pairs of halves ------------------------------------------------------------------------------------------------
using host_cuda::multiply_add_halves;
inline unsigned add_halves(unsigned a, unsigned b) { return multiply_add_halves(a, 0x3C003C00u, b); }
inline unsigned subtract_halves(unsigned a, unsigned b) { return multiply_add_halves(b, 0xBC00BC00u, a); }
inline unsigned multiply_halves(unsigned a, unsigned b) { return multiply_add_halves(a, b, 0x80008000u); }
inline unsigned absolute_halves(unsigned a) { return a & 0x7FFF7FFFu; }
inline unsigned larger_halves(unsigned a, unsigned b) {
    return max(a & 0x7FFFu, b & 0x7FFFu) | max(a & 0x7FFF0000u, b & 0x7FFF0000u);
}
inline unsigned smaller_halves(unsigned a, unsigned b) {
    return min(a & 0xFFFFu, b & 0xFFFFu) | min(a & 0xFFFF0000u, b & 0xFFFF0000u);
}
inline unsigned not_below_zero(unsigned halves) {
    return (halves & 0x8000u ? 0 : halves & 0xFFFFu) | (halves & 0x80000000u ? 0 : halves & 0xFFFF0000u);
}
inline unsigned excess_of_halves(unsigned a, unsigned b) { return not_below_zero(subtract_halves(a, b)); }
inline unsigned pack_halves(float first, float second) {
    return __half_as_ushort(__float2half_rn(first)) |
           static_cast<unsigned>(__half_as_ushort(__float2half_rn(second))) << 16;
}
inline float half_as_float(unsigned halves, int which) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(halves >> 16 * which)));
}

// --- tensor cores -----------------------------------------------------------------------------------------------------
inline void mma_bytes(int (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
    host_cuda::multiply_bytes(d, a, b);
}
inline void mma_bytes(int (&d)[4], const unsigned (&a)[2][2], const unsigned (&b)[2][1]) {
    mma_bytes(d, a[0], b[0]);
    mma_bytes(d, a[1], b[1]);
}
inline void mma_halves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    host_cuda::multiply_halves(d, a, b);
}

// --- memory -------------------------------------------------------------------------------------------------------------
template <typename Words>
inline void store_at_once(void *to, Words value) { *static_cast<Words *>(to) = value; }
template <typename Value>
void copy_value(const Value *from, Value *to) { *to = *from; }
inline void wait_for_copies() {}
typedef unsigned char *SharedAddress;
inline SharedAddress shared_address(void *place) { return static_cast<unsigned char *>(place); }
inline void copy_chunk(SharedAddress to, const void *from) { __pipeline_memcpy_async(to, from, 16); }
inline void commit_copies() { __pipeline_commit(); }
template <int ALLOWED>
void wait_for_copies_but() { __pipeline_wait_prior(ALLOWED); }

// --- the compiler -------------------------------------------------------------------------------------------------------
template <typename T>
void hide_origin(const T *&) {}
inline int block_index_anew() { return blockIdx.x; }

inline void stay_a_branch() {}

// --- loads ------------------------------------------------------------------------------------------------------------
template <int WORDS>
void load_words(unsigned *word, const void *from, bool is_read) {
    for (int i = 0; i < WORDS; ++i) word[i] = is_read ? static_cast<const unsigned *>(from)[i] : 0;
}
inline void load_4_bytes(unsigned *word, const void *from, bool is_read) { load_words<1>(word, from, is_read); }
inline void load_8_bytes(unsigned *word, const void *from, bool is_read) { load_words<2>(word, from, is_read); }
inline void load_16_bytes(unsigned *word, const void *from, bool is_read) { load_words<4>(word, from, is_read); }
