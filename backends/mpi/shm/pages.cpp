#include "backends/mpi/shm/pages.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace reshard::mpi {
namespace {

#ifdef MADV_COLLAPSE
constexpr int collapse = MADV_COLLAPSE;
#else
constexpr int collapse = 25;  // Linux's number, where the C library is older than the system
#endif

int flags_of(const FilePart& part) { return part.descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED; }

bool take(const FilePart& part, Index offset, Index bytes) {
    int code = 0;
    do {
        code = fallocate(part.descriptor, 0, offset, bytes);
    } while (code != 0 && errno == EINTR);
    return code == 0;
}

// The system makes a huge page only for a page that the file has already. One call asks for all of them, since each
// call waits for every core. A failure leaves ordinary pages.
void take_huge_pages(const FilePart& part, std::byte* start) {
    const auto before = static_cast<Index>(-reinterpret_cast<std::uintptr_t>(start) & (huge_page_bytes - 1));
    Index end = before;
    while (end + huge_page_bytes <= part.bytes && take(part, part.offset + end, static_cast<Index>(page_bytes()))) {
        end += huge_page_bytes;
    }
    if (end > before) madvise(start + before, static_cast<std::size_t>(end - before), collapse);
}

}  // namespace

tl::unexpected<Error> system_failed(std::string_view call, Index bytes) {
    return fail(Code::backend, fmt::format("{} of {} bytes of shared memory: {}", call, bytes, std::strerror(errno)));
}

Result<std::byte*> map_pages(const FilePart& part, std::uintptr_t like) {
    const auto size = static_cast<std::size_t>(part.bytes);
    const std::size_t slack = part.bytes >= huge_page_bytes ? static_cast<std::size_t>(huge_page_bytes) : 0;
    void* reserved = mmap(nullptr, size + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return system_failed("mmap", part.bytes);
    auto* first = static_cast<std::byte*>(reserved);
    const std::size_t before = slack == 0 ? 0 : (like - reinterpret_cast<std::uintptr_t>(reserved)) & (slack - 1);
    void* start =
        mmap(first + before, size, PROT_READ | PROT_WRITE, flags_of(part) | MAP_FIXED, part.descriptor, part.offset);
    if (start == MAP_FAILED) {
        auto error = system_failed("mmap", part.bytes);
        munmap(reserved, size + slack);
        return error;
    }
    if (before > 0) munmap(reserved, before);
    if (before < slack) munmap(first + before + size, slack - before);
    return static_cast<std::byte*>(start);
}

bool map_over(const FilePart& part, std::byte* place, bool shared) {
    return mmap(place, static_cast<std::size_t>(part.bytes), PROT_READ | PROT_WRITE,
                (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED, part.descriptor, part.offset) != MAP_FAILED;
}

bool take_pages(const FilePart& part, std::byte* start) {
    take_huge_pages(part, start);
    return take(part, part.offset, part.bytes);
}

bool populate(std::byte* start, Index bytes) {
#ifdef MADV_POPULATE_WRITE
    if (madvise(start, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0) return true;
    if (errno != EINVAL) return false;  // a system that does not know it
#endif
    for (Index at = 0; at < bytes; at += static_cast<Index>(page_bytes())) {
        static_cast<volatile std::byte*>(start)[at] = std::byte{0};
    }
    return true;
}

}  // namespace reshard::mpi
