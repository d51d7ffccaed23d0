#include "backends/mpi/shm/mappings.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// linux/fs.h has it since 6.11; the system tells by itself whether it does.
struct MappingQuery {
    std::uint64_t size = 0;
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t permissions = 0;
    std::uint64_t page_bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::uint32_t device[2] = {};
    std::uint32_t name_bytes = 0;
    std::uint32_t build_bytes = 0;
    std::uint64_t name = 0;
    std::uint64_t build = 0;
};
static_assert(sizeof(MappingQuery) == 104);
constexpr unsigned long query_mapping = _IOWR('f', 17, MappingQuery);

class OpenFile {
public:
    explicit OpenFile(const char* path) : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    [[nodiscard]] int get() const { return descriptor_; }

private:
    int descriptor_;
};

template <class Number>
bool read_number(std::string_view text, int base, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return error == std::errc() && end == text.data() + text.size();
}

std::optional<Mapping> mapping_in(const std::string& line) {
    std::istringstream words(line);
    Mapping mapping;
    std::string range;
    std::string offset;
    std::string device;
    words >> range >> mapping.permissions >> offset >> device >> mapping.inode;
    std::getline(words >> std::ws, mapping.name);
    const std::size_t dash = range.find('-');
    const bool read = dash != std::string::npos && read_number(range.substr(0, dash), 16, mapping.range.begin) &&
                      read_number(range.substr(dash + 1), 16, mapping.range.end) &&
                      read_number(offset, 16, mapping.offset);
    return read ? std::optional(std::move(mapping)) : std::nullopt;
}

tl::unexpected<Error> refused(std::string_view reason) {
    return fail(Code::usage, fmt::format("this memory cannot be registered: {}", reason));
}

// The stack of the calling thread. The system names only the first thread's stack.
AddressRange own_stack() {
    AddressRange stack;
#if defined(__GLIBC__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return stack;
    void* start = nullptr;
    std::size_t bytes = 0;
    if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) {
        stack.begin = reinterpret_cast<std::uintptr_t>(start);
        stack.end = stack.begin + bytes;
    }
    pthread_attr_destroy(&attributes);
#endif
    return stack;
}

Result<void> judge(const Mapping& mapping) {
    if (mapping.name.starts_with("[stack")) return refused("it lies on a stack");
    if (mapping.name.starts_with("/memfd:reshard"))
        return refused("its pages are registered already, or the backend's own");
    if (mapping.name.starts_with("/anon_hugepage")) return refused("it lies in pages of hugetlbfs");
    if (mapping.inode != 0) return refused(fmt::format("it shows a file, {}", mapping.name));
    if (mapping.permissions.size() < 4 || mapping.permissions[3] != 'p') return refused("it is shared with others");
    if (!mapping.permissions.starts_with("rw-"))
        return refused(fmt::format("its pages are '{}', not readable and writable and no more", mapping.permissions));
    if (mapping.name.starts_with("[") && mapping.name != "[heap]" && !mapping.name.starts_with("[anon"))
        return refused(fmt::format("it is the system's, {}", mapping.name));
    return {};
}

// Asks /proc/self/smaps, which looks at every page of the process. So it is read only if there is a reason.
bool may_be_held() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        Index kibibytes = 0;
        if (word == "VmLck:" && status >> kibibytes && kibibytes > 0) return true;
    }
    bool found = false;
    DIR* const folder = opendir("/proc/self/fd");
    if (folder == nullptr) return true;
    while (const dirent* entry = readdir(folder)) {
        std::array<char, 64> target{};
        const ssize_t bytes = readlinkat(dirfd(folder), entry->d_name, target.data(), target.size());
        found = found ||
                (bytes > 0 && std::string_view(target.data(), static_cast<std::size_t>(bytes)).find("userfaultfd") !=
                                  std::string_view::npos);
    }
    closedir(folder);
    return found;
}

