// The MPI requests of one stage, each with its purpose.
#pragma once

#include "backends/mpi/messages/run_state.hpp"

namespace reshard::mpi {

/// A message that was given up but still reads or writes the caller's memory.
struct UnderWay {
    MPI_Request request;
    int peer;
    bool sends;
};

/// A run that gives up: the reason, and the messages that it leaves in flight.
struct GivenUp {
    std::string_view why;
    std::vector<UnderWay> under_way = {};

    /// Gives up one request. A receive is cancelled if no message has come for it. A request that MPI may still use is
    /// left to MPI with `kept`, which holds its memory. If it uses the caller's memory, it goes to `under_way`.
    void add(RunState& state, MPI_Request& request, const Pending& pending, const std::shared_ptr<const void>& kept);
    /// Ends the messages in `under_way`, so that the caller's memory may go. A message that has begun ends soon, since
    /// both of its ranks advance it, here or in a run. A message to a rank that has left the run never begins. If a
    /// rank neither answers nor leaves within a second, MPI keeps the message.
    void settle(const Standing& standing);
};

/// The messages that are in flight at once. Each peer gets a few, so that it gets its share of the link. The peers that
/// are left divide sends_shared among them, so the last ones get more: a rank that waits for a core answers late.
inline constexpr std::size_t sends_per_peer = 4;
inline constexpr std::size_t sends_shared = 16;

/// Calls MPI_Isend, or for longer messages MPI_Issend, which ends when the receiver has taken the message. MPI_Isend
/// ends when the transport has a copy, and sockets copy megabytes. Then we would not control the order of messages or
/// the number in flight, and peers would get unequal shares of a link.
[[nodiscard]] int begin_send(const void* from, int count, MPI_Datatype type, Index bytes, int peer, int tag,
                             MPI_Comm communicator, MPI_Request* request);

class Requests {
public:
    explicit Requests(RunState& state) : state_(state) {}

    /// Makes so many places, all free.
    void restart(std::size_t places);
    [[nodiscard]] bool is_free(std::size_t place) const { return requests_[place] == MPI_REQUEST_NULL; }

    /// `start` makes the request and returns MPI's code. Returns false if MPI refused; that is noted, and the place
    /// stays free.
    template <class Start>
    bool post(std::size_t place, const Pending& pending, const Start& start) {
        pending_[place] = pending;
        const bool posted = state_.note_code(pending, start(&requests_[place]));
        if (!posted) requests_[place] = MPI_REQUEST_NULL;
        if (requests_[place] != MPI_REQUEST_NULL) ++open_;
        return posted;
    }

    struct Ended {
        std::size_t place;
        bool well;  ///< false: the failure is noted
    };
    /// The requests that ended since the last call. Empty if no request ended or none is open.
    const std::vector<Ended>& test();
    [[nodiscard]] bool all_ended() const { return open_ == 0; }

    /// Adds the ranks that open requests wait for.
    void add_peers(std::set<int>& peers) const;

    void abandon(GivenUp& run, const std::shared_ptr<const void>& kept);

private:
    RunState& state_;
    std::vector<MPI_Request> requests_;
    std::vector<Pending> pending_;
    std::size_t open_ = 0;
    std::vector<int> completed_;
    std::vector<MPI_Status> statuses_;
    std::vector<Ended> ended_;
};

}  // namespace reshard::mpi
