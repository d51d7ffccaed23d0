// A target is made in a folder beside it: OUT.reshard-partial. The folder holds the files, a journal, and a file whose
// name says that this library made the folder. Only its owner may read it, and no link in it is followed.
#pragma once

#include "files/engine/journal.hpp"
#include "files/formats/new_files.hpp"

namespace reshard::files {

class Unfinished {
public:
    /// `to`: what it will be called; one file when `single`. Errors: io (something is there that no run of this library
    /// made, and it stays as it is; another process makes the target).
    [[nodiscard]] static Result<Unfinished> begin(const std::string& to, bool single, const std::string& job,
                                                  const NewFiles& files, bool resume);
    Unfinished(Unfinished&& other) noexcept;
    Unfinished& operator=(Unfinished&&) = delete;
    ~Unfinished();  ///< removes it, unless it was finished or is to be resumed

    /// The folder of the target files. Errors: io.
    [[nodiscard]] Result<OpenFolder> folder() const;
    /// The same for a target that another process makes.
    [[nodiscard]] static Result<OpenFolder> folder_of(const std::string& to);
    [[nodiscard]] Journal& journal() { return journal_; }

    /// Makes the files, of their full size and with their headers. Errors: io.
    [[nodiscard]] Result<void> reserve(const NewFiles& files);
    /// All is on the disk after it, the small files and `manifest` too. Errors: io.
    [[nodiscard]] Result<void> flush(const NewFiles& files, const std::string& manifest, Index workers);
    /// Gives all its name. Errors: io.
    [[nodiscard]] Result<void> finish(const NewFiles& files);
    /// Removes the folder that a killed run has left, if this library made it and no process uses it.
    static void remove_rest(const std::string& to);

private:
    Unfinished(std::string to, OpenFolder beside, OpenFolder partial, Journal journal);
    [[nodiscard]] static Result<Unfinished> take(const std::string& to, bool make);
    void remove();

    std::string to_;
    OpenFolder beside_;   // will hold the target
    OpenFolder partial_;  // inside `beside_`
    bool single_ = false;
    bool keep_ = true;
    Journal journal_;
};

/// What was written to these files is on the disk after it. Errors: io.
[[nodiscard]] Result<void> sync_files(const OpenFolder& folder, const NewFiles& files, std::span<const Index> numbers,
                                      Index workers);

/// Fails if the name of the target is taken, or if the name of its checksums is taken by a file that this library did
/// not write for an earlier target of that name. Errors: io.
[[nodiscard]] Result<void> may_name(const std::string& to, bool single);

/// True when `to` is there, made by this very job, which is to be resumed or only planned. Errors: as may_name.
[[nodiscard]] Result<bool> finished_before(const std::string& to, bool single, const std::string& job,
                                           const ConvertOptions& options);

}  // namespace reshard::files
