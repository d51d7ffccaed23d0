// Memory with known contents, and the traces that a registration may leave.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <fstream>
#include <string>

#include "backends/mpi/shm/registered_pages.hpp"

namespace reshard::test {

inline constexpr std::size_t page = 4096;
inline constexpr std::size_t mebi = std::size_t{1} << 20;

inline std::byte value_at(std::size_t index, unsigned salt) {
    return std::byte(static_cast<unsigned char>(index * 7 + (index >> 12) * 13 + salt));
}

inline void fill(std::span<std::byte> memory, unsigned salt) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = value_at(i, salt);
}

inline bool holds(std::span<const std::byte> memory, unsigned salt) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory[i] != value_at(i, salt)) return false;
    }
    return true;
}

// Addresses from the system; private pages by default.
class Mapped {
public:
    explicit Mapped(std::size_t bytes, int protection = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE | MAP_ANONYMOUS,
                    int descriptor = -1)
        : bytes_(bytes), start_(static_cast<std::byte*>(mmap(nullptr, bytes, protection, flags, descriptor, 0))) {}
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    ~Mapped() {
        if (made()) munmap(start_, bytes_);
    }
    [[nodiscard]] bool made() const { return start_ != MAP_FAILED; }
    [[nodiscard]] std::span<std::byte> bytes() const { return {start_, bytes_}; }

private:
    std::size_t bytes_;
    std::byte* start_;
};

inline Result<std::shared_ptr<mpi::RegisteredPages>> registered(std::span<std::byte> memory,
                                                                OnFork on_fork = OnFork::share) {
    return mpi::RegisteredPages::make(memory, on_fork, [](Index) {});
}

inline int count_of_lines(const char* path, const std::string& word) {
    std::ifstream file(path);
    int found = 0;
    for (std::string line; std::getline(file, line);) found += line.find(word) != std::string::npos ? 1 : 0;
    return found;
}

inline int open_descriptors() {
    int open = 0;
    for (int descriptor = 0; descriptor < 256; ++descriptor) open += fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
    return open;
}

// Traces that a registration must not leave.
struct Traces {
    int descriptors = open_descriptors();
    int mappings = count_of_lines("/proc/self/maps", "memfd:reshard");
    friend bool operator==(const Traces&, const Traces&) = default;
};

}  // namespace reshard::test
