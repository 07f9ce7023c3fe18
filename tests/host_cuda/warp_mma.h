// mma.sync m16n8k16 of halves and of bytes for g++.
#pragma once
#include "cuda_fp16.h"

namespace host_cuda {

void multiply_halves(float (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2]);
void multiply_bytes(int (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]);
unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c);  // of both halves of a word

}  // namespace host_cuda
