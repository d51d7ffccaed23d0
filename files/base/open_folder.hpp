// An open folder. Everything in it is named from its descriptor, and no symbolic link in it is followed. A link that
// others plant under a name that can be guessed is refused, whenever they plant it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "files/base/file.hpp"

namespace reshard::files {

class OpenFolder {
public:
    /// Opens the folder that holds `path`. Links on the way to that folder are followed. Errors: io.
    [[nodiscard]] static Result<OpenFolder> parent_of(const std::string& path);

    /// Opens a folder in this one. Errors: io (nothing has the name, or a link or a file has it).
    [[nodiscard]] Result<OpenFolder> folder(const std::string& name) const;
    /// Makes a folder. Returns false if something has the name already. Errors: io.
    [[nodiscard]] Result<bool> make_folder(const std::string& name, unsigned mode) const;

    /// How a file in it is opened.
    enum class Way {
        read,    ///< to read
        update,  ///< to read and to write
        take,    ///< to read and to write, made if nothing is there
        create   ///< to write; nothing is there
    };
    /// Opens a regular file that has no other name. `name` may lead through folders in this one, as in c/0/1. Never
    /// waits. Errors: io (a link, no regular file, a second name).
    [[nodiscard]] Result<File> file(const std::string& name, Way way) const;
    /// Opens a file as Way::take does, and locks it until it is closed. Errors: io (as `file`; another process has it).
    [[nodiscard]] Result<File> locked(const std::string& name) const;
    /// Makes the folders that `name` leads through. Errors: io.
    [[nodiscard]] Result<void> make_parents(const std::string& name) const;

    [[nodiscard]] Result<std::vector<std::string>> names() const;  ///< of everything in it. Errors: io
    [[nodiscard]] bool has(const std::string& name) const;         ///< a link counts as itself
    [[nodiscard]] bool is_own() const;                             ///< it belongs to the user of this process
    /// True if a regular file of this process's user has the name.
    [[nodiscard]] bool has_own_file(const std::string& name) const;

    /// Removes the file or folder of that name, with everything in it. Nothing may have the name. Errors: io.
    [[nodiscard]] Result<void> remove(const std::string& name) const;
    [[nodiscard]] Result<void> remove_empty(const std::string& name) const;  ///< a folder. Errors: io
    /// Moves `name` to another folder, under another name. If `replace`, replaces a file of that name; else that is an
    /// error. Errors: io.
    [[nodiscard]] Result<void> rename(const std::string& name, const OpenFolder& to, const std::string& other,
                                      bool replace) const;
    /// Brings the names in the folder to the disk, as far as the file system can.
    void sync() const;
    [[nodiscard]] Result<void> sync_everything() const;  ///< all of its file system. Errors: io

    /// The path of `name`, for messages.
    [[nodiscard]] std::string path_of(const std::string& name) const;

private:
    OpenFolder(int descriptor, std::string path);
    [[nodiscard]] Result<OpenFolder> parent(const std::string& name, bool make, std::string& last) const;

    std::shared_ptr<const int> descriptor_;
    std::string path_;
};

}  // namespace reshard::files
