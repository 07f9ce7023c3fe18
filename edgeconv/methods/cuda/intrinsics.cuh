// Instructions that CUDA C++ has no portable word for: each behind a name that says what it does.
//
//     arithmetic       fused and plain, with or without denormal numbers; maximum, square root, clipping, packing
//     halves           the same for two halves in a word
//     tensor cores     products of a 16 × k by a k × 8 matrix; which lane holds what: PTX ISA, "Matrix fragments"
//     memory           whole stores, asynchronous copies to shared memory
//     compiler         values that it must read again, must not look through, or must hold
//
// CuPy compiles with -ftz=true, which turns denormal numbers into zeros. The instructions here that have no .ftz keep
// every bit of IEEE arithmetic, at the same speed.
//
// Below compute capability 8.0 some are several instructions. tests/host_cuda/intrinsics.h is the same for a CPU.
#ifndef EDGECONV_INTRINSICS
#define EDGECONV_INTRINSICS

// --- arithmetic -----------------------------------------------------------------------------------------------------
__device__ __forceinline__ float fused_multiply_add(float a, float b, float c) {
    float result;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
    return result;
}

__device__ __forceinline__ float plain_multiply(float a, float b) {
    float result;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

__device__ __forceinline__ float plain_add(float a, float b) {
    float result;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

__device__ __forceinline__ float plain_subtract(float a, float b) {
    float result;
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

// The same in double, where nothing turns denormal numbers into zeros. The compiler fuses no product with a sum.
__device__ __forceinline__ double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }
__device__ __forceinline__ double plain_multiply(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plain_add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double plain_subtract(double a, double b) { return __dsub_rn(a, b); }

// The larger of two, neither of which is a NaN.
__device__ __forceinline__ float larger_number(float a, float b) {
    float result;
    asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

__device__ __forceinline__ double larger_number(double a, double b) { return b > a ? b : a; }

// The larger of two numbers; a NaN in `b` stays one, and so does one in `a`.
__device__ __forceinline__ float larger_or_nan(float a, float b) {
    float result;
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
#else
    asm("{\n.reg .pred above, none;\n"
        "setp.gt.f32 above, %2, %1;\n"
        "setp.nan.or.f32 none, %2, %2, above;\n"
        "selp.f32 %0, %2, %1, none;\n}"
        : "=f"(result)
        : "f"(a), "f"(b));
#endif
    return result;
}

__device__ __forceinline__ double larger_or_nan(double a, double b) { return b > a || b != b ? b : a; }

// The larger size of two numbers; a NaN stays one.
__device__ __forceinline__ float larger_size_or_nan(float a, float b) {
    float x, y;
    asm("abs.f32 %0, %1;" : "=f"(x) : "f"(a));
    asm("abs.f32 %0, %1;" : "=f"(y) : "f"(b));
    return larger_or_nan(x, y);
}

__device__ __forceinline__ double larger_size_or_nan(double a, double b) { return larger_or_nan(fabs(a), fabs(b)); }

// sqrt(value), but for some units of the last place.
__device__ __forceinline__ float approximate_root(float value) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
    return root;
}

// a·b + c, at least 0 and at most 1: one instruction, which the compiler does not make of its parts.
__device__ __forceinline__ float clipped_multiply_add(float a, float b, float c) {
    float sum;
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(a), "f"(b), "f"(c));
    return sum;
}

// sum + the products of four unsigned bytes and four signed ones. (CUDA's __dp4a takes two of the same kind.)
__device__ __forceinline__ int dot_of_bytes(unsigned pixels, int weights, int sum) {
    int total;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(total) : "r"(pixels), "r"(weights), "r"(sum));
    return total;
}

// sum + the two 16-bit numbers of a word, each times a byte of `weights` (its two low ones).
__device__ __forceinline__ unsigned dot_of_shorts(unsigned samples, unsigned weights, unsigned sum) {
    unsigned total;
    asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(total) : "r"(samples), "r"(weights), "r"(sum));
    return total;
}

// Two whole numbers, each clipped to 0..65535, as the halves of a word.
__device__ __forceinline__ unsigned pack_shorts(int first, int second) {
    unsigned all;
    asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(all) : "r"(second), "r"(first));
    return all;
}

