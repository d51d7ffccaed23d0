// MPI's own ways to make columns of rows: each rank has side / ranks rows of a square of doubles, and wants as many
// columns. All use the same datatypes of each pair of ranks, made once.
#pragma once

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>  // persistent collectives, before MPI 4
#endif

#include <cstddef>
#include <vector>

namespace reshard {

/// The pairs of ranks, and the types of their parts.
class Pairs {
public:
    Pairs(int ranks, int side) : counts_(static_cast<std::size_t>(ranks), 1) {
        const int width = side / ranks;
        for (int peer = 0; peer < ranks; ++peer) {
            MPI_Datatype type = MPI_DATATYPE_NULL;
            MPI_Type_vector(width, width, side, MPI_DOUBLE, &type);
            MPI_Type_commit(&type);
            send_types_.push_back(type);
            sends_.push_back(peer * width * static_cast<int>(sizeof(double)));
            MPI_Type_contiguous(width * width, MPI_DOUBLE, &type);
            MPI_Type_commit(&type);
            receive_types_.push_back(type);
            receives_.push_back(peer * width * width * static_cast<int>(sizeof(double)));
        }
    }
    Pairs(const Pairs&) = delete;
    Pairs& operator=(const Pairs&) = delete;
    ~Pairs() {
        for (auto* types : {&send_types_, &receive_types_})
            for (MPI_Datatype& type : *types) MPI_Type_free(&type);
    }

    void alltoallw(const double* in, double* out) const {
        MPI_Alltoallw(in, counts_.data(), sends_.data(), send_types_.data(), out, counts_.data(), receives_.data(),
                      receive_types_.data(), MPI_COMM_WORLD);
    }
    /// `neighbours`: a graph of all ranks with each other, in their order.
    void neighbours(MPI_Comm neighbours, const double* in, double* out) const {
        const std::vector<MPI_Aint> sends(sends_.begin(), sends_.end());
        const std::vector<MPI_Aint> receives(receives_.begin(), receives_.end());
        MPI_Neighbor_alltoallw(in, counts_.data(), sends.data(), send_types_.data(), out, counts_.data(),
                               receives.data(), receive_types_.data(), neighbours);
    }
    /// Persistent requests between all ranks, this one too.
    [[nodiscard]] std::vector<MPI_Request> persistent(const double* in, double* out) const {
        std::vector<MPI_Request> requests;
        for (std::size_t peer = 0; peer < counts_.size(); ++peer) {
            const auto number = static_cast<int>(peer);
            MPI_Recv_init(reinterpret_cast<std::byte*>(out) + receives_[peer], 1, receive_types_[peer], number, 0,
                          MPI_COMM_WORLD, &requests.emplace_back());
            MPI_Send_init(reinterpret_cast<const std::byte*>(in) + sends_[peer], 1, send_types_[peer], number, 0,
                          MPI_COMM_WORLD, &requests.emplace_back());
        }
        return requests;
    }
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
    [[nodiscard]] MPI_Request persistent_alltoallw(const double* in, double* out) const {
        MPI_Request request = MPI_REQUEST_NULL;
        MPIX_Alltoallw_init(in, counts_.data(), sends_.data(), send_types_.data(), out, counts_.data(),
                            receives_.data(), receive_types_.data(), MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        return request;
    }
#endif

private:
    std::vector<int> counts_;
    std::vector<int> sends_;
    std::vector<int> receives_;
    std::vector<MPI_Datatype> send_types_;
    std::vector<MPI_Datatype> receive_types_;
};

/// Neighbours of MPI_Neighbor_alltoallw: all ranks.
class Neighbours {
public:
    Neighbours() {
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        std::vector<int> all;
        for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ranks, all.data(), MPI_UNWEIGHTED, ranks, all.data(),
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
    }
    Neighbours(const Neighbours&) = delete;
    Neighbours& operator=(const Neighbours&) = delete;
    ~Neighbours() { MPI_Comm_free(&graph_); }
    [[nodiscard]] MPI_Comm get() const { return graph_; }

private:
    MPI_Comm graph_ = MPI_COMM_NULL;
};

}  // namespace reshard
