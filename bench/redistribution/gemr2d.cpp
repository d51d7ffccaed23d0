#include "redistribution/gemr2d.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>

extern "C" {
void Cblacs_get(int, int, int*);
void Cblacs_gridinit(int*, const char*, int, int);
void Cblacs_gridmap(int*, int*, int, int, int);
void Cblacs_gridexit(int);
void psgemr2d_(const int*, const int*, float*, const int*, const int*, const int*, float*, const int*, const int*,
               const int*, const int*);
}

namespace reshard::bench {
namespace {

// A layout of a matrix as a grid of blocks, one a rank. Its tiles are row-major, so for ScaLAPACK, which counts columns
// first, it is the transposed matrix: its rows are our columns.
class Grid {
public:
    static std::unique_ptr<Grid> of(const Layout& layout) {
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        const std::vector<Index> extents = shape(layout);
        if (extents.size() != 2) return nullptr;
        std::unique_ptr<Grid> grid(new Grid);
        for (std::size_t k = 0; k < 2; ++k) {
            grid->extents_[k] = static_cast<int>(extents[k]);
            for (int rank = 0; rank < ranks; ++rank) {
                const Box box = as_box(tile(layout, rank));
                grid->blocks_[k] = std::max(grid->blocks_[k], static_cast<int>(box[k].size()));
            }
            grid->parts_[k] = static_cast<int>(ceil_divide(extents[k], Index{grid->blocks_[k]}));
        }
        if (grid->parts_[0] * grid->parts_[1] != ranks) return nullptr;  // it knows no replicas
        std::vector<int> places(static_cast<std::size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
            const Box box = as_box(tile(layout, rank));
            const auto at = [&](std::size_t k) { return static_cast<int>(box[k].begin) / grid->blocks_[k]; };
            places[static_cast<std::size_t>(at(1) + at(0) * grid->parts_[1])] = rank;
        }
        Cblacs_get(-1, 0, &grid->context_);
        Cblacs_gridmap(&grid->context_, places.data(), grid->parts_[1], grid->parts_[1], grid->parts_[0]);
        return grid;
    }
    ~Grid() {
        if (context_ >= 0) Cblacs_gridexit(context_);
    }
    Grid(const Grid&) = delete;
    Grid& operator=(const Grid&) = delete;

    [[nodiscard]] int rows() const { return extents_[1]; }
    [[nodiscard]] int columns() const { return extents_[0]; }
    /// The descriptor on a rank whose own tile has rows of so many elements.
    [[nodiscard]] std::array<int, 9> descriptor(Index row_elements) const {
        return {1,         context_,   rows(),
                columns(), blocks_[1], blocks_[0],
                0,         0,          static_cast<int>(std::max<Index>(row_elements, 1))};
    }

private:
    Grid() = default;
    std::array<int, 2> extents_ = {};
    std::array<int, 2> blocks_ = {1, 1};
    std::array<int, 2> parts_ = {};
    int context_ = -1;
};

class Gemr2d final : public Contestant {
public:
    Gemr2d(const Case& one, Pair& own, std::unique_ptr<Grid> from, std::unique_ptr<Grid> to)
        : pair_(own), from_(std::move(from)), to_(std::move(to)) {
        int rank = 0;
        int ranks = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        source_ = from_->descriptor(as_box(tile(one.problem.source, rank))[1].size());
        target_ = to_->descriptor(as_box(tile(one.problem.target, rank))[1].size());
        Cblacs_get(-1, 0, &all_);
        Cblacs_gridinit(&all_, "R", 1, ranks);
    }
    ~Gemr2d() override { Cblacs_gridexit(all_); }
    std::span<std::byte> source() override { return pair_.source.bytes(); }
    std::span<std::byte> target() override { return pair_.target.bytes(); }
    void run() override {
        const int rows = from_->rows();
        const int columns = from_->columns();
        constexpr int one = 1;
        psgemr2d_(&rows, &columns, reinterpret_cast<float*>(source().data()), &one, &one, source_.data(),
                  reinterpret_cast<float*>(target().data()), &one, &one, target_.data(), &all_);
    }

private:
    Pair& pair_;
    std::unique_ptr<Grid> from_;
    std::unique_ptr<Grid> to_;
    std::array<int, 9> source_ = {};
    std::array<int, 9> target_ = {};
    int all_ = -1;
};

}  // namespace

std::unique_ptr<Contestant> gemr2d(const Case& one, Pair& own) {
    if (one.question.turned) return nullptr;
    auto from = Grid::of(one.problem.source);
    auto to = Grid::of(one.problem.target);
    if (!from || !to) return nullptr;
    return std::make_unique<Gemr2d>(one, own, std::move(from), std::move(to));
}

}  // namespace reshard::bench
