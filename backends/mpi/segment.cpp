#include "backends/mpi/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace reshard::mpi {
namespace {

constexpr Index page_bytes = 4096;

tl::unexpected<Error> failed(std::string_view call, Index bytes) {
    return fail(Code::backend, fmt::format("{} of {} bytes of shared memory: {}", call, bytes, std::strerror(errno)));
}

Result<std::byte*> map(int descriptor, Index bytes) {
    void* start = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED) return failed("mmap", bytes);
    return static_cast<std::byte*>(start);
}

// Enters the pages into this process's table, so that the first move does not pay for it. fallocate took them already.
void populate(std::byte* start, Index bytes) {
    const auto size = static_cast<std::size_t>(bytes);
#ifdef MADV_HUGEPAGE
    static_cast<void>(madvise(start, size, MADV_HUGEPAGE));  // where the system grants them to shared memory
#endif
#ifdef MADV_POPULATE_WRITE
    if (madvise(start, size, MADV_POPULATE_WRITE) == 0) return;
#endif
    for (Index at = 0; at < bytes; at += page_bytes) static_cast<volatile std::byte*>(start)[at] = std::byte{0};
}

bool take_pages(int descriptor, Index bytes) {
    int code = 0;
    do {
        code = fallocate(descriptor, 0, 0, bytes);
    } while (code != 0 && errno == EINTR);
    return code == 0;
}

}  // namespace

Result<Segment> Segment::make(Index bytes) {
    const auto rounded = checked_multiply(ceil_divide(std::max<Index>(bytes, 1), page_bytes), page_bytes);
    if (!rounded || bytes < 0) return fail(Code::mismatch, fmt::format("cannot allocate {} bytes", bytes));
    const int descriptor = memfd_create("reshard", MFD_CLOEXEC);
    if (descriptor < 0) return failed("memfd_create", bytes);
    struct stat status {};
    Result<std::byte*> start = nullptr;
    if (ftruncate(descriptor, *rounded) != 0 || !take_pages(descriptor, *rounded) || fstat(descriptor, &status) != 0) {
        start = failed("allocation", bytes);
    } else {
        start = map(descriptor, *rounded);
    }
    if (!start) {
        close(descriptor);
        return tl::unexpected(start.error());
    }
    populate(*start, *rounded);
    return Segment({getpid(), descriptor, status.st_ino, *rounded}, *start, descriptor);
}

Result<Segment> Segment::open(const SegmentName& name) {
    const std::string path = fmt::format("/proc/{}/fd/{}", name.process, name.descriptor);
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return failed("opening a peer's segment", name.bytes);
    struct stat status {};
    const bool same = fstat(descriptor, &status) == 0 && status.st_ino == name.inode && status.st_size == name.bytes;
    Result<std::byte*> start = same ? map(descriptor, name.bytes)
                                    : fail(Code::backend, "a peer's shared memory is not what it was said to be");
    close(descriptor);
    if (!start) return tl::unexpected(start.error());
    return Segment(name, *start, -1);
}

Segment::Segment(Segment&& other) noexcept
    : name_(other.name_),
      start_(std::exchange(other.start_, nullptr)),
      own_descriptor_(std::exchange(other.own_descriptor_, -1)) {}

Segment::~Segment() {
    if (start_ == nullptr) return;
    munmap(start_, static_cast<std::size_t>(name_.bytes));
    if (own_descriptor_ < 0) return;
    static_cast<void>(fallocate(own_descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, name_.bytes));
    close(own_descriptor_);
}

}  // namespace reshard::mpi
