// Files at 64-bit offsets. Every failure is an Error with the file's name and the system's reason.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::files {

/// Returns the error of a system call that has just failed: cannot `what` 'path': why.
[[nodiscard]] tl::unexpected<Error> cannot(const char* what, const std::string& path);

/// Returns the error for a path to something other than a regular file. `mode` is its mode. Errors of mode_of: io.
[[nodiscard]] tl::unexpected<Error> not_regular(const std::string& path, unsigned mode);
[[nodiscard]] Result<unsigned> mode_of(const std::string& path);

class File {
public:
    /// Opens a regular file. For anything else the error says what it is. Never waits. Errors: io.
    [[nodiscard]] static Result<File> open_to_read(const std::string& path);

    /// Makes a pipe: the first end reads the bytes that the second writes. Errors: io.
    [[nodiscard]] static Result<std::pair<File, File>> pipe();

    /// Opens any kind of file, without waiting for a pipe's writer. Errors: io.
    [[nodiscard]] static Result<File> open_now(const std::string& path);

    /// Open files to write. Errors call them `shown`. Errors: io.
    [[nodiscard]] static Result<File> create(const std::string& path, const std::string& shown);  ///< nothing is there
    [[nodiscard]] static Result<File> unnamed(const std::string& folder, const std::string& shown);
    [[nodiscard]] static Result<File> open_again(const std::string& path, const std::string& shown);  ///< no link

    /// Opens a pipe or a device, which is written from its beginning to its end. Waits some seconds for a pipe's
    /// reader.
    [[nodiscard]] static Result<File> open_stream(const std::string& path);

    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    ~File();

    /// Returns a path to the open file in this process, whether it has a name or not.
    [[nodiscard]] std::string in_this_process() const;
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] Result<Index> size() const;
    [[nodiscard]] Result<void> read(std::span<std::byte> into, Index offset) const;  ///< all of it, or an error
    [[nodiscard]] Result<std::string> start(Index bytes_max = index_max) const;      ///< its first bytes, or all
    [[nodiscard]] Result<void> write(std::span<const std::byte> from, Index offset) const;
    /// Writes bytes that nobody reads again soon. The disk begins at once. As far as the system can, it leaves the
    /// cached pages of other files in memory.
    [[nodiscard]] Result<void> write_out(std::span<const std::byte> from, Index offset) const;
    [[nodiscard]] Result<void> append(std::span<const std::byte> from) const;  ///< at the end of a stream
    [[nodiscard]] Result<void> reserve(Index bytes) const;  ///< makes the file this long and its space certain
    [[nodiscard]] Result<void> sync() const;                ///< to the disk
    [[nodiscard]] Result<void> finish();                    ///< to the disk, and closed

private:
    friend class OpenFolder;
    File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
    [[nodiscard]] tl::unexpected<Error> failed(const char* what) const;

    int descriptor_ = -1;
    std::string path_;
};

}  // namespace reshard::files
