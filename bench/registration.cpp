// The time of registering memory, beside touching as much fresh shared memory and copying into it: in turn, one line of
// JSON. registration [--bytes N] [--rounds N]
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/mpi/shm/registered_pages.hpp"

namespace {

using namespace reshard;
using mpi::RegisteredPages;

double seconds_of(const std::function<void()>& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// Memory of the caller's, in small pages or as the system likes.
class Caller {
public:
    explicit Caller(std::size_t bytes) : bytes_(bytes) {
        start_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start_ == MAP_FAILED) std::abort();
        std::memset(start_, 1, bytes);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    ~Caller() { munmap(start_, bytes_); }
    [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

private:
    std::size_t bytes_;
    void* start_;
};

// The same for a program that copies into its own shared memory; huge pages on request, or as the system gives them.
void touch_and_copy(std::span<const std::byte> from, bool huge) {
    const int descriptor = memfd_create("baseline", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(from.size())) != 0) std::abort();
    void* const start = mmap(nullptr, from.size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED) std::abort();
    if (huge) madvise(start, from.size(), MADV_HUGEPAGE);
    for (std::size_t at = 0; at < from.size(); at += 4096) static_cast<volatile std::byte*>(start)[at] = std::byte{0};
    std::memcpy(start, from.data(), from.size());
    munmap(start, from.size());
    close(descriptor);
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t bytes = std::size_t{256} << 20;
    int rounds = 11;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--bytes") bytes = std::strtoull(argv[i + 1], nullptr, 10);
        if (std::string(argv[i]) == "--rounds") rounds = std::atoi(argv[i + 1]);
    }
    std::vector<double> there;
    std::vector<double> back;
    std::vector<double> small;
    std::vector<double> huge;
    std::vector<double> over_small;
    std::vector<double> over_huge;
    Index held = 0;
    Index most = 0;
    for (int round = 0; round < rounds; ++round) {
        const Caller caller(bytes);
        small.push_back(seconds_of([&] { touch_and_copy(caller.bytes(), false); }));
        huge.push_back(seconds_of([&] { touch_and_copy(caller.bytes(), true); }));
        std::shared_ptr<RegisteredPages> pages;
        there.push_back(seconds_of([&] {
            auto made = RegisteredPages::make(caller.bytes(), OnFork::share, [&](Index change) {
                held += change;
                most = std::max(most, held);
            });
            if (!made) {
                fmt::print(stderr, "{}\n", made.error().message);
                std::exit(1);
            }
            pages = std::move(*made);
        }));
        back.push_back(seconds_of([&] { static_cast<void>(pages->end()); }));
        over_small.push_back(there.back() / small.back());
        over_huge.push_back(there.back() / huge.back());
    }
    fmt::print(
        "{{\"bytes\":{},\"rounds\":{},\"register_seconds\":{:.6f},\"end_seconds\":{:.6f},"
        "\"touch_and_copy_seconds\":{:.6f},\"touch_and_copy_huge_seconds\":{:.6f},\"register_over_touch\":{:.3f},"
        "\"register_over_touch_huge\":{:.3f},\"most_bytes_beside\":{}}}\n",
        bytes, rounds, median(there), median(back), median(small), median(huge), median(over_small), median(over_huge),
        most);
    return 0;
}
