#include "live/transport/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "src/base/memory.hpp"
#include "src/base/try.hpp"

namespace reshard::live {

Result<Segment> Segment::make(Index bytes) {
    const Index length = std::max<Index>(bytes, 1);
    RESHARD_TRY([[maybe_unused]] const auto& claim, MemoryClaim::make(length));
    Descriptor made(memfd_create("reshard-live", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!made.is_open()) return cannot("make shared memory");
    // fallocate takes the pages now, so that missing memory is an error here and no signal later. A reader that could
    // shrink the segment would kill its publisher.
    if (ftruncate(made.number(), length) != 0 || fallocate(made.number(), 0, 0, length) != 0 ||
        fcntl(made.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return cannot(fmt::format("take {} bytes of shared memory", length));
    void* const start =
        mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE, MAP_SHARED, made.number(), 0);
    if (start == MAP_FAILED) return cannot("map shared memory");
    return Segment(std::move(made), {static_cast<std::byte*>(start), static_cast<std::size_t>(length)});
}

Result<Segment> Segment::open(Descriptor descriptor, Index bytes) {
    struct stat status {};
    const Index length = std::max<Index>(bytes, 1);
    if (fstat(descriptor.number(), &status) != 0) return cannot("look at the publisher's memory");
    const int seals = fcntl(descriptor.number(), F_GET_SEALS);
    if (status.st_size < length || seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return fail(Code::backend, fmt::format("the publisher's memory has {} bytes, or may shrink; wanted {} bytes",
                                               status.st_size, length));
    void* const start = mmap(nullptr, static_cast<std::size_t>(length), PROT_READ, MAP_SHARED, descriptor.number(), 0);
    if (start == MAP_FAILED) return cannot("map the publisher's memory");
    return Segment(std::move(descriptor), {static_cast<std::byte*>(start), static_cast<std::size_t>(length)});
}

// The kernel may give a number of an inode again after 2^32 others, so the time at which the memory was made counts
// too.
bool Segment::is(const Descriptor& other) const {
    struct stat mine {};
    struct stat theirs {};
    if (fstat(descriptor_.number(), &mine) != 0 || fstat(other.number(), &theirs) != 0) return false;
    const auto identity = [](const struct stat& one) {
        return std::tuple(one.st_dev, one.st_ino, one.st_size, one.st_ctim.tv_sec, one.st_ctim.tv_nsec);
    };
    return identity(mine) == identity(theirs);
}

Segment::Segment(Segment&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), bytes_(std::exchange(other.bytes_, {})) {}

Segment& Segment::operator=(Segment&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Segment::~Segment() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace reshard::live
