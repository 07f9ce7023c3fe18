// cuda_pipeline.h for g++: asynchronous copies that arrive as late as they may.
//
// A copy reads its source at once, so that a read out of bounds is reported at the kernel's line, and reaches
// shared memory only when the thread waits for its group: a thread that forgets to wait reads what was there before.
#pragma once
#include "host_cuda.h"

void __pipeline_memcpy_async(void *to, const void *from, size_t count);
void __pipeline_commit();
void __pipeline_wait_prior(size_t allowed);  // for all groups but the newest `allowed`
