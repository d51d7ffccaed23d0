// Common parts of the two MPI backends: a communicator of their own, and how ranks agree.
#pragma once

#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/base/handles.hpp"
#include "backends/mpi/base/roll.hpp"
#include "backends/mpi/shm/arena.hpp"
#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

class Base : public Backend {
public:
    Base(Communicator communicator, bool shared_memory)
        : communicator_(std::move(communicator)),
          arena_(std::make_shared<Arena>(shared_memory, rank_of(communicator_.get()))),
          owns_arena_(true),
          rank_(rank_of(communicator_.get())),
          size_(size_of_communicator(communicator_.get())) {}
    /// A group of another backend, whose memory it shares.
    Base(Communicator communicator, std::shared_ptr<Arena> arena)
        : communicator_(std::move(communicator)),
          arena_(std::move(arena)),
          rank_(rank_of(communicator_.get())),
          size_(size_of_communicator(communicator_.get())) {}
    ~Base() override {
        if (owns_arena_) arena_->close();
    }

    [[nodiscard]] Index rank() const override { return rank_; }
    [[nodiscard]] Index size() const override { return size_; }
    /// Collective, before anything else.
    Result<void> open(std::chrono::milliseconds timeout);
    Result<void> agree(const Result<std::uint64_t>& own) override { return roll_->meet(Call::agree, own); }
    Result<std::unique_ptr<Memory>> allocate(Index bytes) override { return arena_->take(bytes); }
    [[nodiscard]] MemoryUse memory_use() const override { return arena_->use(); }

protected:
    [[nodiscard]] MPI_Comm communicator() const { return communicator_.get(); }
    [[nodiscard]] const std::shared_ptr<Arena>& arena() const { return arena_; }
    [[nodiscard]] Roll& roll() const { return *roll_; }
    void meet_at(std::unique_ptr<Board> board) { roll_->meet_at(std::move(board)); }
    /// Collective. All ranks have come to prepare.
    Result<void> meet_to_prepare() { return roll_->meet(Call::prepare, 1); }
    /// Why they will not all come to its end.
    Result<void> trouble() { return roll_->trouble(); }

private:
    Communicator communicator_;
    std::unique_ptr<Roll> roll_;
    std::shared_ptr<Arena> arena_;
    bool owns_arena_ = false;
    Index rank_;
    Index size_;
};

/// Collective. Duplicates the communicator of a caller, if MPI is running and every rank comes in time and is well.
[[nodiscard]] Result<Communicator> borrow(MPI_Comm communicator, const Result<void>& own, std::string_view call,
                                          std::chrono::milliseconds timeout);

}  // namespace reshard::mpi
