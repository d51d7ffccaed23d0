#include "redistribution/contestants.hpp"

#include <fmt/format.h>
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/baseline/regions_type.hpp"
#include "src/copy/copy.hpp"

namespace reshard::bench {
namespace {

// One box to or from a peer.
struct Piece {
    int peer;
    Region region;
};

// Shared by the contestants written by hand: the boxes here for each peer; the own share is a copy.
class ByHand : public Contestant {
public:
    ByHand(const Case& one, Pair& own) : one_(one), pair_(own) {
        const RankStep& step = one.whole.steps.front();
        for (const Transfer& send : step.schedule.sends) {
            sends_.push_back({static_cast<int>(send.peer), region_of(step.from, send.box, 4)});
        }
        for (const Transfer& receive : step.schedule.receives) {
            const Piece piece{static_cast<int>(receive.peer), region_of(step.to, receive.box, 4)};
            if (piece.peer == world_rank()) {
                own_.emplace_back(region_of(step.from, receive.box, 4), piece.region);
                own_from_.push_back(region_of(step.from, receive.box, 4));
                own_to_.push_back(piece.region);
            } else {
                receives_.push_back(piece);
            }
        }
    }
    std::span<std::byte> source() override { return pair_.source.bytes(); }
    std::span<std::byte> target() override { return pair_.target.bytes(); }

protected:
    void copy_own() {
        for (const BoxCopy& copy : own_) copy.run(source().data(), target().data());
    }

    const Case& one_;
    Pair& pair_;
    std::vector<Piece> sends_;
    std::vector<Piece> receives_;
    std::vector<BoxCopy> own_;
    std::vector<Region> own_from_;
    std::vector<Region> own_to_;
};

// Packed boxes, one after another, by peer.
struct Packed {
    std::vector<int> counts;
    std::vector<int> starts;
    std::vector<BoxCopy> copies;  // from the tile, or into it
    Index bytes = 0;

