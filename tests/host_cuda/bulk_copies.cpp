// Bulk copies that move bytes as late as they may.
//
// A read from device memory arrives when somebody waits for the phase that counts it, and a write takes its bytes
// from shared memory when its thread waits for it, or ends: a thread that waits too late, or not at all, works with wrong bytes.
// Each arrival at a barrier (`expect_bytes`) says how many bytes it stands for. Rules: PTX ISA, mbarrier, cp.async.bulk.
#include "block.h"

#include "bulk_copies.h"

#include <map>

namespace host_cuda {

constexpr int BULK_ALIGNMENT = 16;
constexpr int MOST_TURNS = 1000;  // of the scheduler, before a wait is taken to be for ever

struct BulkRead {
    unsigned char *to;
    std::vector<unsigned char> bytes;
};

struct Barrier {
    unsigned phase = 0;
    unsigned count = 0, arrived = 0;
    size_t expected = 0;
    std::vector<BulkRead> reads;

    // End the phase if everything it counts is on its way; its bytes arrive now.
    bool end_phase() {
        size_t moving = 0;
        for (const BulkRead &read : reads) moving += read.bytes.size();
        if (arrived < count || moving != expected) return false;
        for (const BulkRead &read : reads) std::memcpy(read.to, read.bytes.data(), read.bytes.size());
        reads.clear();
        arrived = 0;
        expected = 0;
        ++phase;
        return true;
    }
};

struct BulkWrite {
    unsigned char *to;
    const unsigned char *from;
    size_t count;
};

static std::map<const void *, Barrier> barriers;
static std::map<const Fiber *, std::vector<BulkWrite>> bulk_writes;

static void check_bulk(const void *to, const void *from, size_t count) {
    if ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | count) % BULK_ALIGNMENT)
        fail("a bulk copy's addresses and size are multiples of 16 bytes");
}

void finish_bulk_writes_of_thread() {
    if (bulk_writes.empty()) return;
    for (const BulkWrite &write : bulk_writes[current]) std::memcpy(write.to, write.from, write.count);
    bulk_writes[current].clear();
}

}  // namespace host_cuda

void init_barrier(unsigned long long *barrier, unsigned count) {
    host_cuda::barriers[barrier] = {};
    host_cuda::barriers[barrier].count = count;
}

void expect_bytes(unsigned long long *barrier, unsigned bytes) {
    host_cuda::Barrier &state = host_cuda::barriers.at(barrier);
    if (state.arrived == state.count && !state.end_phase())
        host_cuda::fail("a phase begins before the one before has ended");
    ++state.arrived;
    state.expected += bytes;
}

void start_bulk_read(void *to, const void *from, unsigned count, unsigned long long *barrier) {
    host_cuda::check_bulk(to, from, count);
    host_cuda::BulkRead read{static_cast<unsigned char *>(to), std::vector<unsigned char>(count)};
    std::memcpy(read.bytes.data(), to, count);  // out of bounds shows here, at the kernel's line
    std::memcpy(read.bytes.data(), from, count);
    host_cuda::barriers.at(barrier).reads.push_back(std::move(read));
}

void wait_for_phase(unsigned long long *barrier, unsigned parity) {
    host_cuda::Barrier &state = host_cuda::barriers.at(barrier);
    for (int turn = 0; state.phase % 2 == parity && !state.end_phase(); ++turn) {
        if (turn == host_cuda::MOST_TURNS) host_cuda::fail("waits for a phase that does not end");
        host_cuda::leave(host_cuda::State::ready);
    }
}

void start_bulk_write(void *to, const void *from, unsigned count) {
    host_cuda::check_bulk(to, from, count);
    std::memcpy(std::vector<unsigned char>(count).data(), to, count);  // out of bounds shows here
    host_cuda::bulk_writes[host_cuda::current].push_back(
        {static_cast<unsigned char *>(to), static_cast<const unsigned char *>(from), count});
}

void wait_for_bulk_writes() { host_cuda::finish_bulk_writes_of_thread(); }
