#include "placement.hpp"

#include <algorithm>

namespace reshard {

TilePlaces place_tiles(const Plan& plan, Index target_room) {
    TilePlaces placement;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const bool last = i + 1 == plan.steps.size();
        if (plan.steps[i].kind != StepKind::slice || last) placement.written.push_back(i);
    }
    const std::size_t written = placement.written.size();
    placement.places.resize(written);
    const auto bytes_back = [&](std::size_t back) {
        return tile_bytes(plan.steps[placement.written[written - 1 - back]].layout);
    };
    Index odd_bytes = 0;
    for (std::size_t back = 1; back < written; back += 2) odd_bytes = std::max(odd_bytes, bytes_back(back));
    Index even_bytes = 0;
    for (std::size_t back = 0; back < written; back += 2) {
        const bool fits = back == 0 || bytes_back(back) <= target_room;
        if (!fits) even_bytes = std::max(even_bytes, bytes_back(back));
        placement.places[written - 1 - back] =
            fits ? TilePlace{Place::target, 0} : TilePlace{Place::workspace, odd_bytes};
    }
    placement.workspace_bytes = saturating_add(odd_bytes, even_bytes);
    return placement;
}

Index target_room_bytes(const Plan& plan) {
    // A device that is not in the target's mesh has no memory there.
    const auto elsewhere = [&](const Step& step) { return !same_devices(step.layout.mesh, plan.target.mesh); };
    if (std::ranges::any_of(plan.steps, elsewhere)) return 0;
    Index bytes = size_of(plan.target.dtype);
    for (const Dim& dim : plan.target.dims) bytes *= tile_extent_min(dim);
    return bytes;
}

}  // namespace reshard
