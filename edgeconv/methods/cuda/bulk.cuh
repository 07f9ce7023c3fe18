// Bulk copies (compute capability 9.0 on): one lane moves a whole row between device and shared memory.
//
// The copy engine counts the bytes that arrived in a barrier in shared memory, which flips its phase when all have.
// PTX throughout, because CUDA has no intrinsics for these; see "Asynchronous data copies" in the CUDA C++ guide.
// Addresses and sizes are multiples of 16 bytes.
#if __CUDA_ARCH__ >= 900
#define HAS_BULK_COPIES

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// True in one lane of the warp, always the same; the compiler knows that it is a single lane.
__device__ __forceinline__ bool elected() {
    unsigned one;
    asm volatile("{\n.reg .pred one;\nelect.sync _|one, 0xffffffff;\nselp.u32 %0, 1, 0, one;\n}" : "=r"(one));
    return one;
}

// A phase of the barrier takes `count` arrivals.
__device__ __forceinline__ void init_barrier(unsigned long long *barrier, unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

// Make ordinary accesses of this thread to shared memory come before copies that start later.
__device__ __forceinline__ void fence_before_bulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Arrive; the phase under way ends no sooner than `bytes` have been copied.
__device__ __forceinline__ void expect_bytes(unsigned long long *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void start_bulk_read(void *to, const void *from, unsigned bytes,
                                                unsigned long long *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// Wait for the end of the phase whose number has this parity.
__device__ __forceinline__ void wait_for_phase(unsigned long long *barrier, unsigned parity) {
    unsigned ended;
    do {
        asm volatile(
            "{\n.reg .pred ended;\n"
            "mbarrier.try_wait.parity.shared.b64 ended, [%1], %2;\n"
            "selp.u32 %0, 1, 0, ended;\n}"
            : "=r"(ended)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!ended);
}

__device__ __forceinline__ void start_bulk_write(void *to, const void *from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

// Wait until the writes of this thread are done, and let ordinary accesses that follow see them.
__device__ __forceinline__ void finish_bulk_writes() {
    asm volatile("cp.async.bulk.wait_group 0;\nfence.proxy.async;" ::: "memory");
}

// Wait until the writes of this thread have read their shared memory.
__device__ __forceinline__ void wait_for_bulk_writes() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#endif
