// mma.sync m16n8k8 (TF32) and m16n8k16 (half) for g++, with float32 sums: what a warp's tensor core does.
//
// Each lane lays its operands down in matrices that the warp shares, and after a barrier takes its four sums.
// Layouts: PTX ISA, "Matrix fragments for mma.m16n8k8 / m16n8k16". TF32 operands lose their low 13 bits.
#pragma once
#include "cuda_fp16.h"

namespace host_cuda {

constexpr int MMA_M = 16, MMA_N = 8, MMA_MOST_K = 16;
constexpr unsigned TF32_BITS = 0xFFFFE000u;

struct Matrices {
    float left[MMA_M][MMA_MOST_K], right[MMA_MOST_K][MMA_N];
};
static std::vector<Matrices> matrices;  // one a warp

// Value `which` of the 32-bit operand `word`: a TF32 word is one value, a half word two.
inline float operand(bool half, unsigned word, int which) {
    if (!half) return __uint_as_float(word & TF32_BITS);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(word >> 16 * which)));
}

inline void multiply(bool half, float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    const size_t thread = static_cast<size_t>(current - fibers.data());
    const int lane = static_cast<int>(thread % warpSize), group = lane / 4, quarter = lane % 4;
    const int values_a_word = half ? 2 : 1, depth = 8 * values_a_word;
    matrices.resize((fibers.size() + warpSize - 1) / warpSize);
    Matrices &shared = matrices[thread / warpSize];
    for (int which = 0; which < values_a_word; ++which)
        for (int word = 0; word < 4; ++word) {
            const int k = (word / 2 * 4 + quarter) * values_a_word + which;
            shared.left[group + word % 2 * 8][k] = operand(half, a[word], which);
            if (word % 2 == 0) shared.right[k][group] = operand(half, b[word / 2], which);
        }
    __syncwarp();
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < depth; ++k)
            sums[i] = fmaf(shared.left[group + i / 2 * 8][k], shared.right[k][2 * quarter + i % 2], sums[i]);
    __syncwarp();
}

// What the lanes of a warp hold of two operands, for a kernel that writes the product out itself.
struct LaneWords {
    unsigned a[4], b[2];
};
static std::vector<LaneWords> lane_words;  // one a thread

// Every lane of the warp calls this with its words; a warp barrier must follow the last use of the result.
template <int A_WORDS, int B_WORDS>
const LaneWords *share_words(const unsigned (&a)[A_WORDS], const unsigned (&b)[B_WORDS]) {
    const size_t thread = static_cast<size_t>(current - fibers.data());
    lane_words.resize(fibers.size());
    for (int i = 0; i < A_WORDS; ++i) lane_words[thread].a[i] = a[i];
    for (int i = 0; i < B_WORDS; ++i) lane_words[thread].b[i] = b[i];
    __syncwarp();
    return &lane_words[thread / warpSize * warpSize];
}

}  // namespace host_cuda
