#include "files/base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "src/base/try.hpp"

namespace reshard::files {
namespace {

constexpr std::chrono::seconds timeout{10};  // that a pipe's writer waits for a reader

const char* kind_of(unsigned mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

}  // namespace

// Opens no device, not even to look. Some devices act when they are opened.
Result<unsigned> mode_of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return cannot("read", path);
    return status.st_mode;
}

tl::unexpected<Error> not_regular(const std::string& path, unsigned mode) {
    return fail(Code::io, fmt::format("cannot read '{}': {}, not a regular file", path, kind_of(mode)));
}

tl::unexpected<Error> cannot(const char* what, const std::string& path) {
    return fail(Code::io, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno)));
}

Result<File> File::open_to_read(const std::string& path) {
    RESHARD_TRY(const auto& mode, mode_of(path));
    if (!S_ISREG(mode)) return not_regular(path, mode);
    auto file = open_now(path);
    if (!file) return file;
    struct stat status {};  // it may be another file by now
    if (::fstat(file->descriptor_, &status) != 0) return cannot("read", path);
    if (!S_ISREG(status.st_mode)) return not_regular(path, status.st_mode);
    return file;
}

Result<File> File::open_now(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return cannot("read", path);
    return File(descriptor, path);
}

Result<std::pair<File, File>> File::pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot("create", "a pipe");
    return std::pair(File(ends[0], "a pipe"), File(ends[1], "a pipe"));
}

Result<File> File::create(const std::string& path, const std::string& shown) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) return cannot("create", shown);
    return File(descriptor, shown);
}

Result<File> File::unnamed(const std::string& folder, const std::string& shown) {
    const int descriptor = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (descriptor < 0) return cannot("create", shown);
    return File(descriptor, shown);
}

Result<File> File::open_again(const std::string& path, const std::string& shown) {
    const int follow = path.starts_with("/proc/self/fd/") ? 0 : O_NOFOLLOW;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | follow);
    if (descriptor < 0) return cannot("write", shown);
    return File(descriptor, shown);
}

Result<File> File::open_stream(const std::string& path) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    int descriptor = -1;
    for (;;) {
        descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (descriptor >= 0 || errno != ENXIO) break;  // ENXIO: a pipe without a reader
        if (std::chrono::steady_clock::now() > end)
            return fail(Code::io, fmt::format("cannot write '{}': nobody reads it", path));
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (descriptor < 0) return cannot("write", path);
    File file(descriptor, path);
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) != 0) return cannot("write", path);
    return file;
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

std::string File::in_this_process() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

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

Result<std::string> File::start(Index bytes_max) const {
    RESHARD_TRY(const auto& bytes, size());
    std::string text(static_cast<std::size_t>(std::min(bytes, bytes_max)), '\0');
    RESHARD_CHECK(read(std::as_writable_bytes(std::span(text)), 0));
    return text;
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

Result<void> File::write_out(std::span<const std::byte> from, Index offset) const {
    static std::atomic<bool> uncached{true};
    constexpr int rwf_dontcache = 0x80;  // Linux 6.14; older headers lack the name
    while (!from.empty() && uncached) {
        const iovec part{const_cast<std::byte*>(from.data()), from.size()};
        const ssize_t put = ::pwritev2(descriptor_, &part, 1, offset, rwf_dontcache);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && (errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS)) uncached = false;
        if (put < 0 && uncached) return failed("write");
        if (put < 0) break;
        from = from.subspan(static_cast<std::size_t>(put));
        offset += put;
    }
    RESHARD_CHECK(write(from, offset));
    if (!from.empty()) (void)::sync_file_range(descriptor_, offset, std::ssize(from), SYNC_FILE_RANGE_WRITE);
    return {};
}

Result<void> File::append(std::span<const std::byte> from) const {
    while (!from.empty()) {
        const ssize_t put = ::write(descriptor_, from.data(), from.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return failed("write");
        from = from.subspan(static_cast<std::size_t>(put));
    }
    return {};
}

Result<void> File::reserve(Index bytes) const {
    if (bytes == 0) return {};
    do errno = ::posix_fallocate(descriptor_, 0, bytes);
    while (errno == EINTR);
    if (errno == 0) return {};
    const bool cannot_promise = errno == EOPNOTSUPP || errno == EINVAL;
    if (!cannot_promise) return failed("make room for");
    return ::ftruncate(descriptor_, bytes) == 0 ? Result<void>() : failed("make room for");
}

Result<void> File::sync() const {
    // A file that cannot be flushed reports EINVAL. The caller has nothing to wait for then.
    const bool done = ::fsync(descriptor_) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP;
    return done ? Result<void>() : failed("write");
}

Result<void> File::finish() {
    RESHARD_CHECK(sync());
    return ::close(std::exchange(descriptor_, -1)) == 0 ? Result<void>() : failed("write");
}

}  // namespace reshard::files
