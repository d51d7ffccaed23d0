// Plays a program on a rank: tasks write values that every rank knows, and check all that they read, byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <map>

#include "conformance/array.hpp"
#include "reshard/program/run.hpp"
#include "reshard/program/schedule.hpp"
#include "support/random_bytes.hpp"

namespace reshard::conformance {

class Player {
public:
    Player(const ScheduleSynthesis& made, Backend& backend)
        : made_(made), rank_(backend.rank()), runner_(ProgramRunner::prepare(made, laptop(), backend)) {
        std::uint64_t salt = 1;
        for (const ProgramArray& array : made.program().arrays) note(array, salt++);
        for (const Task& task : made.program().tasks)
            for (const ProgramArray& array : task.makes) note(array, salt++);
    }

    [[nodiscard]] ProgramRunner& runner() { return *runner_; }
    [[nodiscard]] const Error& error() const { return runner_.error(); }
    [[nodiscard]] bool prepared() const { return runner_.has_value(); }

    /// Writes what is there from the beginning, and starts.
    Result<std::unique_ptr<Ticket>> start() {
        for (const ProgramArray& array : made_.program().arrays) {
            auto tile = runner_->tile(array.name);
            if (!tile && tile.error().code == Code::usage) {  // the tiles that the last run kept leave no room
                runner_->free_kept();
                tile = runner_->tile(array.name);
            }
            if (!tile) return tl::unexpected(tile.error());
            write(array.name, *tile);
        }
        return runner_->start([this](const TaskRun& run) { return compute(run); });
    }

    /// After a run: all tasks of this rank ran, kept arrays are right, and the limit was kept.
    void expect_right() {
        std::size_t tasks = 0;
        for (const Task& task : made_.program().tasks) {
            tasks += position_of(task.mesh, rank_) ? 1 : 0;
            for (const ProgramArray& array : task.makes)
                if (array.kept) expect_values(array.name, array.layout, runner_->tile(array.name)->bytes);
        }
        EXPECT_EQ(ran_, tasks) << "rank " << rank_;
        EXPECT_LE(runner_->most_bytes(), limit()) << "rank " << rank_;
        ran_ = 0;
    }
    /// How often `compute` was called, in all runs.
    [[nodiscard]] std::size_t calls() const { return calls_; }
    /// True if this rank has held all that it may.
    [[nodiscard]] bool is_full() const { return runner_->most_bytes() == limit(); }

    /// Is called in each task, before it writes; an error ends the run.
    std::function<Result<void>(const TaskRun&)> in_task = [](const TaskRun& run) { return run.progress(); };

private:
    [[nodiscard]] Index limit() const {
        Index least = index_max;
        for (const ProgramLimit& one : made_.program().limits)
            if (position_of(one.mesh, rank_)) least = std::min(least, one.bytes);
        return least;
    }
    struct Known {
        Layout layout;
        std::uint64_t salt = 0;
    };
    void note(const ProgramArray& array, std::uint64_t salt) { known_[array.name] = {array.layout, salt}; }

    [[nodiscard]] std::vector<std::byte> values(const std::string& array, const Layout& layout) const {
        if (!position_of(layout.mesh, rank_) || tile_count(layout, rank_) == 0) return {};
        const Known& known = known_.at(array);
        return image_of(layout, known.layout, rank_, Style::row_major, known.salt, std::nullopt).bytes;
    }
    void write(const std::string& array, const Elements& tile) const {
        const auto bytes = values(array, known_.at(array).layout);
        ASSERT_EQ(tile.bytes.size(), bytes.size()) << array;
        std::ranges::copy(bytes, tile.bytes.begin());
    }
    void expect_values(const std::string& array, const Layout& layout, std::span<const std::byte> tile) const {
        const auto bytes = values(array, layout);
        EXPECT_TRUE(test::same_bytes(tile, bytes)) << array << " on rank " << rank_;
    }
    // Compares the part of a tile that has arrived. `tile` is dense.
    void expect_part(const ProgramUse& use, const TaskPiece& piece, std::span<const std::byte> tile) {
        const auto bytes = values(use.array, use.layout);
        ASSERT_EQ(tile.size(), bytes.size());
        if (bytes.empty()) return;
        std::size_t inner = static_cast<std::size_t>(size_of(use.layout.dtype));
        for (std::size_t d = use.layout.dims.size(); --d > piece.dim;)
            inner *= static_cast<std::size_t>(reshard::tile(use.layout, rank_)[d].size());
        const auto side = static_cast<std::size_t>(reshard::tile(use.layout, rank_)[piece.dim].size());
        for (std::size_t row = 0; row < tile.size() / inner; ++row) {
            const auto index = static_cast<Index>(row % side);
            const auto has = [&](const Interval& one) { return one.begin <= index && index < one.end; };
            if (std::ranges::none_of(piece.part, has)) continue;
            ++rows_;
            EXPECT_TRUE(
                test::same_bytes(tile.subspan(row * inner, inner), std::span(bytes).subspan(row * inner, inner)))
                << use.array << " row " << row << " in piece " << piece.place << " on rank " << rank_;
        }
        if (piece.place + 1 < piece.count) return;
        EXPECT_EQ(rows_, tile.size() / inner) << "the pieces are the whole tile";
        rows_ = 0;
    }
    Result<void> compute(const TaskRun& run) {
        ++calls_;
        const bool last = !run.piece || run.piece->place + 1 == run.piece->count;
        ran_ += last ? 1 : 0;
        if (run.piece) expect_part(run.task.uses[run.piece->use], *run.piece, run.uses[run.piece->use].bytes);
        const auto read = [&] {
            for (std::size_t u = 0; u < run.uses.size(); ++u)
                if (last || u != run.piece->use)
                    expect_values(run.task.uses[u].array, run.task.uses[u].layout, run.uses[u].bytes);
        };
        read();
        auto told = in_task(run);
        if (!told) return told;
        read();  // nothing else wrote there meanwhile
        if (!last) return told;
        for (std::size_t m = 0; m < run.makes.size(); ++m) write(run.task.makes[m].name, run.makes[m]);
        told = run.progress();
        for (std::size_t m = 0; m < run.makes.size(); ++m)
            expect_values(run.task.makes[m].name, run.task.makes[m].layout, run.makes[m].bytes);
        return told;
    }

    const ScheduleSynthesis& made_;
    Index rank_;
    std::map<std::string, Known> known_;
    Result<ProgramRunner> runner_;
    std::size_t ran_ = 0;
    std::size_t calls_ = 0;
    std::size_t rows_ = 0;  // of the tile that comes in pieces, compared so far
};

}  // namespace reshard::conformance
