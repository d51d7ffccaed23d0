// What is prepared for a context, and hangs on its communicator as an attribute: it goes with blacs_gridexit.
#pragma once

#include <list>

#include "bindings/scalapack/submatrix.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"

namespace reshard::scalapack {

/// One end of a move as this process has it. All 0 outside of its grid.
struct End {
    std::uint64_t grid = 0;  ///< which it is; never used twice
    Grid shape = {};
    Descriptor descriptor = {};
    std::array<int, 2> begin = {};  ///< from 0
    [[nodiscard]] bool inside() const { return grid != 0; }
};

/// What this process is asked for.
struct Question {
    DType dtype = DType::f64;
    std::array<int, 2> shape = {};  ///< rows and columns
    End source;
    End target;
};
[[nodiscard]] bool same(const Question& a, const Question& b);

/// Never the same for two grids of this process, also where BLACS uses the number of a context again.
[[nodiscard]] Result<std::uint64_t> number_of_grid(MPI_Comm communicator);

/// Executors of the 64 questions that were asked last on one context.
class Kept : NonCopyable {
public:
    static constexpr std::size_t executors_max = 64;

    /// Collective over the communicator, whose it is.
    [[nodiscard]] static Result<Kept*> of(MPI_Comm communicator);

    /// Collective: what moves it, prepared now or before. Errors: on all processes, whichever of them it is that asks
    /// for what cannot be.
    [[nodiscard]] Result<Executor*> find_or_prepare(const Question& question);

private:
    struct Entry {
        Question question;
        Index number;  // the same on all processes
        Executor executor;
    };
    Kept(MPI_Comm communicator, std::unique_ptr<Backend> backend)
        : communicator_(communicator), backend_(std::move(backend)) {}
    [[nodiscard]] Result<bool> all_know(const Entry* entry) const;
    [[nodiscard]] Result<Executor> prepare(const Question& question);

    MPI_Comm communicator_;  // BLACS's, which outlives its attributes
    std::unique_ptr<Backend> backend_;
    std::list<Entry> entries_;  // the one that was used last first
    Index numbers_ = 0;
};

}  // namespace reshard::scalapack
