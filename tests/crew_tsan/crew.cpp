// The hand-over of edgeconv/hardware/cpu/crew_code.py in C++, word for word, for ThreadSanitizer: it sees whether the
// atomics alone order every access to a job's plain fields, to its arguments and to the samples that units write.
//
//     g++ -std=c++17 -O1 -g -fsanitize=thread crew.cpp -o crew -pthread && ./crew CALLERS HELPERS JOBS
//
// -DNO_GENERATION claims without looking at the job's number, -DRELAXED_DONE reports units without an ordering: both are
// faults that it must find.

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

using Word = std::atomic<int64_t>;
using Half = std::atomic<int32_t>;

constexpr int64_t NO_SEAT = INT64_C(1) << 31, LOW = (INT64_C(1) << 32) - 1;
constexpr int32_t ASLEEP = INT32_MIN;
constexpr int SLOTS = 2, SPINS = 50;

#ifdef RELAXED_DONE
constexpr auto REPORT = std::memory_order_relaxed;
#else
constexpr auto REPORT = std::memory_order_seq_cst;
#endif

struct Job {
    int64_t units, threads;
    std::vector<int64_t> samples, scratch;
};

struct Slot {
    Word left{0}, seats{0}, owned{0}, limit{0};
    Half done{0};
    Job *job = nullptr;
    int64_t units = 0;
} slots[SLOTS];

Half bell{0};
Word sleepers{0}, helpers{0}, callers{0}, stopped{0};

// Threads give up their core at any point now and then, so that they meet in odd places on a machine of few cores too.
thread_local uint32_t dice = 0;
void stumble() {
    if (dice == 0) dice = static_cast<uint32_t>(syscall(SYS_gettid)) * 2654435761u | 1;
    dice ^= dice << 13, dice ^= dice >> 17, dice ^= dice << 5;
    if (dice % 4 == 0) std::this_thread::yield();
    if (dice % 512 == 0) usleep(50);
}

int64_t high(int64_t word) { return static_cast<int64_t>(static_cast<uint64_t>(word) >> 32); }

void futex(Half &word, int operation, int32_t value) {
    syscall(SYS_futex, reinterpret_cast<int32_t *>(&word), operation, value, nullptr, nullptr, 0);
}

void wake(int64_t wanted) {
    if (wanted > 0 && sleepers.load() > 0) futex(bell, FUTEX_WAKE_PRIVATE, static_cast<int32_t>(wanted));
}

void work(Job &job, int64_t worker, int64_t unit) {
    stumble();
    job.scratch[worker] += 1;  // a race if two threads are the same worker
    job.samples[unit] += 1;    // a race if a unit is done twice, or after the caller has come back
}

int32_t take_units(Slot &slot, int64_t generation, int64_t worker, int64_t limit) {
    int32_t done = 0;
    for (;;) {
        int64_t word = slot.left.load();
#ifdef NO_GENERATION
        generation = high(word);
#endif
        if (high(word) != generation || (word & LOW) == 0) break;
        stumble();
        if (!slot.left.compare_exchange_strong(word, word - 1)) continue;
        work(*slot.job, worker, slot.units - (word & LOW));
        done += 1;
        if (worker > 0 && helpers.load() + callers.load() > limit) break;
    }
    return done;
}

void run(Job &job, int64_t limit) {
    Slot *mine = nullptr;
    for (Slot &slot : slots) {
        int64_t unused = 0;
        if (slot.owned.compare_exchange_strong(unused, 1)) {
            mine = &slot;
            break;
        }
    }
    if (!mine) {
        for (int64_t unit = 0; unit < job.units; unit++) work(job, 0, unit);
        return;
    }
    Slot &slot = *mine;
    slot.job = &job;
    slot.units = job.units;
    if (slot.limit.load() != limit) slot.limit.store(limit, std::memory_order_release);
    slot.done.store(0, std::memory_order_release);
    callers.fetch_add(1);
    const int64_t generation = (high(slot.left.load()) + 1) & LOW;
    slot.seats.store(generation << 32 | (NO_SEAT - (job.threads - 1)), std::memory_order_release);
    slot.left.store(generation << 32 | job.units, std::memory_order_release);
    bell.fetch_add(1);
    wake(job.threads - 1);
    slot.done.fetch_add(take_units(slot, generation, 0, limit), REPORT);
    const auto all_done = [&] { return (slot.done.load() & ~ASLEEP) == job.units; };
    for (int spin = 0; spin < SPINS && !all_done(); spin++) std::this_thread::yield();
    while (!all_done()) {
        const int32_t before = slot.done.fetch_or(ASLEEP);
        if ((before & ~ASLEEP) == job.units) break;
        futex(slot.done, FUTEX_WAIT_PRIVATE, before | ASLEEP);
    }
    callers.fetch_add(-1);
    slot.owned.store(0, std::memory_order_release);
}

void help(Slot &slot) {
    if ((slot.left.load() & LOW) == 0) return;
    const int64_t at_work = helpers.fetch_add(1) + callers.load();
    const int64_t limit = slot.limit.load();
    int64_t seat = 0, word = 0;
    if (at_work < limit) {
        word = slot.seats.fetch_add(1);
        seat = NO_SEAT - (word & LOW);
        stumble();
    }
    const int32_t count = seat > 0 ? take_units(slot, high(word), seat, limit) : 0;
    helpers.fetch_add(-1);
    if (count == 0) return;
    stumble();
    const int64_t units = slot.units;
    const int32_t before = slot.done.fetch_add(count, REPORT);
    if ((before & ~ASLEEP) + count == units && before < 0) futex(slot.done, FUTEX_WAKE_PRIVATE, 1);
}

void stay() {
    int32_t seen = bell.load();
    for (;;) {
        for (Slot &slot : slots) help(slot);
        if (stopped.load()) return;
        for (int spin = 0; spin < SPINS && bell.load() == seen; spin++) std::this_thread::yield();
        if (bell.load() == seen) {
            sleepers.fetch_add(1);
            futex(bell, FUTEX_WAIT_PRIVATE, seen);
            sleepers.fetch_add(-1);
        }
        seen = bell.load();
    }
}

int main(int, char **arguments) {
    const int calling = std::atoi(arguments[1]), helping = std::atoi(arguments[2]), jobs = std::atoi(arguments[3]);
    std::vector<std::thread> crew, users;
    for (int i = 0; i < helping; i++) crew.emplace_back(stay);
    std::atomic<int> wrong{0};
    for (int i = 0; i < calling; i++)
        users.emplace_back([&, i] {
            for (int n = 0; n < jobs; n++) {
                const int64_t units = 1 + (n * 7 + i) % 5, threads = 1 + (n + i) % 4;
                Job job{units, threads, std::vector<int64_t>(units), std::vector<int64_t>(threads)};
                run(job, 1 + (n % 3) * 2);
                for (int64_t sample : job.samples) wrong += sample != 1;
            }
        });
    for (std::thread &user : users) user.join();
    stopped.exchange(1);
    bell.fetch_add(1);
    futex(bell, FUTEX_WAKE_PRIVATE, INT_MAX);
    for (std::thread &helper : crew) helper.join();
    std::printf("%d units were not done once\n", wrong.load());
    return wrong.load() != 0;
}
