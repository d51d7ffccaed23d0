// Pages of memory files and private pages: mapped, allocated and filled in the largest units that the system gives.
#pragma once

#include "backends/mpi/shm/mappings.hpp"

namespace reshard::mpi {

inline constexpr Index huge_page_bytes = Index{2} << 20;

/// A part of a memory file. If `descriptor` is -1: private pages that are zero.
struct FilePart {
    int descriptor = -1;
    Index offset = 0;
    Index bytes = 0;
};

/// The error of the system call that failed last, which was about so many bytes.
[[nodiscard]] tl::unexpected<Error> system_failed(std::string_view call, Index bytes);

/// map_pages maps a part where the system chooses; map_over maps it over whatever lies at `place`. A part of a huge
/// page or more gets the same offset in a huge page as the address `like`. One entry of the page table can then serve a
/// huge page of the file. Errors: backend.
[[nodiscard]] Result<std::byte*> map_pages(const FilePart& part, std::uintptr_t like);
[[nodiscard]] bool map_over(const FilePart& part, std::byte* place, bool shared);

/// Allocates the pages of a part that is mapped at `start`. It asks for huge pages if the mapping has room for them.
/// Linux 6.1 and later give them on request, whatever they give by default. False if there is not enough memory.
[[nodiscard]] bool take_pages(const FilePart& part, std::byte* start);

/// Enters pages into this process's page table, so that no later access pays for it. False if memory is short.
bool populate(std::byte* start, Index bytes);

}  // namespace reshard::mpi
