// CUDA C++ for g++: enough of it to run this project's kernels, from their source, on a CPU.
//
// A kernel is compiled as plain C++ under AddressSanitizer and UBSan, and linked with what runs its threads
// (block.cpp says how). Whatever is not a template or a few operations stands in a .cpp file, which is compiled once
// for all kernels.
//
// Atomics need nothing more, since one thread runs at a time. Not there: dynamic shared memory, textures, and shuffles and
// votes of some lanes of a warp, which no kernel here uses. PTX instructions stand in intrinsics.h. -ftz=true
// is not imitated.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

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
extern dim3 threadIdx, blockIdx, blockDim, gridDim;
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
inline int __double2loint(double value) { return static_cast<int>(same_bits<unsigned long long>(value)); }
inline int __double2hiint(double value) { return static_cast<int>(same_bits<unsigned long long>(value) >> 32); }
inline double __hiloint2double(int high, int low) {
    return same_bits<double>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }

template <typename T>
inline T __ldg(const T *from) { return *from; }
template <typename T>
inline void __stcs(T *to, T value) { *to = value; }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(static_cast<unsigned>(bits)) : 32; }

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
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift < 32 ? shift : 32));
}

// --- threads ------------------------------------------------------------------------------------------------------
namespace host_cuda {

enum class State { ready, at_warp_barrier, at_block_barrier, done };

[[noreturn]] void fail(const char *reason);
void leave(State state);  // this thread waits, and others run
unsigned exchange(unsigned mask, unsigned value, int lane);
unsigned vote(unsigned mask, bool value);
int lane_of_thread();
void run(const unsigned *grid, const unsigned *block, void **arguments, bool descending, void (*kernel)(void **));

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
inline void __syncwarp() { host_cuda::leave(host_cuda::State::at_warp_barrier); }
int __syncthreads_or(int predicate);

// Every lane of the warp takes part, as `mask` must say.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
    return same_bits<T>(host_cuda::exchange(mask, same_bits<unsigned>(value), lane));
}

// The value of a lane before or after this one; the first and the last have their own.
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned step) {
    return __shfl_sync(mask, value, max(host_cuda::lane_of_thread() - static_cast<int>(step), 0));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned step) {
    return __shfl_sync(mask, value, min(host_cuda::lane_of_thread() + static_cast<int>(step), warpSize - 1));
}
inline unsigned __ballot_sync(unsigned mask, bool value) { return host_cuda::vote(mask, value); }
inline bool __any_sync(unsigned mask, bool value) { return host_cuda::vote(mask, value) != 0; }

inline int atomicCAS(int *at, int expected, int value) {
    const int found = *at;
    if (found == expected) *at = value;
    return found;
}

// What the library that is made of a kernel exports: one launch, like cuLaunchKernel's, of the kernel ENTRY.
#define HOST_CUDA_LAUNCH(ENTRY)                                                                                    \
    extern "C" void launch(const unsigned *grid, const unsigned *block, void **arguments, int descending) {        \
        host_cuda::run(grid, block, arguments, descending, [](void **values) { host_cuda::call(&ENTRY, values); }); \
    }

#include "intrinsics.h"
