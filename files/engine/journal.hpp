// The progress of a run. A later run continues from it. It has one line for each written batch, with the checksums that
// the batch changed. An incomplete line does not count.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/base/open_folder.hpp"

namespace reshard::files {

class Journal {
public:
    static constexpr const char* name = "journal";  ///< of its file

    /// Locks the journal in a folder, and makes it if it does not exist. Reads and writes nothing. Errors: io (a link,
    /// no regular file; another process has it).
    [[nodiscard]] static Result<Journal> take(const OpenFolder& folder);
    /// Reads the entries of the job. Forgets the entries of another job and those from before the machine was last
    /// started. If `anew`, forgets all. Errors: io.
    [[nodiscard]] Result<void> begin(const std::string& job, std::size_t sums, bool anew);
    [[nodiscard]] Result<Index> bytes() const { return file_.size(); }  ///< of its file. Errors: io
    [[nodiscard]] Result<void> empty();                                 ///< forgets all. Errors: io

    [[nodiscard]] Index batches() const { return batches_; }  ///< written so far, from the first on
    [[nodiscard]] const std::vector<std::uint32_t>& sums() const { return sums_; }

    /// Adds a line: one more batch is written, and these are the checksums. Errors: io.
    [[nodiscard]] Result<void> add(std::span<const std::uint32_t> sums);

private:
    explicit Journal(File file) : file_(std::move(file)) {}

    File file_;
    Index end_ = 0;
    Index batches_ = 0;
    std::vector<std::uint32_t> sums_;
};

}  // namespace reshard::files
