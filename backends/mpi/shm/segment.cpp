#include "backends/mpi/shm/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "backends/mpi/shm/pages.hpp"
#include "src/base/memory.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

std::string path_of(const SegmentName& name) { return fmt::format("/proc/{}/fd/{}", name.process, name.descriptor); }

}  // namespace

Result<Segment> Segment::make(Index bytes) {
    const auto page = static_cast<Index>(page_bytes());
    const auto rounded = checked_multiply(ceil_divide(std::max<Index>(bytes, 1), page), page);
    if (!rounded || bytes < 0) return fail(Code::mismatch, fmt::format("cannot allocate {} bytes", bytes));
    RESHARD_TRY([[maybe_unused]] const auto& claim, MemoryClaim::make(*rounded));
    const int descriptor = memfd_create("reshard", MFD_CLOEXEC);
    if (descriptor < 0) return system_failed("memfd_create", bytes);
    struct stat status {};
    const bool sized = ftruncate(descriptor, *rounded) == 0 && fstat(descriptor, &status) == 0;
    const FilePart whole{descriptor, 0, *rounded};
    Result<std::byte*> start = sized ? map_pages(whole, 0) : system_failed("allocation", bytes);
    if (start && !take_pages(whole, *start)) {
        auto error = system_failed("allocation", bytes);
        munmap(*start, static_cast<std::size_t>(*rounded));
        start = error;
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
    if (descriptor < 0) return system_failed("opening a peer's segment", name.bytes);
    struct stat status {};
    const bool same = fstat(descriptor, &status) == 0 && status.st_ino == name.inode && status.st_size == name.bytes;
    Result<std::byte*> start = same ? map_pages({descriptor, 0, name.bytes}, 0)
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
