#include "file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace reshard::cli {
namespace {

tl::unexpected<Error> cannot(const char* what, const std::string& path) {
    return fail(Code::io, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

}  // namespace

Result<File> File::open_to_read(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return cannot("read", path);
    File file(descriptor, path);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) return cannot("read", path);
    // Tiles are read at offsets, which a pipe or a folder does not have.
    if (!S_ISREG(status.st_mode)) return fail(Code::io, fmt::format("cannot read '{}': not a regular file", path));
    return file;
}

Result<File> File::create(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return cannot("create", path);
    return File(descriptor, path);
}

Result<File> File::open_to_write(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return cannot("write", path);
    return File(descriptor, path);
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
}

File::~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

tl::unexpected<Error> File::failed(const char* what) const { return cannot(what, path_); }

Result<Index> File::size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) return failed("read");
    return static_cast<Index>(status.st_size);
}

Result<void> File::read(std::span<std::byte> into, Index offset) const {
    while (!into.empty()) {
        const ssize_t got = ::pread(descriptor_, into.data(), into.size(), offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed("read");
        if (got == 0) return fail(Code::io, fmt::format("'{}' became shorter while it was read", path_));
        into = into.subspan(static_cast<std::size_t>(got));
        offset += got;
    }
    return {};
}

Result<void> File::write(std::span<const std::byte> from, Index offset) const {
    while (!from.empty()) {
        const ssize_t put = ::pwrite(descriptor_, from.data(), from.size(), offset);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return failed("write");
        from = from.subspan(static_cast<std::size_t>(put));
        offset += put;
    }
    return {};
}

Result<void> File::reserve(Index bytes) const {
    if (bytes == 0) return {};
    errno = ::posix_fallocate(descriptor_, 0, bytes);
    if (errno == 0) return {};
    const bool cannot_promise = errno == EOPNOTSUPP || errno == EINVAL;
    if (!cannot_promise) return failed("make room for");
    return ::ftruncate(descriptor_, bytes) == 0 ? Result<void>() : failed("make room for");
}

Result<void> File::finish() {
    // File systems that cannot flush say EINVAL; there is nothing to wait for then.
    if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) return failed("write");
    return ::close(std::exchange(descriptor_, -1)) == 0 ? Result<void>() : failed("write");
}

}  // namespace reshard::cli
