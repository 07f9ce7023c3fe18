// cuda_fp16.h for g++: half precision as a storage type, converted to nearest with ties to even.
#pragma once
#include "host_cuda.h"

struct __half {
    unsigned short bits;
    __half() = default;
    __half(float value);
};

inline float __half2float(__half half) {
    const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
    float magnitude = exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp(float(fraction), -24);
    if (exponent == 31) magnitude = fraction ? NAN : INFINITY;
    return half.bits & 0x8000 ? -magnitude : magnitude;
}

inline __half::__half(float value) {
    const float magnitude = std::fabs(value);
    const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
    unsigned rest;
    if (std::isnan(value)) {
        rest = 0x7FFF;
    } else if (magnitude >= 65520.0f) {  // half-way to the number after the largest
        rest = 0x7C00;
    } else {
        int exponent = -13;  // below 2^-14 the steps of a half stay as they are
        if (magnitude >= 0x1p-14f) std::frexp(magnitude, &exponent);
        // Whole steps of 2^(exponent - 11): 1024 to 2048 of them, fewer for subnormals; a carry runs into the exponent.
        rest = static_cast<unsigned>(((exponent + 13) << 10) + std::lrint(std::ldexp(magnitude, 11 - exponent)));
    }
    bits = static_cast<unsigned short>(sign | rest);
}

inline __half __float2half_rn(float value) { return __half(value); }
inline unsigned short __half_as_ushort(__half half) { return half.bits; }
inline __half __ushort_as_half(unsigned short bits) {
    __half half;
    half.bits = bits;
    return half;
}
