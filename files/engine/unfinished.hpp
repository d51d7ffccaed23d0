// A target is made in a folder beside it, OUT.reshard-partial. The folder holds the files, a journal, and a file whose
// name says that this library made the folder. Only its owner may read it, and no link in it is followed.
#pragma once

#include "files/engine/journal.hpp"
#include "files/formats/new_files.hpp"

namespace reshard::files {

class Unfinished {
public:
    /// Begins the target `to`, which is one file if `single`. Errors: io (something that this library did not make has
    /// the name, and it stays as it is; another process makes the target).
    [[nodiscard]] static Result<Unfinished> begin(const std::string& to, bool single, const std::string& job,
                                                  const NewFiles& files, bool resume);
    Unfinished(Unfinished&& other) noexcept;
    Unfinished& operator=(Unfinished&&) = delete;
    ~Unfinished();  ///< removes it, unless it is finished or may be resumed

    /// Opens the folder of the target files. Errors: io.
    [[nodiscard]] Result<OpenFolder> folder() const;
    /// The same for a target that another process makes.
    [[nodiscard]] static Result<OpenFolder> folder_of(const std::string& to);
    [[nodiscard]] Journal& journal() { return journal_; }

    /// Makes the files, in their full size and with their headers. Errors: io.
    [[nodiscard]] Result<void> reserve(const NewFiles& files);
    /// Adds the small files and `manifest`. If `durable`, brings everything to the disk. Errors: io.
    [[nodiscard]] Result<void> flush(const NewFiles& files, const std::string& manifest, Index workers,
                                     bool durable = true);
    /// Gives the target its name. Errors: io.
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

/// Brings these files to the disk. Errors: io.
[[nodiscard]] Result<void> sync_files(const OpenFolder& folder, const NewFiles& files, std::span<const Index> numbers,
                                      Index workers);

/// Fails if the name of the target is taken, or if the name of its checksums is taken by a file that this library did
/// not write for an earlier target of that name. Errors: io.
[[nodiscard]] Result<void> may_name(const std::string& to, bool single);

/// True if an earlier run of this job has made `to`, and `options` ask to resume or only to plan. Errors: as may_name.
[[nodiscard]] Result<bool> finished_before(const std::string& to, bool single, const std::string& job,
                                           const ConvertOptions& options);

}  // namespace reshard::files
