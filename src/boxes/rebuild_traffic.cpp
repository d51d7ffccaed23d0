// The losses of a rebuild, and the bytes that it moves.
#include "src/boxes/rebuild_traffic.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/boxes/routes.hpp"
#include "src/schedule/routing.hpp"

namespace reshard {

namespace {

constexpr std::size_t named_max = 4;  // boxes in an error

BoxTraffic& of_device(std::vector<BoxTraffic>& all, Index device) { return all[static_cast<std::size_t>(device)]; }

// Fails if all holders of some tile are lost.
Result<void> check_left(const RebuildMove& move, const std::vector<Index>& lost) {
    const Network flat;
    const Routing routing(move.source, move.target, 0, flat, lost);
    std::set<TileNumber> gone;
    std::vector<std::string> boxes;
    for (const Index device : lost) {
        if (!position_of(move.source.mesh, device)) continue;
        const TileNumber number = tile_number(move.source, device);
        if (!routing.holders_of(number, 0).empty() || !gone.insert(number).second) continue;
        for (const Box& box : boxes_of(tile_of(move.source, number))) boxes.push_back(box_text(box));
    }
    if (boxes.empty()) return {};
    const std::size_t more = boxes.size() - std::min(boxes.size(), named_max);
    boxes.resize(boxes.size() - more);
    return fail(Code::infeasible,
                fmt::format("only lost devices held {}{} of {}; the devices {} are lost", fmt::join(boxes, ", "),
                            more > 0 ? fmt::format(" and {} more boxes", more) : "", format(move.source),
                            fmt::join(lost, ", ")));
}

}  // namespace

std::vector<Index> ascending(std::span<const Index> devices) {
    const std::set<Index> sorted(devices.begin(), devices.end());
    return {sorted.begin(), sorted.end()};
}

Result<void> check_rebuild(const RebuildMove& move, const std::vector<Index>& lost) {
    RESHARD_CHECK(validate(move.source));
    RESHARD_CHECK(validate(move.target));
    RESHARD_CHECK(same_array(move.source, move.target));
    if (!move.source.unreduced.empty() || !move.target.unreduced.empty())
        return fail(Code::unsupported, "a rebuild takes no summands; reduce the array before it is kept");
    return check_left(move, lost);
}

Result<std::vector<BoxTraffic>> rebuild_traffic(const RebuildMove& move, std::span<const Index> lost) {
    const std::vector<Index> gone = ascending(lost);
    RESHARD_CHECK(check_rebuild(move, gone));
    const Index element_bytes = size_of(move.source.dtype);
    std::vector<BoxTraffic> all(
        static_cast<std::size_t>(std::max(world_size(move.source.mesh), world_size(move.target.mesh))));
    const Network flat;
    const Routing routing(move.source, move.target, 0, flat, gone);
    for (Index position = 0; position < device_count(move.source.mesh); ++position) {
        const Index device = device_at(move.source.mesh, position);
        if (std::ranges::binary_search(gone, device) || count(tile(move.source, device)) == 0) continue;
        const TileNumber number = tile_number(move.source, device);
        const std::vector<Index> holders = routing.holders_of(number, 0);
        if (holders.front() != device) continue;  // one of them speaks for the tile
        for (const Stripes& stripes : routing.stripes_of(number, 0, holders)) {
            for (const Demand& demand : stripes.demands) {
                BoxTraffic& receiver = of_device(all, demand.device);
                receiver.received_bytes += demand.elements * element_bytes;
                stripes.serve(demand, [&](std::size_t place, Index begin, Index end) {
                    if (begin == end) return;
                    BoxTraffic& sender = of_device(all, stripes.holders[place]);
                    sender.sent_bytes += (end - begin) * element_bytes;
                    ++sender.receivers;
                    ++receiver.senders;
                });
            }
        }
    }
    for (Index device = 0; device < std::ssize(all); ++device)
        of_device(all, device).copied_bytes =
            count(tile(move.target, device)) * element_bytes - of_device(all, device).received_bytes;
    return all;
}

}  // namespace reshard
