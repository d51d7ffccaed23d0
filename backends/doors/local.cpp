#include "reshard/redistribute.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "reshard/backends/local.hpp"
#include "src/base/try.hpp"

namespace reshard::local {
namespace {

struct Range {
    std::span<const std::byte> bytes;
    std::string_view name;
    std::size_t rank;
    bool written;
};

// Ranks of one process may be given memory in common, which no rank by itself can see.
Result<void> require_apart(std::span<const ConstElements> in, std::span<const Elements> out) {
    std::vector<Range> ranges;
    for (std::size_t rank = 0; rank < in.size(); ++rank) {
        if (!in[rank].bytes.empty()) ranges.push_back({in[rank].bytes, "in", rank, false});
        if (!out[rank].bytes.empty()) ranges.push_back({out[rank].bytes, "out", rank, true});
    }
    const std::less<const std::byte*> before;  // ordered even between unrelated allocations
    std::ranges::sort(ranges, before, [](const Range& range) { return range.bytes.data(); });
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const Range& first = ranges[i];
        const std::byte* const end = first.bytes.data() + first.bytes.size();
        for (std::size_t j = i + 1; j < ranges.size() && before(ranges[j].bytes.data(), end); ++j) {
            const Range& second = ranges[j];
            if (!first.written && !second.written) continue;
            return fail(Code::mismatch, fmt::format("`{}` of rank {} and `{}` of rank {} overlap in memory", first.name,
                                                    first.rank, second.name, second.rank));
        }
    }
    return {};
}

}  // namespace

Result<void> redistribute(World& world, const Layout& source, const Layout& target, std::span<const ConstElements> in,
                          std::span<const Elements> out, const MoveOptions& options) {
    if (std::ssize(in) != world.size() || std::ssize(out) != world.size()) {
        return fail(Code::mismatch, fmt::format("{} ranks were given {} source and {} target tiles", world.size(),
                                                in.size(), out.size()));
    }
    RESHARD_CHECK(require_apart(in, out));
    const auto of = [&](std::size_t rank) -> Redistributor& {
        return Redistributor::of(world.rank(static_cast<Index>(rank)));
    };
    Result<void> moved;
    std::vector<std::unique_ptr<Ticket>> runs;
    for (std::size_t rank = 0; rank < in.size(); ++rank) {  // after an error too, so that all ranks make the same calls
        auto run = of(rank).start(source, target, in[rank], out[rank], options);
        if (run) runs.push_back(std::move(*run));
        if (!run && moved) moved = tl::unexpected(run.error());
    }
    for (auto& run : runs) {
        const auto done = run->wait();
        if (!done && moved) moved = done;
    }
    runs.clear();
    for (std::size_t rank = 0; !moved && rank < in.size(); ++rank) of(rank).clear();
    return moved;
}

}  // namespace reshard::local
