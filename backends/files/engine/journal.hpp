// What a run has done, so that a later one goes on there: one line for each batch that is written, with the checksums
// that it changed. A line that is not whole does not count.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/files/base/file.hpp"

namespace reshard::files {

class Journal {
public:
    /// Takes the journal of the job. What another job, or this one before the machine was started anew, has written in
    /// it is forgotten, and all of it when the job is to begin `anew`. Errors: io; another process has it.
    [[nodiscard]] static Result<Journal> open(const std::string& path, const std::string& job, std::size_t sums,
                                              bool anew);

    [[nodiscard]] Index batches() const { return batches_; }  ///< that are written, the first ones
    [[nodiscard]] const std::vector<std::uint32_t>& sums() const { return sums_; }

    /// One more batch is written, and these are the checksums. Errors: io.
    [[nodiscard]] Result<void> add(std::span<const std::uint32_t> sums);

private:
    Journal(File file, std::size_t sums) : file_(std::move(file)), sums_(sums, 0) {}
    [[nodiscard]] Result<void> read(const std::string& head, bool anew);

    File file_;
    Index end_ = 0;
    Index batches_ = 0;
    std::vector<std::uint32_t> sums_;
};

}  // namespace reshard::files
