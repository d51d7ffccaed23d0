// MPI's requests of one stage, each with its purpose.
#pragma once

#include "backends/mpi/messages/run_state.hpp"

namespace reshard::mpi {

/// A message that was given up and reads or writes the caller's memory.
struct UnderWay {
    MPI_Request request;
    int peer;
    bool sends;
};

/// The report of a run that gives up, and what it leaves to MPI.
struct GivenUp {
    std::string_view why;
    std::vector<UnderWay> under_way = {};

    /// Adds one request. Cancels a receive that no message has reached. If `kept` holds the memory that MPI may still
    /// use, MPI keeps both. Otherwise the request is under way.
    void add(RunState& state, MPI_Request& request, const Pending& pending, const std::shared_ptr<const void>& kept);
    /// Ends requests that are under way, so that the caller may free the memory. A message that has begun ends soon,
    /// since both of its ranks advance it, here or in a run. A message to a rank that has left the run never begins. A
    /// request is left to MPI if its rank neither answers nor leaves within a second.
    void settle(const Standing& standing);
};

/// Messages that are on their way at once: so many to each peer, few, so that each gets its part of the link; or what
/// the peers that are left share, which is more for the last ones, since a rank that waits for a core answers late.
inline constexpr std::size_t sends_per_peer = 4;
inline constexpr std::size_t sends_shared = 16;

/// MPI_Isend, and for longer messages MPI_Issend, which ends when the receiver has taken the message. MPI_Isend ends
/// when the transport has a copy, and sockets copy megabytes: neither the order of messages nor how many are on their
/// way would be ours, and peers get unequal parts of a link.
[[nodiscard]] int begin_send(const void* from, int count, MPI_Datatype type, Index bytes, int peer, int tag,
                             MPI_Comm communicator, MPI_Request* request);

class Requests {
public:
    explicit Requests(RunState& state) : state_(state) {}

    /// So many places, all free.
    void restart(std::size_t places);
    [[nodiscard]] bool is_free(std::size_t place) const { return requests_[place] == MPI_REQUEST_NULL; }

    /// `start` makes the request and returns MPI's code. False when MPI refused, which is noted; the place stays free.
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
        bool well;  ///< what failed is noted
    };
    /// Those that ended since; none when no request did, or none is open.
    const std::vector<Ended>& test();
    [[nodiscard]] bool all_ended() const { return open_ == 0; }

    /// The ranks that open ones wait for.
    void add_peers(std::set<int>& peers) const;

    void give_up(GivenUp& run, const std::shared_ptr<const void>& kept);

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
