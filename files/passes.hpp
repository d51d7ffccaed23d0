// Two passes through an intermediate array, for memory that is too small for one. This is external transposition: the
// first pass reads the source in its own order, and the second writes the target in its order.
#pragma once

#include <optional>

#include "files/base/open_folder.hpp"
#include "files/engine/job.hpp"

namespace reshard::files {

struct Passes {
    std::vector<Index> first;   ///< sides of the blocks of the first pass
    std::vector<Index> second;  ///< and of the second
    std::vector<Index> chunks;  ///< of the intermediate array: the blocks of one of both passes
};

/// Returns the two passes of a job whose blocks have at most `capacity` bytes. nullopt unless the job copies one whole
/// array to one of the same shape.
[[nodiscard]] std::optional<Passes> two_passes(const Job& job, Index capacity);

/// Returns batches of one block each, on a grid.
[[nodiscard]] std::vector<Batch> grid_batches(const Job& job, std::span<const Index> sides);

/// A new folder for intermediate files. It is removed with everything in it. A process that is killed leaves it, and
/// the next one removes it: a locked file in the folder says that its process runs.
class ScratchFolder {
public:
    /// Makes a folder, and removes the folders that killed processes of this user left beside it. Errors: io.
    [[nodiscard]] static Result<ScratchFolder> make(const std::string& in);
    ScratchFolder(ScratchFolder&& other) noexcept;
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder() { remove(); }
    void remove();
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    ScratchFolder(std::string path, File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
    std::string path_;
    File lock_;
};

}  // namespace reshard::files
