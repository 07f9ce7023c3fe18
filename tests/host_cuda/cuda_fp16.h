// cuda_fp16.h for g++: half precision as a storage type, converted to nearest with ties to even.
#pragma once
#include "host_cuda.h"

struct __half {
    unsigned short bits;
    __half() = default;
    __half(float value);
};

float __half2float(__half half);

inline __half __float2half_rn(float value) { return __half(value); }
inline unsigned short __half_as_ushort(__half half) { return half.bits; }
inline __half __ushort_as_half(unsigned short bits) {
    __half half;
    half.bits = bits;
    return half;
}
