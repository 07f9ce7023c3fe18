// CUDA C++ for g++: enough of it to run this project's kernels, from their source, on a CPU.
//
// A kernel is compiled as plain C++ under AddressSanitizer and UBSan, and a launch runs block after block. The
// threads of a block are fibers: each runs until it meets a barrier, so a thread is always as far ahead of the
// others as the barriers let it be, and a missing one shows as a wrong result. `descending` turns the order of the
// threads round, which catches what the other order hides. Shared memory starts every block as 0xFF bytes (a NaN, or
// the largest number). Exited threads count as arrived, as on the GPU; threads that wait at barriers which the
// others never reach end the program.
//
// Not there: dynamic shared memory, votes of a warp, other shuffles, atomics, textures, which no kernel here uses. PTX
// instructions stand in intrinsics.h. -ftz=true is not imitated.
#pragma once
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

// --- words of the language ----------------------------------------------------------------------------------------
#define __global__
#define __host__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define alignas(bytes) __attribute__((aligned(bytes)))  // which may stand behind `static`, as in __shared__ alignas(16)
#define __shared__ static __attribute__((section("shared_memory")))

struct dim3 {
    unsigned x, y, z;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }

// --- intrinsics ---------------------------------------------------------------------------------------------------
template <typename To, typename From>
inline To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit pattern keeps its size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline unsigned __float_as_uint(float value) { return same_bits<unsigned>(value); }
inline int __float_as_int(float value) { return same_bits<int>(value); }
inline float __uint_as_float(unsigned bits) { return same_bits<float>(bits); }
inline float __int_as_float(int bits) { return same_bits<float>(bits); }
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }

template <typename T>
inline T __ldg(const T *from) { return *from; }
template <typename T>
inline void __stcs(T *to, T value) { *to = value; }

inline int __dp4a(int a, int b, int sum) {
    for (int byte = 0; byte < 4; ++byte)
        sum = static_cast<int>(static_cast<unsigned>(sum) + static_cast<signed char>(a >> 8 * byte) *
                                                                static_cast<signed char>(b >> 8 * byte));
    return sum;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    unsigned picked = 0;
    for (int byte = 0; byte < 4; ++byte) {
        const unsigned choice = selector >> 4 * byte & 0xF;
        const unsigned value = both >> 8 * (choice & 7) & 0xFF;
        picked |= (choice & 8 ? (value & 0x80 ? 0xFF : 0) : value) << 8 * byte;
    }
    return picked;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift < 32 ? shift : 32));
}