// Two whole numbers, each clipped to 0..255, as the low bytes of a word whose high half is the low one of `above`.
__device__ __forceinline__ unsigned pack_clipped(int first, int second, unsigned above) {
    unsigned all;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(second), "r"(first), "r"(above));
    return all;
}

// Four of the eight bytes of `low` (0 to 3) and `high` (4 to 7): those that the hexadecimal digits of `which` name, the
// last digit the lowest byte; 8 more is the byte's highest bit in all its bits. (CUDA's __byte_perm has no such digits.)
__device__ __forceinline__ unsigned pick_bytes(unsigned low, unsigned high, unsigned which) {
    unsigned picked;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(low), "r"(high), "r"(which));
    return picked;
}

// The halves of `mark` become NaN, for good, with the first half of a word that is a NaN or an infinity.
__device__ __forceinline__ void mark_halves_not_finite(unsigned halves, unsigned &mark) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(mark) : "r"(halves), "r"(0));
}

// --- pairs of halves: two numbers in a word, whose bits are those of IEEE halves ---------------------------------------
// Below 2^-13 halves are 2^-24 apart, so a whole number from 0 to 2047 in 16 bits is a half already: that times 2^-24.
__device__ __forceinline__ unsigned add_halves(unsigned a, unsigned b) {
    unsigned sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
__device__ __forceinline__ unsigned subtract_halves(unsigned a, unsigned b) {
    unsigned difference;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}
__device__ __forceinline__ unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c) {
    unsigned sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
}
__device__ __forceinline__ unsigned multiply_halves(unsigned a, unsigned b) {
    unsigned product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
}
__device__ __forceinline__ unsigned absolute_halves(unsigned a) {
    unsigned magnitudes;
    asm("abs.f16x2 %0, %1;" : "=r"(magnitudes) : "r"(a));
    return magnitudes;
}
// a - b, or 0 where that is negative.
__device__ __forceinline__ unsigned excess_of_halves(unsigned a, unsigned b) {
#if __CUDA_ARCH__ >= 800
    unsigned excess;
    asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(excess) : "r"(b), "r"(0xBC00BC00u), "r"(a));  // b · -1 + a
    return excess;
#else
    const unsigned difference = subtract_halves(a, b);
    return difference & ~pick_bytes(difference, 0, 0xBB99);
#endif
}
// The larger size of each pair of numbers, which are finite.
__device__ __forceinline__ unsigned larger_halves(unsigned a, unsigned b) {
#if __CUDA_ARCH__ >= 800
    unsigned larger;
    asm("{\n.reg .b32 x, y;\nabs.f16x2 x, %1;\nabs.f16x2 y, %2;\nmax.f16x2 %0, x, y;\n}" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
#else
    return __vmaxu2(a & 0x7FFF7FFFu, b & 0x7FFF7FFFu);  // the bits of such numbers are in their order
#endif
}
// The smaller of each pair of numbers, which are finite and not below 0.
__device__ __forceinline__ unsigned smaller_halves(unsigned a, unsigned b) {
#if __CUDA_ARCH__ >= 800
    unsigned smaller;
    asm("min.f16x2 %0, %1, %2;" : "=r"(smaller) : "r"(a), "r"(b));
    return smaller;
#else
    return __vminu2(a, b);
#endif
}

// Each of a pair of numbers, or 0 where it is below.
__device__ __forceinline__ unsigned not_below_zero(unsigned halves) {
    return __vmaxs2(halves, 0);  // as whole numbers: a sign is the same bit in both
}
__device__ __forceinline__ float half_as_float(unsigned halves, int which) {
    float number;
    if (which == 0) asm("{\n.reg .f16 x, y;\nmov.b32 {x, y}, %1;\ncvt.f32.f16 %0, x;\n}" : "=f"(number) : "r"(halves));
    else asm("{\n.reg .f16 x, y;\nmov.b32 {x, y}, %1;\ncvt.f32.f16 %0, y;\n}" : "=f"(number) : "r"(halves));
    return number;
}

// --- loads ----------------------------------------------------------------------------------------------------------
// They stay in order, and give zeros where nothing is to be read. Not `.nc`: the compiler would put them off.
__device__ __forceinline__ void load_4_bytes(unsigned *word, const void *from, bool is_read) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\nmov.u32 %0, 0;\n@p ld.global.u32 %0, [%1];\n}"
                 : "=&r"(word[0])
                 : "l"(from), "r"(static_cast<unsigned>(is_read)));
}
__device__ __forceinline__ void load_8_bytes(unsigned *word, const void *from, bool is_read) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\n"
                 "@p ld.global.v2.u32 {%0, %1}, [%2];\n}"
                 : "=&r"(word[0]), "=&r"(word[1])
                 : "l"(from), "r"(static_cast<unsigned>(is_read)));
}
__device__ __forceinline__ void load_16_bytes(unsigned *word, const void *from, bool is_read) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\nmov.u32 %0, 0;\nmov.u32 %1, 0;\nmov.u32 %2, 0;\n"
                 "mov.u32 %3, 0;\n@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                 : "=&r"(word[0]), "=&r"(word[1]), "=&r"(word[2]), "=&r"(word[3])
                 : "l"(from), "r"(static_cast<unsigned>(is_read)));
}

