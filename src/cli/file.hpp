// Files at 64-bit offsets. Every failure is an Error with the file's name and the system's reason.
#pragma once

#include <span>
#include <string>

#include "reshard/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::cli {

class File {
public:
    /// Errors: io.
    [[nodiscard]] static Result<File> open_to_read(const std::string& path);
    [[nodiscard]] static Result<File> create(const std::string& path);         ///< empty; replaces what was there
    [[nodiscard]] static Result<File> open_to_write(const std::string& path);  ///< must exist

    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] Result<Index> size() const;
    [[nodiscard]] Result<void> read(std::span<std::byte> into, Index offset) const;  ///< all of it, or an error
    [[nodiscard]] Result<void> write(std::span<const std::byte> from, Index offset) const;
    [[nodiscard]] Result<void> reserve(Index bytes) const;  ///< makes the file this long and its space certain
    [[nodiscard]] Result<void> finish();                    ///< to the disk, and closed

private:
    File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
    [[nodiscard]] tl::unexpected<Error> failed(const char* what) const;

    int descriptor_ = -1;
    std::string path_;
};

}  // namespace reshard::cli
