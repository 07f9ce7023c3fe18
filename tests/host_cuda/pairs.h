// canny_pairs.cuh for g++: the same pairs of halves written out. Its include guard keeps the GPU's version away.
#pragma once
#include "cuda_fp16.h"

#define EDGECONV_PAIRS
typedef unsigned Pair;

namespace host_cuda {

// The half nearest to a number, ties to even; a double holds every product of halves exactly, and their sums here.
inline unsigned half_of(double value) {
    const double magnitude = std::fabs(value);
    int exponent = -13;  // below 2^-14 the steps of a half stay as they are
    if (magnitude >= 0x1p-14) std::frexp(magnitude, &exponent);
    const unsigned steps = static_cast<unsigned>(std::lrint(std::ldexp(magnitude, 11 - exponent)));
    return ((exponent + 13) << 10) + steps | (std::signbit(value) ? 0x8000u : 0u);
}

template <typename Operation>
Pair of_both(Operation operation, Pair a, Pair b = 0, Pair c = 0) {
    unsigned halves[2];
    for (int i = 0; i < 2; ++i) {
        const auto number = [&](Pair pair) {
            return double(__half2float(__ushort_as_half(static_cast<unsigned short>(pair >> 16 * i))));
        };
        halves[i] = half_of(operation(number(a), number(b), number(c)));
    }
    return halves[0] | halves[1] << 16;
}

}  // namespace host_cuda

inline Pair add_pairs(Pair a, Pair b) {
    return host_cuda::of_both([](double x, double y, double) { return x + y; }, a, b);
}
inline Pair subtract_pairs(Pair a, Pair b) {
    return host_cuda::of_both([](double x, double y, double) { return x - y; }, a, b);
}
inline Pair multiply_add_pairs(Pair a, Pair b, Pair c) {
    return host_cuda::of_both([](double x, double y, double z) { return x * y + z; }, a, b, c);
}
inline Pair multiply_pairs(Pair a, Pair b) {
    return host_cuda::of_both([](double x, double y, double) { return x * y; }, a, b);
}
inline Pair absolute_pair(Pair a) { return a & 0x7FFF7FFFu; }
inline Pair excess_of_pairs(Pair a, Pair b) {
    return host_cuda::of_both([](double x, double y, double) { return x > y ? x - y : 0.0; }, a, b);
}
inline float low_float(Pair a) { return __half2float(__ushort_as_half(static_cast<unsigned short>(a))); }
inline float high_float(Pair a) { return __half2float(__ushort_as_half(static_cast<unsigned short>(a >> 16))); }

inline unsigned pick_bytes(unsigned low, unsigned high, unsigned which) { return __byte_perm(low, high, which); }
