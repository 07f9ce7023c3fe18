// mma.sync m16n8k8 (TF32) and m16n8k16 (half, bytes) and ldmatrix for g++.
#pragma once
#include "cuda_fp16.h"

namespace host_cuda {

constexpr unsigned TF32_BITS = 0xFFFFE000u;

void multiply(bool half, float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
void multiply_bytes(int (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]);
unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c);  // of both halves of a word
void load_matrices(const float *row, float (&word)[4]);

}  // namespace host_cuda