    Packed(std::vector<Piece>& pieces, bool pack) : counts(static_cast<std::size_t>(world_size())), starts(counts) {
        std::ranges::stable_sort(pieces, {}, &Piece::peer);
        for (const Piece& piece : pieces) {
            const auto peer = static_cast<std::size_t>(piece.peer);
            if (counts[peer] == 0) starts[peer] = static_cast<int>(bytes);
            Region packed{bytes, 4, piece.region.extents, piece.region.extents};
            Index stride = 4;
            for (std::size_t k = packed.extents.size(); k-- > 0;) {
                packed.strides_bytes[k] = stride;
                stride *= packed.extents[k];
            }
            copies.push_back(pack ? BoxCopy(piece.region, packed) : BoxCopy(packed, piece.region));
            counts[peer] += static_cast<int>(stride);
            bytes += stride;
        }
    }
};

class PackAlltoallv final : public ByHand {
public:
    PackAlltoallv(const Case& one, Pair& own)
        : ByHand(one, own), out_(sends_, true), in_(receives_, false), packed_(out_.bytes), arrived_(in_.bytes) {}
    void run() override {
        for (const BoxCopy& copy : out_.copies) copy.run(source().data(), packed_.bytes().data());
        MPI_Alltoallv(packed_.bytes().data(), out_.counts.data(), out_.starts.data(), MPI_BYTE, arrived_.bytes().data(),
                      in_.counts.data(), in_.starts.data(), MPI_BYTE, MPI_COMM_WORLD);
        copy_own();
        for (const BoxCopy& copy : in_.copies) copy.run(arrived_.bytes().data(), target().data());
    }
    Index extra_bytes() const override { return out_.bytes + in_.bytes; }

private:
    Packed out_;
    Packed in_;
    Buffer packed_;
    Buffer arrived_;
};

// Each message is unpacked as it arrives.
class PackIsend final : public ByHand {
public:
    PackIsend(const Case& one, Pair& own)
        : ByHand(one, own), out_(sends_, true), in_(receives_, false), packed_(out_.bytes), arrived_(in_.bytes) {}
    void run() override {
        std::vector<MPI_Request> receives(receives_.size(), MPI_REQUEST_NULL);
        std::vector<MPI_Request> sends(sends_.size(), MPI_REQUEST_NULL);
        std::byte* arrived = arrived_.bytes().data();
        Index at = 0;
        for (std::size_t i = 0; i < receives_.size(); ++i) {
            const Index bytes = bytes_of(receives_[i].region);
            MPI_Irecv(arrived + at, static_cast<int>(bytes), MPI_BYTE, receives_[i].peer, 0, MPI_COMM_WORLD,
                      &receives[i]);
            at += bytes;
        }
        at = 0;
        for (std::size_t i = 0; i < sends_.size(); ++i) {
            const Index bytes = bytes_of(sends_[i].region);
            out_.copies[i].run(source().data(), packed_.bytes().data());
            MPI_Isend(packed_.bytes().data() + at, static_cast<int>(bytes), MPI_BYTE, sends_[i].peer, 0, MPI_COMM_WORLD,
                      &sends[i]);
            at += bytes;
        }
        copy_own();
        for (std::size_t done = 0; done < receives.size(); ++done) {
            int which = MPI_UNDEFINED;
            MPI_Waitany(static_cast<int>(receives.size()), receives.data(), &which, MPI_STATUS_IGNORE);
            in_.copies[static_cast<std::size_t>(which)].run(arrived, target().data());
        }
        MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
    }
    Index extra_bytes() const override { return out_.bytes + in_.bytes; }

private:
    Packed out_;
    Packed in_;
    Buffer packed_;
    Buffer arrived_;
};

class TypesIsend final : public ByHand {
public:
    TypesIsend(const Case& one, Pair& own) : ByHand(one, own) {
        for (const Piece& send : sends_) send_types_.push_back(require(mpi::regions_type({&send.region, 1})));
        for (const Piece& one_of : receives_) receive_types_.push_back(require(mpi::regions_type({&one_of.region, 1})));
    }
    void run() override {
        std::vector<MPI_Request> requests(receives_.size() + sends_.size(), MPI_REQUEST_NULL);
        for (std::size_t i = 0; i < receives_.size(); ++i) {
            MPI_Irecv(target().data(), 1, receive_types_[i].get(), receives_[i].peer, 0, MPI_COMM_WORLD, &requests[i]);
        }
        for (std::size_t i = 0; i < sends_.size(); ++i) {
            MPI_Isend(source().data(), 1, send_types_[i].get(), sends_[i].peer, 0, MPI_COMM_WORLD,
                      &requests[receives_.size() + i]);
        }
        copy_own();
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

private:
    std::vector<mpi::Datatype> send_types_;
    std::vector<mpi::Datatype> receive_types_;
};

// The same messages, set up once.
class TypesPersistent final : public ByHand {
public:
    TypesPersistent(const Case& one, Pair& own) : ByHand(one, own) {
        for (const Piece& piece : receives_) {
            types_.push_back(require(mpi::regions_type({&piece.region, 1})));
            MPI_Recv_init(target().data(), 1, types_.back().get(), piece.peer, 0, MPI_COMM_WORLD,
                          &requests_.emplace_back());
        }
        for (const Piece& piece : sends_) {
            types_.push_back(require(mpi::regions_type({&piece.region, 1})));
            MPI_Send_init(source().data(), 1, types_.back().get(), piece.peer, 0, MPI_COMM_WORLD,
                          &requests_.emplace_back());
        }
    }
    ~TypesPersistent() override {
        for (MPI_Request& request : requests_) MPI_Request_free(&request);
    }
    void run() override {
        const auto count = static_cast<int>(requests_.size());
        MPI_Startall(count, requests_.data());
        copy_own();
        MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE);
    }

private:
    std::vector<mpi::Datatype> types_;
    std::vector<MPI_Request> requests_;
};

// A neighbour for each box. Those of one pair of ranks match in their order.
class NeighbourAlltoallw final : public ByHand {
public:
    NeighbourAlltoallw(const Case& one, Pair& own) : ByHand(one, own), send_(sends_), receive_(receives_) {
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, receive_.count(), receive_.peers.data(), MPI_UNWEIGHTED,
                                       send_.count(), send_.peers.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
    }
    ~NeighbourAlltoallw() override { MPI_Comm_free(&graph_); }
    void run() override {
        MPI_Neighbor_alltoallw(source().data(), send_.ones.data(), send_.starts.data(), send_.types.data(),
                               target().data(), receive_.ones.data(), receive_.starts.data(), receive_.types.data(),
                               graph_);
        copy_own();
    }

private:
    struct Side {
        explicit Side(const std::vector<Piece>& pieces) : ones(pieces.size(), 1), starts(pieces.size()) {
            for (const Piece& piece : pieces) {
                peers.push_back(piece.peer);
                owned.push_back(require(mpi::regions_type({&piece.region, 1})));
                types.push_back(owned.back().get());
            }
        }
        [[nodiscard]] int count() const { return static_cast<int>(peers.size()); }
        std::vector<int> peers;
        std::vector<int> ones;
        std::vector<MPI_Aint> starts;
        std::vector<MPI_Datatype> types;
        std::vector<mpi::Datatype> owned;
    };
    Side send_;
    Side receive_;
    MPI_Comm graph_ = MPI_COMM_NULL;
};

class Alltoallw : public ByHand {
public:
    Alltoallw(const Case& one, Pair& own)
        : ByHand(one, own), send_(side(sends_, own_from_)), receive_(side(receives_, own_to_)) {}
    void run() override {
        MPI_Alltoallw(source().data(), send_.counts.data(), send_.starts.data(), send_.types.data(), target().data(),
                      receive_.counts.data(), receive_.starts.data(), receive_.types.data(), MPI_COMM_WORLD);
    }

private:
    struct Side {
        std::vector<int> counts;
        std::vector<int> starts;
        std::vector<MPI_Datatype> types;
        std::vector<mpi::Datatype> owned;
    };
    static Side side(const std::vector<Piece>& pieces, const std::vector<Region>& own) {
        const auto ranks = static_cast<std::size_t>(world_size());
        Side made{std::vector<int>(ranks), std::vector<int>(ranks), std::vector<MPI_Datatype>(ranks, MPI_BYTE), {}};
        std::vector<Piece> all = pieces;
        for (const Region& region : own) all.push_back({world_rank(), region});
        for (const Piece& piece : all) {
            const auto peer = static_cast<std::size_t>(piece.peer);
            made.owned.push_back(require(mpi::regions_type({&piece.region, 1})));
            made.counts[peer] = 1;
            made.types[peer] = made.owned.back().get();
        }
        return made;
    }

protected:
    Side send_;
    Side receive_;
};

#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
// Set up once, as MPI 4 has it.
class PersistentAlltoallw final : public Alltoallw {
public:
    PersistentAlltoallw(const Case& one, Pair& own) : Alltoallw(one, own) {
        MPIX_Alltoallw_init(source().data(), send_.counts.data(), send_.starts.data(), send_.types.data(),
                            target().data(), receive_.counts.data(), receive_.starts.data(), receive_.types.data(),
                            MPI_COMM_WORLD, MPI_INFO_NULL, &request_);
    }
    ~PersistentAlltoallw() override { MPI_Request_free(&request_); }
    void run() override {
        MPI_Start(&request_);
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
    }

private:
    MPI_Request request_ = MPI_REQUEST_NULL;
};
#endif

// Every rank gets every tile, and keeps the elements that it wants.
class GatherSlice final : public ByHand {
public:
    GatherSlice(const Case& one, Pair& own)
        : ByHand(one, own), counts_(static_cast<std::size_t>(world_size())), starts_(counts_) {
        const auto bytes = static_cast<int>(one.whole.source_bytes);
        MPI_Allgather(&bytes, 1, MPI_INT, counts_.data(), 1, MPI_INT, MPI_COMM_WORLD);
        Index all = 0;
        for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
            starts_[rank] = static_cast<int>(all / 64);
            all += ceil_divide(Index{counts_[rank]}, Index{64}) * 64;
        }
        gathered_ = std::make_unique<Buffer>(all);
        const RankStep& step = one.whole.steps.front();
        for (const Transfer& receive : step.schedule.receives) {
            const Tile theirs = tile(one.problem.source, receive.peer);
            const Slot slot{BufferId::source, Index{starts_[static_cast<std::size_t>(receive.peer)]} * 64, theirs,
                            row_major(theirs)};
            slices_.emplace_back(region_of(slot, receive.box, 4), region_of(step.to, receive.box, 4));
        }
        MPI_Type_contiguous(64, MPI_BYTE, &line_);
        MPI_Type_commit(&line_);
        for (int& count : counts_) count = (count + 63) / 64;
    }
    ~GatherSlice() override { MPI_Type_free(&line_); }
    void run() override {
        MPI_Allgatherv(source().data(), counts_[static_cast<std::size_t>(world_rank())], line_,
                       gathered_->bytes().data(), counts_.data(), starts_.data(), line_, MPI_COMM_WORLD);
        for (const BoxCopy& slice : slices_) slice.run(gathered_->bytes().data(), target().data());
    }
    Index extra_bytes() const override { return static_cast<Index>(gathered_->bytes().size()); }

private:
    std::vector<int> counts_;  // in lines: counts of bytes would leave an int
    std::vector<int> starts_;
    std::unique_ptr<Buffer> gathered_;
    std::vector<BoxCopy> slices_;
    MPI_Datatype line_ = MPI_DATATYPE_NULL;
};

// No move at all: every rank copies as many bytes as its target has, with the fastest kernel, out of as many others.
class Roofline final : public Contestant {
public:
    Roofline(const Case& one, Pair& own) : pair_(own), from_(one.whole.target_bytes) {
        store_ = store_for(one.whole.target_bytes * world_size());
    }
    std::span<std::byte> source() override { return pair_.source.bytes(); }
    std::span<std::byte> target() override { return pair_.target.bytes(); }
    void run() override {
        const auto bytes = static_cast<Index>(from_.bytes().size());
        const Rows rows{1, bytes, bytes, bytes};
        copy_kernels().rows[static_cast<std::size_t>(store_)](rows, from_.bytes().data(), target().data());
        store_fence();
    }

private:
    Pair& pair_;
    Buffer from_;
    Store store_;
};

}  // namespace

