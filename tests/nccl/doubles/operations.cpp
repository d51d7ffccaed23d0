// The work of NCCL's kernels, on the stream's thread: meet the peers, move bytes, add up.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "clique.hpp"
#include "src/copy/elements.hpp"

namespace nccl_double {
namespace {

std::atomic<int> timeout{30000};

struct Failures {
    std::mutex mutex;
    std::map<int, int> after;  // device -> operations
};
Failures& failures() {
    static Failures* only = new Failures;
    return *only;
}

// Integers wrap: they add and multiply as the unsigned type of their size, but compare as signed numbers.
template <class T, class Unsigned = T>
struct Number {
    T value;
    friend Number operator+(Number a, Number b) {
        return {static_cast<T>(static_cast<Unsigned>(a.value) + static_cast<Unsigned>(b.value))};
    }
    friend Number operator*(Number a, Number b) {
        return {static_cast<T>(static_cast<Unsigned>(a.value) * static_cast<Unsigned>(b.value))};
    }
    friend bool operator<(Number a, Number b) { return a.value < b.value; }
};
template <float (*widen)(std::uint16_t), std::uint16_t (*narrow)(float)>
struct Short {
    std::uint16_t bits;
    friend Short operator+(Short a, Short b) { return {narrow(widen(a.bits) + widen(b.bits))}; }
    friend Short operator*(Short a, Short b) { return {narrow(widen(a.bits) * widen(b.bits))}; }
    friend bool operator<(Short a, Short b) { return widen(a.bits) < widen(b.bits); }
};

template <class T>
T combined(T a, T b, ncclRedOp_t op) {
    switch (op) {
        case ncclProd:
            return a * b;
        case ncclMax:
            return a < b ? b : a;
        case ncclMin:
            return b < a ? b : a;
        default:
            return a + b;
    }
}

// NCCL promises no order of summands. Each operation of the double starts with another rank.
template <class T>
void reduce_as(const std::map<int, Part>& parts, std::size_t first, std::size_t count, int turn, void* target) {
    const int ranks = static_cast<int>(parts.size());
    std::vector<T> sums(count);
    for (int i = 0; i < ranks; ++i) {
        const Part& part = parts.at((turn + i) % ranks);
        const auto* from = static_cast<const unsigned char*>(part.send) + first * sizeof(T);
        for (std::size_t k = 0; k < count; ++k) {
            T element;
            std::memcpy(&element, from + k * sizeof(T), sizeof(T));
            sums[k] = i == 0 ? element : combined(sums[k], element, part.op);
        }
    }
    std::memcpy(target, sums.data(), count * sizeof(T));
}

void run_collective(Operation& operation) {
    ncclComm& own = *operation.communicator;
    const long number = own.collectives++;  // ranks differ in their numbers of messages, not of collectives
    Clique& clique = *own.clique;
    std::unique_lock lock(clique.mutex);
    auto& parts = clique.parts[number];
    parts[own.rank] = operation.part;
    clique.changed.notify_all();
    const auto all_here = [&] { return static_cast<int>(parts.size()) == clique.ranks; };
    if (!wait(lock, own, "a collective waits for ranks that never issued it", all_here)) return;
    for (const auto& [rank, part] : parts) {
        if (!part.agrees(parts.begin()->second)) spoil(clique, "ranks disagree on a collective");
    }
    if (!clique.wrong.empty()) return;
    const std::size_t bytes = operation.part.count * bytes_of(operation.part.type);
    const auto ranks = static_cast<std::size_t>(clique.ranks);
    const auto me = static_cast<std::size_t>(own.rank);
    const auto turn = static_cast<int>(number % clique.ranks);
    std::vector<unsigned char> result;  // a separate buffer, so that operations in place work
    switch (operation.part.call) {
        case Call::all_gather:
            result.resize(bytes * ranks);
            for (const auto& [rank, part] : parts) {
                std::memcpy(&result[bytes * static_cast<std::size_t>(rank)], part.send, bytes);
            }
            break;
        case Call::all_to_all:
            result.resize(bytes * ranks);
            for (const auto& [rank, part] : parts) {
                std::memcpy(&result[bytes * static_cast<std::size_t>(rank)],
                            static_cast<const unsigned char*>(part.send) + bytes * me, bytes);
            }
            break;
        case Call::reduce_scatter:
            result.resize(bytes);
            reduce(parts, operation.part.count * me, operation.part.count, turn, result.data());
            break;
        case Call::all_reduce:
            result.resize(bytes);
            reduce(parts, 0, operation.part.count, turn, result.data());
            break;
    }
    ++clique.read[number];
    clique.changed.notify_all();
    const auto all_read = [&] { return clique.read[number] >= clique.ranks; };
    if (!wait(lock, own, "a collective waits for its peers to read", all_read)) return;
    std::memcpy(operation.part.receive, result.data(), result.size());
    if (++clique.read[number] == 2 * clique.ranks) {
        clique.parts.erase(number);
        clique.read.erase(number);
    }
}

void run_messages(Operation& operation) {
    ncclComm& own = *operation.communicator;
    Clique& clique = *own.clique;
    std::unique_lock lock(clique.mutex);
    std::vector<std::shared_ptr<Offer>> offered;
    std::map<int, std::deque<const Message*>> wanted;  // by peer, in order
    for (const Message& message : operation.messages) {
        if (message.sends) {
            offered.push_back(std::make_shared<Offer>(Offer{message.from, message.bytes}));
            clique.offers[{own.rank, message.peer}].push_back(offered.back());
        } else {
            wanted[message.peer].push_back(&message);
        }
    }
    clique.changed.notify_all();
    std::vector<int> ready;
    while (!wanted.empty()) {  // peers in any order, but the messages of each peer in order
        const auto any_ready = [&] {
            ready.clear();
            for (const auto& [peer, messages] : wanted) {
                if (!clique.offers[{peer, own.rank}].empty()) ready.push_back(peer);
            }
            return !ready.empty();
        };
        if (!wait(lock, own, "a receive waits for a send that never came", any_ready)) return;
        const int peer = ready[gpu_double_draw(static_cast<unsigned>(ready.size()))];
        auto& queue = clique.offers[{peer, own.rank}];
        const Message& message = *wanted[peer].front();
        const auto offer = queue.front();
        queue.pop_front();
        wanted[peer].pop_front();
        if (wanted[peer].empty()) wanted.erase(peer);
        if (offer->bytes != message.bytes) {
            return spoil(clique, "rank " + std::to_string(peer) + " sends " + std::to_string(offer->bytes) +
                                     " bytes to rank " + std::to_string(own.rank) + ", which expects " +
                                     std::to_string(message.bytes));
        }
        std::memcpy(message.to, offer->from, message.bytes);
        offer->taken = true;
        clique.changed.notify_all();
    }
    const auto all_taken = [&] { return std::ranges::all_of(offered, [](const auto& offer) { return offer->taken; }); };
    wait(lock, own, "a send waits for a receive that never came", all_taken);
}

}  // namespace

void spoil(Clique& clique, const std::string& what) {
    if (clique.wrong.empty()) gpu_double_complain(what.c_str());
    if (clique.wrong.empty()) clique.wrong = what;
    clique.changed.notify_all();
}

int timeout_milliseconds() { return timeout; }

bool fails_now(int device) {
    const std::lock_guard lock(failures().mutex);
    const auto found = failures().after.find(device);
    if (found == failures().after.end()) return false;
    if (found->second-- > 0) return false;
    failures().after.erase(found);
    return true;
}

std::size_t bytes_of(ncclDataType_t type) {
    static constexpr std::size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return bytes[type];
}

void reduce(const std::map<int, Part>& parts, std::size_t first, std::size_t count, int turn, void* target) {
    using Half = Short<reshard::from_half, reshard::to_half>;
    using BFloat16 = Short<reshard::from_bfloat16, reshard::to_bfloat16>;
    switch (parts.begin()->second.type) {
        case ncclInt8:
            return reduce_as<Number<std::int8_t, std::uint8_t>>(parts, first, count, turn, target);
        case ncclUint8:
            return reduce_as<Number<std::uint8_t>>(parts, first, count, turn, target);
        case ncclInt32:
            return reduce_as<Number<std::int32_t, std::uint32_t>>(parts, first, count, turn, target);
        case ncclUint32:
            return reduce_as<Number<std::uint32_t>>(parts, first, count, turn, target);
        case ncclInt64:
            return reduce_as<Number<std::int64_t, std::uint64_t>>(parts, first, count, turn, target);
        case ncclUint64:
            return reduce_as<Number<std::uint64_t>>(parts, first, count, turn, target);
        case ncclFloat16:
            return reduce_as<Half>(parts, first, count, turn, target);
        case ncclBfloat16:
            return reduce_as<BFloat16>(parts, first, count, turn, target);
        case ncclFloat32:
            return reduce_as<Number<float>>(parts, first, count, turn, target);
        case ncclFloat64:
            return reduce_as<Number<double>>(parts, first, count, turn, target);
        default:
            gpu_double_complain("a reduction of a type that is not in the double");
            std::abort();
    }
}

// Operations of one communicator run one after another in the order of issue, whatever their streams.
void run(Operation& operation) {
    ncclComm& own = *operation.communicator;
    long number = operation.number;
    {
        std::unique_lock lock(own.clique->mutex);
        if (number < 0) number = own.issued++;
        wait(lock, own, "an operation waits for an earlier one", [&] { return own.begun == number; });
    }
    if (!own.aborted && fails_now(own.device)) {
        own.failure = ncclSystemError;
        std::unique_lock lock(own.clique->mutex);
        own.clique->changed.wait(lock, [&] { return own.aborted.load(); });
    }
    if (!own.aborted) {
        if (operation.collective) {
            run_collective(operation);
        } else {
            run_messages(operation);
        }
    }
    const std::lock_guard lock(own.clique->mutex);
    own.begun = number + 1;
    --own.open;
    own.clique->changed.notify_all();
}

}  // namespace nccl_double

extern "C" {
void nccl_double_fail(int device, int operations) {
    using namespace nccl_double;
    const std::lock_guard lock(failures().mutex);
    if (operations < 0) {
        failures().after.erase(device);
    } else {
        failures().after[device] = operations;
    }
}
void nccl_double_set_timeout(int milliseconds) { nccl_double::timeout = milliseconds; }
}
