// What a warp's tensor core does, and half precision.
//
// Each lane gives its operands to the others of its warp, and after a barrier takes its four sums.
// Layouts: PTX ISA, "Matrix fragments for mma.m16n8k16".
#include "block.h"  // and with it warp_mma.h

float __half2float(__half half) {
    const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
    float magnitude = exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp(float(fraction), -24);
    if (exponent == 31) magnitude = fraction ? NAN : INFINITY;
    return half.bits & 0x8000 ? -magnitude : magnitude;
}

__half::__half(float value) {
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

namespace host_cuda {

// Number `which` of a word of two halves.
static float half_of(unsigned word, int which) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(word >> 16 * which)));
}

unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c) {
    unsigned both = 0;
    for (int which = 0; which < 2; ++which) {
        const float sum = fmaf(half_of(a, which), half_of(b, which), half_of(c, which));
        both |= static_cast<unsigned>(__half_as_ushort(__float2half_rn(sum))) << 16 * which;
    }
    return both;
}

// What each lane of a warp gives the others: every lane calls this, and a warp barrier must follow the last use.
template <typename Given>
static const Given *share(const Given &given) {
    static std::vector<Given> all;  // one per thread
    const size_t thread = static_cast<size_t>(current - fibers.data());
    all.resize(fibers.size());
    all[thread] = given;
    __syncwarp();
    return &all[thread / warpSize * warpSize];
}

// m16n8k16 of halves. Lane 4·g + t holds of a rows g and g + 8, of b column g, numbers 2t and 2t + 1 of each eight; of
// d columns 2t and 2t + 1 of both rows.
struct HalfNumbers {
    float a[4][2], b[2][2];
};
void multiply_halves(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    HalfNumbers own;
    for (int which = 0; which < 2; ++which) {
        for (int word = 0; word < 4; ++word) own.a[word][which] = half_of(a[word], which);
        for (int word = 0; word < 2; ++word) own.b[word][which] = half_of(b[word], which);
    }
    const int lane = threadIdx.x % warpSize, group = lane / 4, pair = lane % 4;
    const HalfNumbers *const lanes = share(own);
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 16; ++k) {
            const HalfNumbers &left = lanes[group * 4 + k % 8 / 2], &right = lanes[(2 * pair + i % 2) * 4 + k % 8 / 2];
            sums[i] = fmaf(left.a[k / 8 * 2 + i / 2][k % 2], right.b[k / 8][k % 2], sums[i]);
        }
    __syncwarp();
}

// m16n8k16 of unsigned by signed bytes. Lane 4·g + t holds of a row g and g + 8, of b column g, four bytes from 4·t on;
// of d columns 2t and 2t + 1 of both rows.
struct ByteWords {
    unsigned a[2], b;
};
void multiply_bytes(int (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
    const int lane = threadIdx.x % warpSize, group = lane / 4, pair = lane % 4;
    const ByteWords *const lanes = share(ByteWords{{a[0], a[1]}, b[0]});
    for (int t = 0; t < 4; ++t)
        for (int i = 0; i < 4; ++i) {
            const unsigned left = lanes[group * 4 + t].a[i / 2], right = lanes[(2 * pair + i % 2) * 4 + t].b;
            for (int byte = 0; byte < 4; ++byte)
                d[i] += static_cast<int>(left >> 8 * byte & 0xFF) * static_cast<signed char>(right >> 8 * byte);
        }
    __syncwarp();
}

}  // namespace host_cuda
