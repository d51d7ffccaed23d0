// The mappings in the memory of this process, as the system reports them in /proc/self.
#pragma once

#include <string>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::mpi {

/// A range of addresses of this process.
struct AddressRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    [[nodiscard]] Index bytes() const { return static_cast<Index>(end - begin); }
    [[nodiscard]] bool empty() const { return begin >= end; }
    friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

/// The size of a page; an address rounded down and up to a multiple of `unit`.
[[nodiscard]] std::uintptr_t page_bytes();
[[nodiscard]] inline std::uintptr_t down_to(std::uintptr_t address, std::uintptr_t unit) {
    return address / unit * unit;
}
[[nodiscard]] inline std::uintptr_t up_to(std::uintptr_t address, std::uintptr_t unit) {
    return down_to(address + unit - 1, unit);
}

/// One line of /proc/self/maps.
struct Mapping {
    AddressRange range;
    std::string permissions;   ///< "rw-p"
    std::uint64_t offset = 0;  ///< in the file
    std::uint64_t inode = 0;   ///< 0: anonymous
    std::string name;          ///< of the file, or the system's own name: [heap], [stack]
};

/// The mappings that overlap a range, in order. Errors: backend if the system does not report them.
[[nodiscard]] Result<std::vector<Mapping>> mappings_of(const AddressRange& range);

/// Fails unless memory may be exchanged for other pages with the same contents. It must be private, anonymous and
/// writable, and nobody else may hold its pages. Errors: usage, with the reason; backend if the system is silent.
[[nodiscard]] Result<void> may_change_pages(const AddressRange& range);

/// A range of addresses that should show a part of a file.
struct FileView {
    AddressRange range;
    std::uint64_t offset = 0;  ///< of the range's begin in the file
    std::uint64_t inode = 0;
    std::string name;  ///< of the file, as /proc shows it; unique in this process
};

/// How to ask what an address shows, the fastest way first. All ways give the same answer.
enum class Asked { by_address, by_link, by_list };

/// Whether the whole range shows that file and nothing else. Takes some microseconds. Also false if the system does not
/// report it. Asks in the given way first; if that has no answer, in the next one.
[[nodiscard]] bool shows(const FileView& view, Asked first = Asked::by_address);

}  // namespace reshard::mpi
