#include "src/copy/page_memory.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard {
namespace {

constexpr Index page_bytes = 4096;

class Pages final : public Memory {
public:
    Pages(std::byte* start, Index bytes) : start_(start), bytes_(bytes) {}
    ~Pages() override { std::free(start_); }
    std::span<std::byte> bytes() override { return {start_, static_cast<std::size_t>(bytes_)}; }

private:
    std::byte* start_;
    Index bytes_;
};

}  // namespace

Result<std::unique_ptr<Memory>> allocate_pages(Index bytes) {
    if (bytes < 0) return fail(Code::mismatch, fmt::format("cannot allocate {} bytes", bytes));
    const Index pages = ceil_divide(bytes, page_bytes) + (bytes == 0 ? 1 : 0);
    const auto rounded = checked_multiply(pages, page_bytes);
    void* start = rounded ? std::aligned_alloc(page_bytes, static_cast<std::size_t>(*rounded)) : nullptr;
    if (start == nullptr) return fail(Code::backend, fmt::format("there are no {} bytes of memory to allocate", bytes));
    return std::make_unique<Pages>(static_cast<std::byte*>(start), bytes);
}

Result<bool> Ticket::wait_for(Index) { return test(); }

Result<void> Ticket::wait() {
    constexpr Index slice = 20'000;  // microseconds
    for (;;) {
        RESHARD_TRY(const auto& done, wait_for(slice));
        if (done) return {};
    }
}

Result<std::unique_ptr<Ticket>> Bound::start_on(void* queue) {
    if (queue == nullptr) return start();
    return fail(Code::unsupported, "this backend runs on no queue");
}

Result<void> Backend::put(std::span<const std::byte> own, std::span<std::byte> memory) {
    if (!own.empty()) std::memcpy(memory.data(), own.data(), own.size());
    return {};
}

Result<void> Backend::get(std::span<const std::byte> memory, std::span<std::byte> own) {
    return Backend::put(memory, own);
}

}  // namespace reshard
