// The folder beside a target in which it is made: OUT.reshard-partial, with the files, and a journal.
#pragma once

#include "backends/files/engine/journal.hpp"
#include "backends/files/formats/new_files.hpp"

namespace reshard::files {

class Unfinished {
public:
    /// `to`: what it will be called; one file when `single`. Errors: io (something is there; another process makes it).
    [[nodiscard]] static Result<Unfinished> begin(const std::string& to, bool single, const std::string& job,
                                                  const NewFiles& files, bool resume);
    Unfinished(Unfinished&& other) noexcept;
    Unfinished& operator=(Unfinished&&) = delete;
    ~Unfinished();  ///< removes it, unless it was finished or is to be resumed

    [[nodiscard]] std::string folder() const { return partial_ + "/files"; }  ///< of the target files
    /// The same of a target that another process makes.
    [[nodiscard]] static std::string folder_of(const std::string& to) { return to + ".reshard-partial/files"; }
    [[nodiscard]] Journal& journal() { return journal_; }

    /// Makes the files, of their full size and with their headers. Errors: io.
    [[nodiscard]] Result<void> reserve(const NewFiles& files);
    /// All is on the disk after it, the small files and `manifest` too. Errors: io.
    [[nodiscard]] Result<void> flush(const NewFiles& files, const std::string& manifest, Index workers);
    /// Gives all its name. Errors: io.
    [[nodiscard]] Result<void> finish(const NewFiles& files);

private:
    [[nodiscard]] Result<void> make_parents(const std::string& path) const;
    Unfinished(std::string to, bool single, Journal journal, bool keep);

    std::string to_;
    std::string partial_;
    bool single_;
    bool keep_;
    Journal journal_;
};

/// What was written to these files is on the disk after it. Errors: io.
[[nodiscard]] Result<void> sync_files(const std::string& folder, const NewFiles& files, std::span<const Index> numbers,
                                      Index workers);

/// Where the checksums of a target are.
[[nodiscard]] std::string manifest_path(const std::string& to, bool single);

/// True when `to` is there, made by this very job. Errors: io (something else is there).
[[nodiscard]] Result<bool> finished_before(const std::string& to, bool single, const std::string& job, bool resume);

}  // namespace reshard::files
