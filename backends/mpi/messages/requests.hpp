// MPI's requests of one stage, each with what it is for.
#pragma once

#include "backends/mpi/messages/run_state.hpp"

namespace reshard::mpi {

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
    /// The same at a new place.
    template <class Start>
    bool add(const Pending& pending, const Start& start) {
        requests_.push_back(MPI_REQUEST_NULL);
        pending_.emplace_back();
        return post(requests_.size() - 1, pending, start);
    }

    struct Ended {
        std::size_t place;
        bool well;  ///< what failed is noted
    };
    /// Those that ended since; none when no request did, or none is open.
    const std::vector<Ended>& test();
    [[nodiscard]] bool all_ended() const { return open_ == 0; }
    /// Tests until nothing more has ended. True when all has.
    bool advance();

    /// The ranks that open ones wait for.
    void add_peers(std::set<int>& peers) const;

    /// What was posted cannot be taken back from peers that do not answer: receives are cancelled, the rest is left to
    /// MPI, with what it may still use.
    void give_up(std::string_view why, const std::shared_ptr<const void>& kept);

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
