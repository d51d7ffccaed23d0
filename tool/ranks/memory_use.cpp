#include "tool/ranks/memory_use.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>

namespace reshard::cli {
namespace {

// A line such as "VmHWM:     1234 kB".
std::optional<Index> line_of(const char* path, std::string_view name) {
    std::ifstream file(path);
    for (std::string word; file >> word;) {
        Index kibibytes = 0;
        if (word == name && file >> kibibytes) return kibibytes * 1024;
    }
    return std::nullopt;
}

bool reset_high_water() {
    std::ofstream file("/proc/self/clear_refs");
    file << '5' << std::flush;
    return file.good();
}

}  // namespace

ResidentGrowth::ResidentGrowth() {
    // Memory that the allocator has kept would be used again without growth. The address sanitizer's allocator has
    // nothing to trim, and glibc's, never set up then, crashes.
#ifndef __SANITIZE_ADDRESS__
    malloc_trim(0);
#endif
    reset_ = reset_high_water();
    begin_ = line_of("/proc/self/status", reset_ ? "VmRSS:" : "VmHWM:").value_or(0);
}

Index ResidentGrowth::bytes() const {
    return std::max<Index>(0, line_of("/proc/self/status", "VmHWM:").value_or(0) - begin_);
}

std::string machine_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

}  // namespace reshard::cli
