// cuda_pipeline.h for g++: asynchronous copies that arrive as late as they may.
//
// A copy reads its source at once, so that a read out of bounds is reported at the kernel's line, and reaches
// shared memory only when the thread waits for its group: a thread that forgets to wait reads what was there before.
#pragma once
#include "host_cuda.h"

inline void __pipeline_memcpy_async(void *to, const void *from, size_t count) {
    const size_t both = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from);
    if ((count != 4 && count != 8 && count != 16) || both % count)
        host_cuda::fail("an asynchronous copy is 4, 8 or 16 bytes, aligned to as much");
    host_cuda::AsyncCopy copy{host_cuda::current->group, static_cast<unsigned char *>(to), {}, static_cast<int>(count)};
    std::memcpy(copy.bytes, to, count);  // so that a destination out of bounds is reported here too
    std::memcpy(copy.bytes, from, count);
    host_cuda::current->copies.push_back(copy);
}

inline void __pipeline_commit() { ++host_cuda::current->group; }

// Wait for all groups but the newest `allowed`.
inline void __pipeline_wait_prior(size_t allowed) {
    std::vector<host_cuda::AsyncCopy> &copies = host_cuda::current->copies;
    size_t arrived = 0;
    for (; arrived < copies.size(); ++arrived) {
        const host_cuda::AsyncCopy &copy = copies[arrived];
        if (copy.group + static_cast<int>(allowed) >= host_cuda::current->group) break;
        std::memcpy(copy.to, copy.bytes, copy.count);
    }
    copies.erase(copies.begin(), copies.begin() + arrived);
}
