#include "backends/nccl/base/base.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/common/fingerprints.hpp"
#include "backends/nccl/base/features.hpp"
#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {
namespace {

constexpr Index votes_at_once = 8192;
constexpr std::size_t words_max = 512;  // bytes of an error text that other ranks receive

// A newer library runs code compiled for an older one, but not the reverse.
Result<void> require_version() {
    int version = 0;
    RESHARD_CHECK(checked(ncclGetVersion(&version), "ncclGetVersion"));
    if (version / 100 >= RESHARD_NCCL_VERSION / 100) return {};
    return fail(Code::unsupported,
                fmt::format("this was compiled for NCCL {}, the library here is {}", RESHARD_NCCL_VERSION, version));
}

}  // namespace

Result<std::unique_ptr<Base>> Base::make(ncclComm_t callers, const Options& options, const Result<void>& own) {
    if (callers == nullptr) RESHARD_CHECK(own);
    if (callers == nullptr) return fail(Code::backend, "there is no backend without a communicator");
    std::unique_ptr<Base> made(new Base());
    made->options_ = options;
    RESHARD_CHECK(made->set_up(callers, own.and_then(require_version)));
    return made;
}

Result<void> Base::take_stream() {
    if (options_.stream == nullptr) {
        RESHARD_ASSIGN(own_stream_, Stream::make());
        options_.stream = own_stream_->get();
    }
    RESHARD_ASSIGN(votes_, StreamMemory::make(votes_at_once * Index{sizeof(std::uint64_t)}, stream()));
    return {};
}

// A rank that cannot go on joins no communicator that is split off, and so the others learn of it.
Result<void> Base::set_up(ncclComm_t callers, const Result<void>& own) {
    int rank = 0;
    int size = 0;
    RESHARD_CHECK(checked(ncclCommUserRank(callers, &rank), "ncclCommUserRank"));
    RESHARD_CHECK(checked(ncclCommCount(callers, &size), "ncclCommCount"));
    RESHARD_CHECK(checked(ncclCommCuDevice(callers, &device_), "ncclCommCuDevice"));
    rank_ = rank;
    size_ = size;
    const OnDevice current(device_);
    const Result<void> ready = own.and_then([&] { return take_stream(); });
    const auto split = [&] { return Communicator::split(callers, ready ? 0 : NCCL_SPLIT_NOCOLOR, rank, options_); };
    auto world = counting(split);
    RESHARD_CHECK(ready);
    RESHARD_ASSIGN(world_, std::move(world));
    RESHARD_CHECK(checked(ncclCommCount(world_->get(), &size), "ncclCommCount"));
    if (size != size_) return fail(Code::backend, "another rank failed in nccl::make_backend");
    std::uint64_t nothing = 0;
    return counting([&] { return vote(std::span(&nothing, 1), ncclMin); });  // connects
}

Base::~Base() {
    const OnDevice current(device_);
    groups_.clear();
    world_.reset();
    votes_ = {};
}

Index Base::free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<Index>(free) : 0;
}

Result<void> Base::vote(std::span<std::uint64_t> values, ncclRedOp_t op) {
    RESHARD_CHECK(usable());
    void* const there = votes_.get();
    const auto once = [&](std::span<std::uint64_t> part) -> Result<void> {
        const std::size_t bytes = part.size_bytes();
        const auto reduce = [&]() -> Result<void> {
            const cudaError_t up = cudaMemcpyAsync(there, part.data(), bytes, cudaMemcpyHostToDevice, stream());
            RESHARD_CHECK(checked(up, "cudaMemcpyAsync"));
            const ncclResult_t reduced =
                ncclAllReduce(there, there, part.size(), ncclUint64, op, world_->get(), stream());
            RESHARD_CHECK(checked(reduced, "ncclAllReduce"));
            return settle(world_->get(), options_.timeout);
        };
        if (auto done = reduce(); !done) {
            abort(done.error());
            return done;
        }
        RESHARD_CHECK(await(stream()));
        // Only now: a copy to the program's memory may wait for everything before it. No copy may still write there
        // after the wait is given up.
        const cudaError_t down = cudaMemcpyAsync(part.data(), there, bytes, cudaMemcpyDeviceToHost, stream());
        RESHARD_CHECK(checked(down, "cudaMemcpyAsync"));
        return await(stream());
    };
    for (std::size_t begin = 0; begin < values.size(); begin += votes_at_once) {
        const std::size_t count = std::min<std::size_t>(votes_at_once, values.size() - begin);
        if (auto done = once(values.subspan(begin, count)); !done) {
            return fail(done.error().code, fmt::format("while ranks agree: {}", done.error().message));
        }
    }
    return {};
}

