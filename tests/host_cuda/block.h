// The block that runs now, for the files of this folder that kernels do not include.
#pragma once
#include "host_cuda.h"

#include <ucontext.h>

#include <vector>

namespace host_cuda {

struct AsyncCopy {
    int group;
    unsigned char *to;
    unsigned char bytes[16];
    int count;
};

struct Fiber {
    ucontext_t context;
    dim3 place;
    State state;
    void *fake_stack;  // AddressSanitizer's, kept while another fiber runs
    std::vector<AsyncCopy> copies;
    int group;  // of asynchronous copies that is open
};

extern std::vector<Fiber> fibers;
extern Fiber *current;

}  // namespace host_cuda
