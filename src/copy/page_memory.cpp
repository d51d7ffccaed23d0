#include "src/copy/page_memory.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "src/base/memory.hpp"
#include "src/base/try.hpp"

namespace reshard {
namespace {

constexpr Index page_bytes = 4096;
/// Pages of this many bytes are claimed at once; fewer are claimed when they are touched.
constexpr Index taken_bytes_min = Index{64} << 20;

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
    RESHARD_TRY([[maybe_unused]] const auto& claim, MemoryClaim::make(bytes));
    void* start = rounded ? std::aligned_alloc(page_bytes, static_cast<std::size_t>(*rounded)) : nullptr;
    if (start == nullptr) return fail(Code::backend, fmt::format("there are no {} bytes of memory to allocate", bytes));
    auto memory = std::make_unique<Pages>(static_cast<std::byte*>(start), bytes);
    // Claim the pages now, so that the next claim no longer counts them as free.
    if (bytes >= taken_bytes_min && !take_anonymous(start, *rounded))
        return fail(Code::backend, fmt::format("there are no {} bytes of memory to allocate", bytes));
    return memory;
}

}  // namespace reshard