// --- conversions ----------------------------------------------------------------------------------------------------
#ifdef USES_FLOAT16
// Two samples as one word of halves, the first in the low bits.
__device__ __forceinline__ unsigned pack_halves(float first, float second) {
#if __CUDA_ARCH__ >= 800
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
#else
    return __half_as_ushort(__float2half_rn(first)) |
           static_cast<unsigned>(__half_as_ushort(__float2half_rn(second))) << 16;
#endif
}
#endif

// --- tensor cores -----------------------------------------------------------------------------------------------------
// d += a·b, 16 deep: unsigned by signed bytes, exact 32-bit sums.
__device__ __forceinline__ void mma_bytes(int (&d)[4], const unsigned (&a)[2], const unsigned (&b)[1]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#else
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(d[0]), "+r"(d[1])
        : "r"(a[0]), "r"(b[0]));
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+r"(d[2]), "+r"(d[3])
        : "r"(a[1]), "r"(b[0]));
#endif
}

// The same twice as deep: two pairs of operands.
__device__ __forceinline__ void mma_bytes(int (&d)[4], const unsigned (&a)[2][2], const unsigned (&b)[2][1]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0][0]), "r"(a[0][1]), "r"(a[1][0]), "r"(a[1][1]), "r"(b[0][0]), "r"(b[1][0]));
#else
    mma_bytes(d, a[0], b[0]);
    mma_bytes(d, a[1], b[1]);
#endif
}

// d += a·b, 16 deep: halves, float32 sums.
__device__ __forceinline__ void mma_halves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}

// --- memory -------------------------------------------------------------------------------------------------------------
// Store 4, 8 or 16 bytes at once; the compiler would take a store apart where a branch beside it stores the same in parts.
__device__ __forceinline__ void store_at_once(void *to, unsigned value) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ __forceinline__ void store_at_once(void *to, uint2 value) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(value.x), "r"(value.y) : "memory");
}
__device__ __forceinline__ void store_at_once(void *to, uint4 value) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
                 : "memory");
}

// Copy a value of 4, 8 or 16 bytes to shared memory, asynchronously where the GPU can.
template <typename Value>
__device__ __forceinline__ void copy_value(const Value *from, Value *to) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if (sizeof(Value) == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(sizeof(Value)));
#else
    *to = *from;
#endif
}

typedef unsigned SharedAddress;
__device__ __forceinline__ SharedAddress shared_address(void *place) {
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}
// Copy 16 bytes there, asynchronously where the GPU can.
__device__ __forceinline__ void copy_chunk(SharedAddress to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    const uint4 chunk = *static_cast<const uint4 *>(from);
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(chunk.x), "r"(chunk.y), "r"(chunk.z), "r"(chunk.w)
                 : "memory");
#endif
}
// The copies so far are a group; wait for all groups of this thread but the newest ALLOWED.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int ALLOWED>
__device__ __forceinline__ void wait_for_copies_but() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(ALLOWED) : "memory");
#endif
}

// Wait for this thread's asynchronous copies.
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// --- the compiler -------------------------------------------------------------------------------------------------------
// Hide where a pointer comes from.
template <typename T>
__device__ __forceinline__ void hide_origin(const T *&pointer) {
    asm("" : "+l"(pointer));
}

// blockIdx.x, read again where it is used.
__device__ __forceinline__ int block_index_anew() {
    int block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
}
// What is seldom done must not become instructions under a predicate, which take their time whether it is done or not.
__device__ __forceinline__ void stay_a_branch() { asm volatile("" ::: "memory"); }
#endif
