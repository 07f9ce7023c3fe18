// The bulk copies of bulk.cuh (compute capability 9.0 on) for g++.
#pragma once
#include "host_cuda.h"

#define HAS_BULK_COPIES

inline bool elected() { return threadIdx.x % warpSize == 0; }
inline void fence_before_bulk() {}

void init_barrier(unsigned long long *barrier, unsigned count);
void expect_bytes(unsigned long long *barrier, unsigned bytes);
void wait_for_phase(unsigned long long *barrier, unsigned parity);
void start_bulk_read(void *to, const void *from, unsigned count, unsigned long long *barrier);
void start_bulk_write(void *to, const void *from, unsigned count);
void wait_for_bulk_writes();

// A write takes its bytes and arrives at once here, so that to wait for either is the same.
inline void finish_bulk_writes() { wait_for_bulk_writes(); }
