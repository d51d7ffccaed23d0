#include "backends/mpi/shm/segment.hpp"

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
constexpr Index huge_page_bytes = Index{2} << 20;
#ifdef MADV_COLLAPSE
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;  // Linux's number, where the C library is older than the system
#endif

tl::unexpected<Error> failed(std::string_view call, Index bytes) {
    return fail(Code::backend, fmt::format("{} of {} bytes of shared memory: {}", call, bytes, std::strerror(errno)));
}

// At a multiple of a huge page, so that one entry of the page table can serve as much of it as the file holds in one.
Result<std::byte*> map(int descriptor, Index bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    const std::size_t slack = bytes >= huge_page_bytes ? static_cast<std::size_t>(huge_page_bytes) : 0;
    void* reserved = mmap(nullptr, size + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return failed("mmap", bytes);
    auto* first = static_cast<std::byte*>(reserved);
    const std::size_t before = slack == 0 ? 0 : -reinterpret_cast<std::uintptr_t>(reserved) & (slack - 1);
    void* start = mmap(first + before, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
    if (start == MAP_FAILED) {
        auto error = failed("mmap", bytes);
        munmap(reserved, size + slack);
        return error;
    }
    if (before > 0) munmap(reserved, before);
    if (before < slack) munmap(first + before + size, slack - before);
    return static_cast<std::byte*>(start);
}

// Takes huge pages where the system gives them on request (Linux 6.1), whatever it gives unasked. The system makes one
// only where the file has a page already. What fails is left to ordinary pages.
void take_huge_pages(int descriptor, std::byte* start, Index bytes) {
    for (Index at = 0; at + huge_page_bytes <= bytes; at += huge_page_bytes) {
        if (fallocate(descriptor, 0, at, page_bytes) != 0) return;
        if (madvise(start + at, static_cast<std::size_t>(huge_page_bytes), collapse) != 0) return;
    }
}

// Enters the pages into this process's table, so that the first move does not pay for it. fallocate took them already.
void populate(std::byte* start, Index bytes) {
#ifdef MADV_POPULATE_WRITE
    if (madvise(start, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0) return;
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

std::string path_of(const SegmentName& name) { return fmt::format("/proc/{}/fd/{}", name.process, name.descriptor); }

}  // namespace

Result<Segment> Segment::make(Index bytes) {
    const auto rounded = checked_multiply(ceil_divide(std::max<Index>(bytes, 1), page_bytes), page_bytes);
    if (!rounded || bytes < 0) return fail(Code::mismatch, fmt::format("cannot allocate {} bytes", bytes));
    const int descriptor = memfd_create("reshard", MFD_CLOEXEC);
    if (descriptor < 0) return failed("memfd_create", bytes);
    struct stat status {};
    const bool sized = ftruncate(descriptor, *rounded) == 0 && fstat(descriptor, &status) == 0;
    Result<std::byte*> start = sized ? map(descriptor, *rounded) : failed("allocation", bytes);
    if (start) {
        take_huge_pages(descriptor, *start, *rounded);
        if (!take_pages(descriptor, *rounded)) {
            auto error = failed("allocation", bytes);
            munmap(*start, static_cast<std::size_t>(*rounded));
            start = error;
        }
    }
    if (!start) {
        close(descriptor);
        return tl::unexpected(start.error());
    }
    populate(*start, *rounded);
    return Segment({getpid(), descriptor, status.st_ino, *rounded}, *start, descriptor);
}

bool Segment::is_kept() const {
    struct stat status {};
    return stat(path_of(name_).c_str(), &status) == 0 && status.st_ino == name_.inode;
}

Result<Segment> Segment::open(const SegmentName& name) {
    const int descriptor = ::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC);
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
      own_descriptor_(std::exchange(other.own_descriptor_, -1)),
      left_(other.left_) {}

Segment::~Segment() {
    if (start_ == nullptr) return;
    munmap(start_, static_cast<std::size_t>(name_.bytes));
    if (own_descriptor_ < 0) return;
    if (!left_)
        static_cast<void>(fallocate(own_descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, name_.bytes));
    close(own_descriptor_);
}

}  // namespace reshard::mpi
