#include "backends/mpi/shm/shadow_copies.hpp"

#include <algorithm>

namespace reshard::mpi {
namespace {

struct Loop {
    Index extent;
    Index stride;
    Index inner;  // bytes from the first element of one index to the end of its last
};

// Outermost first. Dimensions of extent 1 are left out.
std::vector<Loop> loops_of(const Region& region) {
    std::vector<Loop> loops;
    for (std::size_t k = 0; k < region.extents.size(); ++k) {
        if (region.extents[k] != 1) loops.push_back({region.extents[k], region.strides_bytes[k], 0});
    }
    std::ranges::stable_sort(loops, [](const Loop& a, const Loop& b) { return a.stride > b.stride; });
    Index inner = region.element_bytes;
    for (std::size_t k = loops.size(); k-- > 0;) {
        loops[k].inner = inner;
        inner += (loops[k].extent - 1) * loops[k].stride;
    }
    return loops;
}

// Calls `visit` with each run of bytes that lies inside [begin, end).
template <class Visit>
void walk(std::span<const Loop> loops, Index offset, Index run, Index begin, Index end, const Visit& visit) {
    const bool dense = loops.size() == 1 && loops.front().stride == run;
    if (loops.empty() || dense) {
        const Index last = offset + (dense ? run * loops.front().extent : run);
        if (std::max(offset, begin) < std::min(last, end)) visit(std::max(offset, begin), std::min(last, end));
        return;
    }
    const Loop& loop = loops.front();
    const Index before = std::max<Index>(begin - offset - loop.inner, 0) / loop.stride;  // they end before the range
    for (Index i = before; i < loop.extent && offset + i * loop.stride < end; ++i)
        walk(loops.subspan(1), offset + i * loop.stride, run, begin, end, visit);
}

}  // namespace

void add_shadow_copies(std::vector<ShadowCopy>& copies, const PeerRegion& part, const Region& region,
                       const std::byte* start, const RegisteredPages& pages) {
    if (std::ranges::find(region.extents, 0) != region.extents.end()) return;
    const auto origin = reinterpret_cast<std::uintptr_t>(start);
    const std::vector<Loop> loops = loops_of(region);
    for (const AddressRange& some : pages.partial()) {
        if (some.empty()) continue;
        const auto begin = static_cast<Index>(some.begin - origin);  // below 0 if it lies before the start
        const auto end = static_cast<Index>(some.end - origin);
        walk(loops, region.offset_bytes, region.element_bytes, begin, end, [&](Index from, Index to) {
            const std::uintptr_t address = origin + static_cast<std::uintptr_t>(from);
            copies.push_back({part.array, part.peer, reinterpret_cast<std::byte*>(address), pages.shadow_of(address),
                              static_cast<std::size_t>(to - from)});
        });
    }
}

}  // namespace reshard::mpi
