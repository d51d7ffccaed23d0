// The mappings of this process's memory, from the system: /proc/self.
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

/// The same from its start, and the same grown or shrunk to whole pages.
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
    std::string name;          ///< of the file, or what the system calls it: [heap], [stack]
};

/// The mappings that overlap a range, in order. Errors: backend where the system does not say.
[[nodiscard]] Result<std::vector<Mapping>> mappings_of(const AddressRange& range);

/// Whether memory may be exchanged for other pages of the same contents: it is private, anonymous and writable, and
/// nobody else holds on to its pages. Errors: usage, with the reason; backend where the system does not say.
[[nodiscard]] Result<void> may_change_pages(const AddressRange& range);

/// A file, a part of which should appear in a range of addresses.
struct FileView {
    AddressRange range;
    std::uint64_t offset = 0;  ///< in the file, of the range's begin
    std::uint64_t inode = 0;
    std::string name;  ///< of the file, as /proc has it; no other of this process has it
};

/// How it is asked what an address shows, the fastest first. Each answers what the last one does.
enum class Asked { by_address, by_link, by_list };

/// Whether all of the range shows that file and nothing else: some microseconds. False too where the system does not
/// say. Asks in the given way, and where that has no answer in the next one.
[[nodiscard]] bool shows(const FileView& view, Asked first = Asked::by_address);

}  // namespace reshard::mpi
