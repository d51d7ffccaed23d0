// What a run has done, so that a later one goes on there: one line for each batch that is written, with the checksums
// that it changed. A line that is not whole does not count.
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

    /// Takes the journal in a folder, made if nothing is there, and reads and writes nothing. Errors: io (a link, no
    /// regular file; another process has it).
    [[nodiscard]] static Result<Journal> take(const OpenFolder& folder);
    /// Reads the entries of the job. Forgets the entries of another job and those from before the machine was last
    /// started. If `anew`, forgets all. Errors: io.
    [[nodiscard]] Result<void> begin(const std::string& job, std::size_t sums, bool anew);
    [[nodiscard]] Result<Index> bytes() const { return file_.size(); }  ///< of its file. Errors: io
    [[nodiscard]] Result<void> empty();                                 ///< forgets all. Errors: io

    [[nodiscard]] Index batches() const { return batches_; }  ///< that are written, the first ones
    [[nodiscard]] const std::vector<std::uint32_t>& sums() const { return sums_; }

    /// One more batch is written, and these are the checksums. Errors: io.
    [[nodiscard]] Result<void> add(std::span<const std::uint32_t> sums);

private:
    explicit Journal(File file) : file_(std::move(file)) {}

    File file_;
    Index end_ = 0;
    Index batches_ = 0;
    std::vector<std::uint32_t> sums_;
};

}  // namespace reshard::files