Result<void> held_by_nobody(const AddressRange& range) {
    std::ifstream file("/proc/self/smaps");
    if (!file) return fail(Code::backend, "/proc/self/smaps cannot be read");
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        const bool flags = line.starts_with("VmFlags:");
        if (const auto mapping = flags ? std::nullopt : mapping_in(line)) {
            if (mapping->range.begin >= range.end) break;
            inside = mapping->range.end > range.begin;
        }
        if (!inside || !flags) continue;
        std::istringstream words(line);
        for (std::string flag; words >> flag;) {
            if (flag == "lo" || flag == "lf") return refused("its pages are locked (mlock)");
            if (flag == "um" || flag == "uw" || flag == "ui") return refused("its faults are another's (userfaultfd)");
        }
    }
    return {};
}

// Empty where this way has no answer.
std::optional<bool> shows_by_address(const FileView& view) {
    const OpenFile maps("/proc/self/maps");
    for (std::uintptr_t at = view.range.begin; at < view.range.end;) {
        MappingQuery query;
        query.size = sizeof query;
        query.address = at;
        if (ioctl(maps.get(), query_mapping, &query) != 0)
            return errno == ENOENT ? std::optional(false) : std::nullopt;  // nothing there, or no such question
        const bool same =
            query.inode == view.inode && at + query.offset == query.begin + view.offset + (at - view.range.begin);
        if (!same) return false;
        at = query.end;
    }
    return true;
}

std::optional<bool> shows_by_link(const FileView& view) {
    const std::string path = fmt::format("/proc/self/map_files/{:x}-{:x}", view.range.begin, view.range.end);
    std::array<char, 128> target{};
    const ssize_t bytes = readlink(path.c_str(), target.data(), target.size());
    if (bytes <= 0) return std::nullopt;  // cut in parts, gone, or a system without
    return std::string_view(target.data(), static_cast<std::size_t>(bytes)) == view.name;
}

bool shows_by_list(const FileView& view) {
    const auto found = mappings_of(view.range);
    if (!found) return false;
    std::uintptr_t at = view.range.begin;
    for (const Mapping& mapping : *found) {
        const std::uint64_t offset = view.offset + (at - view.range.begin);
        if (mapping.range.begin > at || mapping.inode != view.inode || mapping.name != view.name) return false;
        if (mapping.offset + (at - mapping.range.begin) != offset) return false;
        at = mapping.range.end;
    }
    return at >= view.range.end;
}

}  // namespace

std::uintptr_t page_bytes() {
    static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

Result<std::vector<Mapping>> mappings_of(const AddressRange& range) {
    std::ifstream file("/proc/self/maps");
    if (!file) return fail(Code::backend, "/proc/self/maps cannot be read");
    std::vector<Mapping> found;
    for (std::string line; std::getline(file, line);) {
        auto mapping = mapping_in(line);
        if (!mapping) return fail(Code::backend, fmt::format("/proc/self/maps has the line '{}'", line));
        if (mapping->range.begin >= range.end) break;
        if (mapping->range.end > range.begin) found.push_back(std::move(*mapping));
    }
    return found;
}

Result<void> may_change_pages(const AddressRange& range) {
    RESHARD_TRY(const auto& found, mappings_of(range));
    std::uintptr_t at = range.begin;
    for (const Mapping& mapping : found) {
        if (mapping.range.begin > at) break;
        RESHARD_CHECK(judge(mapping));
        at = mapping.range.end;
    }
    if (at < range.end) return refused(fmt::format("nothing is mapped at {:#x}", at));
    if (const AddressRange stack = own_stack(); range.begin < stack.end && stack.begin < range.end)
        return refused("it lies on a stack");
    return may_be_held() ? held_by_nobody(range) : Result<void>();
}

bool shows(const FileView& view, Asked first) {
    if (view.range.empty()) return true;
    if (first == Asked::by_address) {
        if (const auto answer = shows_by_address(view)) return *answer;
    }
    if (first != Asked::by_list) {
        if (const auto answer = shows_by_link(view)) return *answer;
    }
    return shows_by_list(view);
}

}  // namespace reshard::mpi
