#include "backends/mpi/messages/requests.hpp"

#include <sched.h>

#include <mutex>

namespace reshard::mpi {
namespace {

// A request that nobody waits for any more and that MPI cannot take back.
struct Abandoned {
    MPI_Request request;
    std::shared_ptr<const void> kept;
};

// The abandoned requests of this process. Never freed: MPI may use them as long as it runs.
struct All {
    std::mutex mutex;
    std::vector<Abandoned> requests;
};

All& all() {
    static auto* const only = new All;
    return *only;
}

bool is_over(MPI_Request& request) {
    int over = 0;
    return MPI_Test(&request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && over != 0;
}

// Leaves a request to MPI, and keeps the memory that it may use until it is done: for ever, if a rank never comes.
void abandon(MPI_Request request, std::shared_ptr<const void> kept) {
    std::vector<Abandoned> done;  // freed after the mutex is released
    const std::lock_guard lock(all().mutex);
    std::vector<Abandoned>& requests = all().requests;
    requests.push_back({request, std::move(kept)});
    std::erase_if(requests, [&](Abandoned& one) {
        if (!is_over(one.request)) return false;
        done.push_back(std::move(one));
        return true;
    });
}

}  // namespace

void GivenUp::add(RunState& state, MPI_Request& request, const Pending& pending,
                  const std::shared_ptr<const void>& kept) {
    if (request == MPI_REQUEST_NULL || is_over(request)) return;
    state.note(pending, why);
    const bool sends = pending.doing != Pending::receiving;
    if (!sends) {
        MPI_Cancel(&request);
        if (is_over(request)) return;
    }
    if (pending.in_place)
        under_way.push_back({request, pending.peer, sends});
    else
        abandon(request, kept);
    request = MPI_REQUEST_NULL;
}

void GivenUp::settle(const Standing& standing) {
    constexpr auto longest = std::chrono::seconds(1);
    const auto until = std::chrono::steady_clock::now() + longest;
    const auto is_settled = [&](UnderWay& one) {
        const bool left = one.sends && standing.trouble({one.peer}).has_value();  // asked before the request is tested
        if (is_over(one.request)) return true;
        if (left) abandon(one.request, nullptr);
        return left;
    };
    while (std::erase_if(under_way, is_settled), !under_way.empty()) {
        if (std::chrono::steady_clock::now() > until) break;
        sched_yield();
    }
    for (const UnderWay& one : under_way) abandon(one.request, nullptr);
}

int begin_send(const void* from, int count, MPI_Datatype type, Index bytes, int peer, int tag, MPI_Comm communicator,
               MPI_Request* request) {
    constexpr Index answered_from = Index{1} << 14;  // for a shorter one the answer takes as long as the message
    const auto send = bytes >= answered_from ? MPI_Issend : MPI_Isend;
    return send(from, count, type, peer, tag, communicator, request);
}

void Requests::restart(std::size_t places) {
    requests_.assign(places, MPI_REQUEST_NULL);
    pending_.assign(places, Pending{});
    open_ = 0;
}

const std::vector<Requests::Ended>& Requests::test() {
    ended_.clear();
    if (open_ == 0) return ended_;
    completed_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(), statuses_.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
        state_.note({"waiting for messages"}, text_of(code));
        restart(requests_.size());
        return ended_;
    }
    if (count == MPI_UNDEFINED) open_ = 0;
    for (int i = 0; i < count; ++i) {
        const auto place = static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]);
        const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
        requests_[place] = MPI_REQUEST_NULL;
        --open_;
        // MPI sets the error of a status only when one of them failed.
        const int error = code == MPI_SUCCESS ? MPI_SUCCESS : status.MPI_ERROR;
        const bool well = state_.note_code(pending_[place], error) && state_.counted(pending_[place], status);
        ended_.push_back({place, well});
    }
    state_.happened(static_cast<Index>(ended_.size()));
    return ended_;
}

void Requests::add_peers(std::set<int>& peers) const {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (requests_[i] != MPI_REQUEST_NULL) state_.add_peers(pending_[i], peers);
    }
}

void Requests::abandon(GivenUp& run, const std::shared_ptr<const void>& kept) {
    for (std::size_t i = 0; i < requests_.size(); ++i) run.add(state_, requests_[i], pending_[i], kept);
    restart(0);
}

}  // namespace reshard::mpi
