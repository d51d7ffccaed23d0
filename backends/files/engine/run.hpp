// Batches carried out: read once in the order of the source files, put in place in memory, written in the order of the
// target files.
#pragma once

#include "backends/files/engine/geometry.hpp"
#include "backends/files/engine/memory.hpp"
#include "backends/files/engine/open_files.hpp"

namespace reshard::files {

/// What a job does with its memory.
struct MemoryShares {
    Index stretch_bytes = 0;  ///< read at once, by each worker
    Index batch_bytes = 0;    ///< of the target
};

class Runner {
public:
    /// `folder`: where the target files are, all of their full size. Errors: infeasible.
    [[nodiscard]] static Result<Runner> make(const Job& job, const MemoryShares& shares, const std::string& folder);

    /// Errors: io.
    [[nodiscard]] Result<void> run(const Geometry& geometry);

    /// The raw checksum of each of the job's summed bytes, of what has been written so far.
    std::vector<std::uint32_t> sums;

private:
    Runner(const Job& job, const MemoryShares& shares, const std::string& folder, Pages batch, Pages stretches);
    [[nodiscard]] Result<void> read(const Geometry& geometry);
    [[nodiscard]] Result<void> write(const Geometry& geometry);
    [[nodiscard]] Result<void> put(Index file, Index begin, Index end, Index memory);
    void sum(Index file, Index begin, std::span<const std::byte> bytes);

    const Job* job_;
    Index stretch_bytes_;
    Pages batch_;
    Pages stretches_;
    std::unique_ptr<OpenFiles> sources_;
    std::unique_ptr<OpenFiles> targets_;
    std::unique_ptr<std::mutex> mutex_;  // of sums
};

/// Reads all summed bytes of the files in the folder again. Errors: io (other bytes than were written).
[[nodiscard]] Result<void> read_again(const Job& job, const std::string& folder, std::span<const std::uint32_t> sums,
                                      Index stretch_bytes);

}  // namespace reshard::files