Result<void> Base::all_succeeded(const Result<void>& own) {
    std::uint64_t good = own ? 1 : 0;
    const Result<void> voted = vote(std::span(&good, 1), ncclMin);
    if (!voted) return own ? voted : own;
    return good == 0 ? first_failure(own) : Result<void>();
}

// The first rank that failed sends its text. All others add zeros.
Result<void> Base::first_failure(const Result<void>& own) {
    std::array<std::uint64_t, 1 + words_max / sizeof(std::uint64_t)> told{};
    const auto heard = gather(own ? 0 : 1);
    if (!heard) return own ? tl::unexpected(heard.error()) : own;
    const auto first = static_cast<std::size_t>(std::ranges::find(*heard, std::uint64_t{1}) - heard->begin());
    if (first == static_cast<std::size_t>(rank_)) {
        const std::string& words = own.error().message;
        told[0] = static_cast<std::uint64_t>(own.error().code);
        std::memcpy(&told[1], words.data(), std::min(words.size(), words_max));
    }
    const Result<void> voted = vote(told, ncclSum);
    if (!own) return own;
    RESHARD_CHECK(voted);
    const auto* const words = reinterpret_cast<const char*>(&told[1]);
    return tl::unexpected(
        failure_of(first, {static_cast<Code>(told[0]), std::string(words, ::strnlen(words, words_max))}));
}

Result<std::vector<std::uint64_t>> Base::gather(std::uint64_t own) {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size_), 0);
    all[static_cast<std::size_t>(rank_)] = own;
    RESHARD_CHECK(vote(all, ncclSum));
    return all;
}

Result<std::shared_ptr<Group>> Base::group(std::uint64_t partition, const std::vector<Index>& members) {
    RESHARD_CHECK(usable());
    if (const auto found = groups_.find(partition); found != groups_.end()) return found->second;
    // All ranks drop the same communicators: the ones that no plan holds any more. Plans are dropped in one order
    // everywhere.
    if (groups_.size() >= options_.communicators_max) {
        std::erase_if(groups_, [](const auto& one) { return one.second.use_count() == 1; });
    }
    if (groups_.size() >= options_.communicators_max) return nullptr;
    const auto place = std::ranges::find(members, rank_);
    const bool member = place != members.end();
    const int color = member ? static_cast<int>(*std::ranges::min_element(members)) : NCCL_SPLIT_NOCOLOR;
    const int key = static_cast<int>(place - members.begin());
    auto made = counting([&] { return Communicator::split(world_->get(), color, key, options_); });
    if (!made) {
        abort(made.error());
        return tl::unexpected(made.error());
    }
    return groups_.emplace(partition, std::make_shared<Group>(Group{std::move(*made)})).first->second;
}

Result<void> Base::await(cudaStream_t stream) {
    const Clock::time_point end = Clock::now() + options_.timeout;
    Backoff backoff;
    for (;;) {
        const cudaError_t state = cudaStreamQuery(stream);
        if (state == cudaSuccess) return {};
        Result<void> wrong = state == cudaErrorNotReady ? fault() : checked(state, "cudaStreamQuery");
        if (wrong && Clock::now() > end) {
            wrong = fail(Code::backend, fmt::format("no end within {} ms", options_.timeout.count()));
        }
        if (wrong && Interrupt::raised()) wrong = fail(Code::backend, Interrupt::words);
        if (!wrong) {
            abort(wrong.error());
            return wrong;
        }
        backoff.pause();
    }
}

Result<void> Base::fault() const {
    RESHARD_CHECK(usable());
    RESHARD_CHECK(fault_of(world_->get()));
    for (const auto& [partition, group] : groups_) {
        if (!group->communicator) continue;
        RESHARD_CHECK(fault_of(group->communicator->get()));
    }
    return {};
}

void Base::abort(const Error& why) {
    if (aborted_) return;
    aborted_ = why;
    for (auto& [partition, group] : groups_) {
        if (group->communicator) group->communicator->abort();
    }
    world_->abort();
}

Result<void> Base::usable() const {
    if (!aborted_) return {};
    return fail(Code::backend,
                fmt::format("the communicators were aborted, make the backend anew: {}", aborted_->message));
}

}  // namespace reshard::nccl
