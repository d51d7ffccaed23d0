// Collective calls of MPI that are polled: a rank in one of them learns that a peer will not come, and can be
// interrupted.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "backends/mpi/base/handles.hpp"
#include "reshard/backends/run.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

/// Between two polls: does nothing during its `patience`, then yields for a moment, then sleeps for a tenth of
/// the time that it has waited, at most 200 us. Advances the runs of this thread that are in flight, since others may
/// come only when such a run goes on.
class Pace {
public:
    using Clock = std::chrono::steady_clock;

    explicit Pace(Clock::duration patience = Clock::duration::zero()) : patience_(patience) {}

    void rest();
    [[nodiscard]] bool is_long() const { return is_long_; }       ///< it sleeps
    [[nodiscard]] Clock::time_point now() const { return now_; }  ///< when it began to rest, or was made

private:
    Clock::duration patience_;
    Clock::time_point begun_ = Clock::now();
    Clock::time_point now_ = begun_;
    int polls_ = 0;
    bool is_long_ = false;
};

/// While one lives, the polled calls of its thread ask it between two polls whether they are to end before their time.
class Lookout : NonCopyable {
public:
    explicit Lookout(std::function<Result<void>()> look);
    ~Lookout();
    [[nodiscard]] static Result<void> look();  ///< of the last one; success without one

private:
    std::function<Result<void>()> look_;
    Lookout* before_;
};

/// Waits for a request. Errors: backend; then MPI may still use the memory that the request was begun with.
[[nodiscard]] Result<void> finished(MPI_Request request, std::string_view call);

/// Begins a call with begin(buffers, &request) and waits for its end. Returns the buffers; after an error they are
/// MPI's.
template <class Buffers, class Begin>
[[nodiscard]] Result<Buffers> polled(std::string_view call, Buffers buffers, const Begin& begin) {
    auto held = std::make_unique<Buffers>(std::move(buffers));
    MPI_Request request = MPI_REQUEST_NULL;
    RESHARD_CHECK(checked(begin(*held, &request), call));
    if (auto done = finished(request, call); !done) {
        static_cast<void>(held.release());
        return tl::unexpected(std::move(done).error());
    }
    return std::move(*held);
}

/// Collective: element by element over all ranks.
template <class Values>
[[nodiscard]] Result<Values> reduced(MPI_Comm communicator, Values values, MPI_Datatype type, MPI_Op op) {
    return polled("MPI_Iallreduce", std::move(values), [&](Values& all, MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, all.data(), static_cast<int>(all.size()), type, op, communicator, request);
    });
}

/// Collective: the value of rank `root`, plain bytes.
template <class Value>
[[nodiscard]] Result<Value> broadcast(MPI_Comm communicator, const Value& own, int root) {
    return polled("MPI_Ibcast", own, [&](Value& value, MPI_Request* request) {
        return MPI_Ibcast(&value, sizeof value, MPI_BYTE, root, communicator, request);
    });
}

/// Collective: everyone's value, by rank; plain bytes.
template <class Value>
[[nodiscard]] Result<std::vector<Value>> gathered(MPI_Comm communicator, const Value& own) {
    using Both = std::pair<Value, std::vector<Value>>;
    Both both{own, std::vector<Value>(static_cast<std::size_t>(size_of_communicator(communicator)))};
    auto done = polled("MPI_Iallgather", std::move(both), [&](Both& buffers, MPI_Request* request) {
        auto& [mine, all] = buffers;
        return MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, communicator, request);
    });
    return std::move(done).map([](Both&& buffers) { return std::move(buffers.second); });
}

/// Collective: what each rank has for this one, by rank. `values`: what this one has for each; plain bytes.
template <class Value>
[[nodiscard]] Result<std::vector<Value>> exchanged(MPI_Comm communicator, std::vector<Value> values) {
    using Both = std::pair<std::vector<Value>, std::vector<Value>>;
    Both both{std::move(values), std::vector<Value>(static_cast<std::size_t>(size_of_communicator(communicator)))};
    auto done = polled("MPI_Ialltoall", std::move(both), [&](Both& buffers, MPI_Request* request) {
        auto& [to, from] = buffers;
        return MPI_Ialltoall(to.data(), sizeof(Value), MPI_BYTE, from.data(), sizeof(Value), MPI_BYTE, communicator,
                             request);
    });
    return std::move(done).map([](Both&& buffers) { return std::move(buffers.second); });
}

}  // namespace reshard::mpi