Buffer::Buffer(Index bytes)
    : size_(static_cast<std::size_t>(bytes)),
      start_(static_cast<std::byte*>(std::aligned_alloc(4096, (size_ + 8191) / 4096 * 4096))) {
    std::memset(start_.get(), 1, size_);
}

void Buffer::Free::operator()(std::byte* start) const { std::free(start); }

std::vector<Entry> contestants(const Case& one, Backend& backend, const mpi::Options& options, Pair& own) {
    std::vector<Entry> all;
    all.push_back({"roofline", Kind::roofline, std::make_unique<Roofline>(one, own)});
    for (Entry& plan : plans(one, backend, options, own)) all.push_back(std::move(plan));
    all.push_back({"MPI_Alltoallw", Kind::mpi, std::make_unique<Alltoallw>(one, own)});
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
    all.push_back({"MPIX_Alltoallw_init", Kind::mpi, std::make_unique<PersistentAlltoallw>(one, own)});
#endif
    all.push_back({"MPI_Neighbor_alltoallw", Kind::mpi, std::make_unique<NeighbourAlltoallw>(one, own)});
    all.push_back({"isend/irecv of datatypes", Kind::mpi, std::make_unique<TypesIsend>(one, own)});
    all.push_back({"persistent datatypes", Kind::mpi, std::make_unique<TypesPersistent>(one, own)});
    all.push_back({"pack, isend/irecv", Kind::mpi, std::make_unique<PackIsend>(one, own)});
    all.push_back({"pack, MPI_Alltoallv", Kind::mpi, std::make_unique<PackAlltoallv>(one, own)});
    all.push_back({"gather, then slice", Kind::mpi, std::make_unique<GatherSlice>(one, own)});
    return all;
}

}  // namespace reshard::bench
