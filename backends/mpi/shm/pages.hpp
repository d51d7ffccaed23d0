// Pages of files in memory and of nobody's: mapped, taken and filled in the largest units that the system gives.
#pragma once

#include "backends/mpi/shm/mappings.hpp"

namespace reshard::mpi {

inline constexpr Index huge_page_bytes = Index{2} << 20;

/// A part of a file in memory; of `descriptor` -1 private pages that are zero.
struct FilePart {
    int descriptor = -1;
    Index offset = 0;
    Index bytes = 0;
};

/// The error of the system's last failed call, for this many bytes.
[[nodiscard]] tl::unexpected<Error> system_failed(std::string_view call, Index bytes);

/// Maps a part at an address of the system's choice, or over the memory at `place`. A part of a huge page or more gets
/// the same offset in a huge page as `like`. Then one entry of the page table can serve as much as the file holds in
/// one.
/// Errors: backend.
[[nodiscard]] Result<std::byte*> map_pages(const FilePart& part, std::uintptr_t like);
[[nodiscard]] bool map_over(const FilePart& part, std::byte* place, bool shared);

/// Takes the pages of a file's part, huge ones where the part as it is mapped at `start` has room for them and the
/// system gives them on request (Linux 6.1), whatever it gives unasked. False when there is not that much.
[[nodiscard]] bool take_pages(const FilePart& part, std::byte* start);

/// Enters pages into this process's table, so that nobody pays for it later. False when there is not that much.
bool populate(std::byte* start, Index bytes);

}  // namespace reshard::mpi
