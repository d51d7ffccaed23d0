#include "src/base/memory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace reshard {

namespace {

/// A machine that runs a process has this much. A question would cost more than the allocation.
constexpr Index asked_bytes_min = Index{4} << 20;
/// One byte in this many is left for programs that allocate without a claim.
constexpr Index left_one_in = 32;
/// This many claims at once are safe without a line.
constexpr Index claims_at_once = 128;
constexpr auto longest_wait = std::chrono::seconds(60);

// A number behind a name: "MemAvailable:  1234 kB" or "inactive_file 1234".
std::optional<Index> number_of(const std::string& path, std::string_view name) {
    std::ifstream file(path);
    for (std::string word; file >> word;) {
        Index number = 0;
        if (word == name && file >> number) return number;
    }
    return std::nullopt;
}

// The file's only number; none where it says "max".
std::optional<Index> number_in(const std::string& path) {
    std::ifstream file(path);
    Index number = 0;
    if (!(file >> number)) return std::nullopt;
    return number;
}

// How a version of control groups calls its files.
struct GroupFiles {
    const char* mount;
    const char* limit;
    const char* used;
    const char* droppable;  // in memory.stat
};
constexpr GroupFiles version_2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles version_2_beside_1{"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles version_1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};

void bound_by_group(const std::string& root, const GroupFiles& files, std::string path, AvailableMemory& available) {
    if (!path.empty() && path.back() == '/') path.pop_back();
    for (;;) {
        const std::string folder = root + files.mount + path + "/";
        const auto limit = number_in(folder + files.limit);
        const auto used = number_in(folder + files.used);
        if (limit && used) {
            const Index droppable = number_of(folder + "memory.stat", files.droppable).value_or(0);
            const Index left = std::max<Index>(*limit - std::max<Index>(*used - droppable, 0), 0);
            if (left < available.bytes)
                available = {left, fmt::format("control group {} of this process", path.empty() ? "/" : path)};
        }
        if (path.empty()) return;
        path.erase(path.rfind('/'));
    }
}

// Lines "number:controllers:path".
void bound_by_groups(const std::string& root, AvailableMemory& available) {
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const std::size_t begin = line.find(':');
        const std::size_t end = begin == std::string::npos ? begin : line.find(':', begin + 1);
        if (end == std::string::npos) continue;
        const std::string path = line.substr(end + 1);
        if (path.empty() || path.front() != '/') continue;
        std::istringstream controllers(line.substr(begin + 1, end - begin - 1));
        std::string controller;
        bool named = false;
        while (std::getline(controllers, controller, ',')) named = named || controller == "memory";
        if (named) bound_by_group(root, version_1, path, available);
        if (end != begin + 1) continue;
        bound_by_group(root, version_2, path, available);
        bound_by_group(root, version_2_beside_1, path, available);
    }
}

Result<void> fits(Index bytes, const AvailableMemory& available) {
    if (bytes <= available.bytes - available.bytes / left_one_in) return {};
    return fail(Code::backend, fmt::format("{} bytes of memory are wanted, and {} has {} bytes available", bytes,
                                           available.holder, available.bytes));
}

// Waits for the lock of a file that every process can read. Returns its descriptor, or -1 if it cannot be locked.
int stand_in_line(const std::string& root) {
    const int place = ::open((root + "/proc/meminfo").c_str(), O_RDONLY | O_CLOEXEC);
    if (place < 0) return -1;
    const auto end = std::chrono::steady_clock::now() + longest_wait;
    while (::flock(place, LOCK_EX | LOCK_NB) != 0) {
        const bool waits = errno == EWOULDBLOCK || errno == EINTR;
        if (!waits || std::chrono::steady_clock::now() > end) {
            ::close(place);
            return -1;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return place;
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
    AvailableMemory available;
    if (const auto kibibytes = number_of(root + "/proc/meminfo", "MemAvailable:"))
        available.bytes = saturating_multiply(*kibibytes, 1024);
    bound_by_groups(root, available);
    return available;
}

MemoryClaim::MemoryClaim(MemoryClaim&& other) noexcept : place_(std::exchange(other.place_, -1)) {}

MemoryClaim& MemoryClaim::operator=(MemoryClaim&& other) noexcept {
    std::swap(place_, other.place_);
    return *this;
}

MemoryClaim::~MemoryClaim() {
    if (place_ >= 0) ::close(place_);
}

Result<MemoryClaim> MemoryClaim::make(Index bytes, const std::string& root) {
    if (bytes < asked_bytes_min) return MemoryClaim();
    const AvailableMemory available = available_memory(root);
    if (auto enough = fits(bytes, available); !enough) return tl::unexpected(enough.error());
    if (bytes < available.bytes / claims_at_once) return MemoryClaim();
    MemoryClaim claim(stand_in_line(root));
    if (auto enough = fits(bytes, available_memory(root)); !enough) return tl::unexpected(enough.error());
    return claim;
}

bool take_anonymous(void* start, Index bytes) {
#ifdef MADV_POPULATE_WRITE
    if (::madvise(start, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0) return true;
    if (errno != EINVAL) return false;  // EINVAL: a system that does not know it
#endif
    constexpr Index page = 4096;
    for (Index at = 0; at < bytes; at += page) static_cast<volatile char*>(start)[at] = 0;
    return true;
}

}  // namespace reshard