// --- threads ------------------------------------------------------------------------------------------------------
namespace host_cuda {

struct AsyncCopy {
    int group;
    unsigned char *to;
    unsigned char bytes[16];
    int count;
};

enum class State { ready, at_warp_barrier, at_block_barrier, done };

struct Fiber {
    ucontext_t context;
    dim3 place;
    State state;
    void *fake_stack;  // AddressSanitizer's, kept while another fiber runs
    std::vector<AsyncCopy> copies;
    int group;  // of asynchronous copies that is open
};

constexpr size_t STACK_BYTES = 1 << 17;
constexpr size_t MOST_THREADS = 1024;  // of a block, on every GPU
static char *const stacks = static_cast<char *>(std::malloc(MOST_THREADS * STACK_BYTES));  // touched only where used
static std::vector<Fiber> fibers;
static Fiber *current;
static ucontext_t scheduler;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static void (*body)(void **);
static void **body_arguments;
static void (*before_exit)() = [] {};  // what a thread still has to do when the kernel is through

[[noreturn]] inline void fail(const char *reason) {
    std::fprintf(stderr, "host_cuda: block %u, thread (%u, %u): %s\n", blockIdx.x, threadIdx.x, threadIdx.y, reason);
    std::abort();
}

// Back to the scheduler until it resumes this fiber; a fiber that is done gives its fake stack back.
inline void leave(State state) {
    Fiber *const fiber = current;
    fiber->state = state;
    __sanitizer_start_switch_fiber(state == State::done ? nullptr : &fiber->fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
    swapcontext(&fiber->context, &scheduler);
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
}

inline void start() {
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
    body(body_arguments);
    before_exit();
    leave(State::done);
}

inline void resume(Fiber &fiber) {
    current = &fiber;
    threadIdx = fiber.place;
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, fiber.context.uc_stack.ss_sp, STACK_BYTES);
    swapcontext(&scheduler, &fiber.context);
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

// Let fibers `first` to `last` go on if all of them that live wait at `barrier`, and at least one does.
inline void release(size_t first, size_t last, State barrier) {
    bool waiting = false;
    for (size_t i = first; i < last; ++i) {
        if (fibers[i].state != barrier && fibers[i].state != State::done) return;
        waiting |= fibers[i].state == barrier;
    }
    for (size_t i = first; waiting && i < last; ++i)
        if (fibers[i].state == barrier) fibers[i].state = State::ready;
}

inline void run_block(bool descending) {
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

template <typename... Parameters, size_t... Index>
void call(void (*kernel)(Parameters...), void **arguments, std::index_sequence<Index...>) {
    kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<Parameters>> *>(arguments[Index])...);
}
template <typename... Parameters>
void call(void (*kernel)(Parameters...), void **arguments) {
    call(kernel, arguments, std::index_sequence_for<Parameters...>());
}

}  // namespace host_cuda

inline void __syncthreads() { host_cuda::leave(host_cuda::State::at_block_barrier); }
inline int __syncthreads_or(int predicate) {
    static int any;
    any |= predicate != 0;
    __syncthreads();
    const int result = any;
    __syncthreads();
    any = 0;
    __syncthreads();
    return result;
}
inline void __syncwarp() { host_cuda::leave(host_cuda::State::at_warp_barrier); }

// Every lane of the warp takes part, as `mask` must say.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
    static_assert(sizeof(T) == sizeof(unsigned), "only words are shuffled");
    static std::vector<unsigned> words;
    if (mask != 0xFFFFFFFFu) host_cuda::fail("a shuffle of some lanes is not imitated");
    words.resize(host_cuda::fibers.size());
    const size_t thread = static_cast<size_t>(host_cuda::current - host_cuda::fibers.data());
    words[thread] = same_bits<unsigned>(value);
    __syncwarp();
    const T taken = same_bits<T>(words[thread / warpSize * warpSize + lane % warpSize]);
    __syncwarp();
    return taken;
}

// The linker's names for the ends of the section that holds every __shared__ variable; absent where there is none.
extern "C" __attribute__((weak)) unsigned char __start_shared_memory[], __stop_shared_memory[];

__attribute__((no_sanitize("address"))) inline void forget_shared_memory() {
    for (volatile unsigned char *byte = __start_shared_memory; byte < __stop_shared_memory; ++byte) *byte = 0xFF;
}

// What the library that is made of a kernel exports: one launch, like cuLaunchKernel's, of the kernel ENTRY.
#define HOST_CUDA_LAUNCH(ENTRY)                                                                                    \
    extern "C" void launch(const unsigned *grid, const unsigned *block, void **arguments, int descending) {        \
        host_cuda::body = [](void **values) { host_cuda::call(&ENTRY, values); };                                  \
        host_cuda::body_arguments = arguments;                                                                     \
        gridDim = {grid[0], grid[1], grid[2]};                                                                     \
        blockDim = {block[0], block[1], block[2]};                                                                 \
        host_cuda::fibers.resize(block[0] * block[1] * block[2]);                                                  \
        const unsigned blocks = grid[0] * grid[1] * grid[2];                                                       \
        for (unsigned i = 0; i < blocks; ++i) {                                                                    \
            const unsigned b = descending ? blocks - 1 - i : i;                                                    \
            blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};                                \
            forget_shared_memory();                                                                                \
            host_cuda::run_block(descending);                                                                      \
        }                                                                                                          \
    }

#include "intrinsics.h"
#ifdef HOST_CUDA_BULK
#include "bulk_copies.h"
#endif
