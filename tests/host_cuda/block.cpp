// Runs the threads of a kernel, block after block.
//
// The threads of a block are fibers: each runs until it meets a barrier, so a thread is always as far ahead of the
// others as the barriers let it be, and a missing one shows as a wrong result. `descending` turns the order of the
// threads round, which catches what the other order hides. Shared memory starts every block as 0xFF bytes (a NaN, or
// the largest number). Exited threads count as arrived, as on the GPU; threads that wait at barriers which the
// others never reach end the program.
#include "block.h"

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include <cstdio>
#include <cstdlib>

#include "cuda_pipeline.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_cuda {

constexpr size_t STACK_BYTES = 1 << 17;
constexpr size_t MOST_THREADS = 1024;  // of a block, on every GPU
static char *const stacks = static_cast<char *>(std::malloc(MOST_THREADS * STACK_BYTES));  // touched only where used
std::vector<Fiber> fibers;
Fiber *current;
static ucontext_t scheduler;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static void (*body)(void **);
static void **body_arguments;

[[noreturn]] void fail(const char *reason) {
    std::fprintf(stderr, "host_cuda: block %u, thread (%u, %u): %s\n", blockIdx.x, threadIdx.x, threadIdx.y, reason);
    std::abort();
}

// Back to the scheduler until it resumes this fiber; a fiber that is done gives its fake stack back.
void leave(State state) {
    Fiber *const fiber = current;
    fiber->state = state;
    __sanitizer_start_switch_fiber(state == State::done ? nullptr : &fiber->fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
    swapcontext(&fiber->context, &scheduler);
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
}

static void start() {
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
    body(body_arguments);
    leave(State::done);
}

static void resume(Fiber &fiber) {
    current = &fiber;
    threadIdx = fiber.place;
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, fiber.context.uc_stack.ss_sp, STACK_BYTES);
    swapcontext(&scheduler, &fiber.context);
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

// Let fibers `first` to `last` go on if all of them that live wait at `barrier`, and at least one does.
static void release(size_t first, size_t last, State barrier) {
    bool waiting = false;
    for (size_t i = first; i < last; ++i) {
        if (fibers[i].state != barrier && fibers[i].state != State::done) return;
        waiting |= fibers[i].state == barrier;
    }
    for (size_t i = first; waiting && i < last; ++i)
        if (fibers[i].state == barrier) fibers[i].state = State::ready;
}

static void run_block(bool descending) {
    const size_t count = fibers.size();
    for (size_t i = 0; i < count; ++i) {
        Fiber &fiber = fibers[i];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = stacks + i * STACK_BYTES;
        fiber.context.uc_stack.ss_size = STACK_BYTES;
        fiber.context.uc_link = nullptr;
        const unsigned thread = static_cast<unsigned>(i);
        fiber.place = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
        fiber.state = State::ready;
        fiber.copies.clear();
        fiber.group = 0;
        makecontext(&fiber.context, start, 0);
    }
    for (;;) {
        bool ran = false, alive = false;
        for (size_t i = 0; i < count; ++i) {
            Fiber &fiber = fibers[descending ? count - 1 - i : i];
            if (fiber.state != State::ready) continue;
            resume(fiber);
            ran = true;
        }
        for (const Fiber &fiber : fibers) alive |= fiber.state != State::done;
        if (!alive) return;
        if (!ran) fail("threads wait at a barrier that others never reach");
        for (size_t first = 0; first < count; first += warpSize)
            release(first, min(first + warpSize, count), State::at_warp_barrier);
        release(0, count, State::at_block_barrier);
    }
}

// The linker's names for the ends of the section that holds every __shared__ variable; absent where there is none.
extern "C" __attribute__((weak)) unsigned char __start_shared_memory[], __stop_shared_memory[];

__attribute__((no_sanitize("address"))) static void forget_shared_memory() {
    for (volatile unsigned char *byte = __start_shared_memory; byte < __stop_shared_memory; ++byte) *byte = 0xFF;
}

void run(const unsigned *grid, const unsigned *block, void **arguments, bool descending, void (*kernel)(void **)) {
    body = kernel;
    body_arguments = arguments;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    fibers.resize(block[0] * block[1] * block[2]);
    const unsigned blocks = grid[0] * grid[1] * grid[2];
    for (unsigned i = 0; i < blocks; ++i) {
        const unsigned b = descending ? blocks - 1 - i : i;
        blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
        forget_shared_memory();
        run_block(descending);
    }
}

unsigned exchange(unsigned mask, unsigned value, int lane) {
    static std::vector<unsigned> words;
    if (mask != 0xFFFFFFFFu) fail("a shuffle of some lanes is not imitated");
    words.resize(fibers.size());
    const size_t thread = static_cast<size_t>(current - fibers.data());
    words[thread] = value;
    __syncwarp();
    const unsigned taken = words[thread / warpSize * warpSize + lane % warpSize];
    __syncwarp();
    return taken;
}

int lane_of_thread() { return static_cast<int>((current - fibers.data()) % warpSize); }

// Bit i of the result: the value of lane i.
unsigned vote(unsigned mask, bool value) {
    static std::vector<unsigned> votes;
    if (mask != 0xFFFFFFFFu) fail("a vote of some lanes is not imitated");
    votes.resize((fibers.size() + warpSize - 1) / warpSize);
    const size_t warp = static_cast<size_t>(current - fibers.data()) / warpSize;
    const unsigned own = 1u << lane_of_thread();
    votes[warp] = value ? votes[warp] | own : votes[warp] & ~own;
    __syncwarp();
    const unsigned all = votes[warp];
    __syncwarp();
    return all;
}

}  // namespace host_cuda

int __syncthreads_or(int predicate) {
    static int any;
    any |= predicate != 0;
    __syncthreads();
    const int result = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return result;
}

// --- asynchronous copies of 4 to 16 bytes: cuda_pipeline.h -----------------------------------------------------------
void __pipeline_memcpy_async(void *to, const void *from, size_t count) {
    const size_t both = reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from);
    if ((count != 4 && count != 8 && count != 16) || both % count)
        host_cuda::fail("an asynchronous copy is 4, 8 or 16 bytes, aligned to as much");
    host_cuda::AsyncCopy copy{host_cuda::current->group, static_cast<unsigned char *>(to), {}, static_cast<int>(count)};
    std::memcpy(copy.bytes, to, count);  // so that a destination out of bounds is reported here too
    std::memcpy(copy.bytes, from, count);
    host_cuda::current->copies.push_back(copy);
}

void __pipeline_commit() { ++host_cuda::current->group; }

// Wait for all groups but the newest `allowed`.
void __pipeline_wait_prior(size_t allowed) {
    std::vector<host_cuda::AsyncCopy> &copies = host_cuda::current->copies;
    size_t arrived = 0;
    for (; arrived < copies.size(); ++arrived) {
        const host_cuda::AsyncCopy &copy = copies[arrived];
        if (copy.group + static_cast<int>(allowed) >= host_cuda::current->group) break;
        std::memcpy(copy.to, copy.bytes, copy.count);
    }
    copies.erase(copies.begin(), copies.begin() + arrived);
}
