#include "placement.hpp"

#include <algorithm>

namespace reshard {

namespace {

// Of places that are as good the first.
constexpr std::array<Place, 3> all_places = {Place::target, Place::source, Place::workspace};

std::size_t first_written(const Plan& plan) {
    std::size_t step = 0;
    while (step + 1 < plan.steps.size() && plan.steps[step].kind == StepKind::slice) ++step;
    return step;
}

Index smallest_tile_bytes(const Layout& layout) {
    Index bytes = size_of(layout.dtype);
    for (const Dim& dim : layout.dims) bytes *= tile_extent_min(dim);
    return bytes;
}

// A slice that is one run of a row-major source is one of several that follow each other there. Whichever it is, half
// of them, rounded down, lie on the same side of it.
Index unread_bytes(const Plan& plan) {
    const Layout& whole = plan.source;
    const Layout& slice = first_read(plan);
    if (!divides(whole) || !divides(slice) || tile_bytes(slice) == 0) return 0;
    bool outer = true;  // so far single indices: those of later dimensions may be cut
    for (std::size_t k = 0; k < whole.dims.size(); ++k) {
        if (!outer && tile_extent(slice.dims[k]) != tile_extent(whole.dims[k])) return 0;
        outer = outer && tile_extent(slice.dims[k]) == 1;
    }
    return tile_bytes(whole) / tile_bytes(slice) / 2 * tile_bytes(slice);
}

// The least workspace of the tiles up to one that lies in a certain place. index_max: none, or beyond 64 bits.
struct Least {
    Index bytes = index_max;
    Place before = Place::workspace;  ///< where the tile before lies then
};

// Of each place.
struct Leasts {
    std::array<Least, all_places.size()> of;
    Least& operator[](Place place) { return of[static_cast<std::size_t>(place)]; }
    const Least& operator[](Place place) const { return of[static_cast<std::size_t>(place)]; }
};

class Placer {
public:
    Placer(const Plan& plan, const Rooms& rooms) : plan_(plan), rooms_(rooms) {
        for (std::size_t i = first_written(plan); i < plan.steps.size(); ++i) {
            const bool last = i + 1 == plan.steps.size();
            if (plan.steps[i].kind == StepKind::slice && !last) continue;
            placed_.written.push_back(i);
            bytes_.push_back(tile_bytes(plan.steps[i].layout));
        }
    }

    TilePlaces place() {
        if (bytes_.empty()) return std::move(placed_);
        std::vector<Leasts> least(bytes_.size());
        for (std::size_t i = 0; i < bytes_.size(); ++i)
            for (const Place place : all_places)
                if (fits(i, place)) least[i][place] = i == 0 ? alone(place) : after(least[i - 1], i, place);
        Place place = Place::target;
        placed_.places.resize(bytes_.size());
        placed_.workspace_bytes = least.back()[place].bytes;
        for (std::size_t i = bytes_.size(); i-- > 0; place = least[i][place].before) placed_.places[i].place = place;
        set_offsets();
        return std::move(placed_);
    }

private:
    // A device that is not among an end's has no memory there.
    [[nodiscard]] bool fits(std::size_t i, Place place) const {
        const Mesh& mesh = plan_.steps[placed_.written[i]].layout.mesh;
        if (i + 1 == bytes_.size()) return place == Place::target;
        switch (place) {
            case Place::source:
                return bytes_[i] <= (i == 0 ? rooms_.unread : rooms_.source) && same_devices(mesh, plan_.source.mesh);
            case Place::target:
                return bytes_[i] <= rooms_.target && same_devices(mesh, plan_.target.mesh);
            case Place::workspace:
                break;
        }
        return true;
    }
    [[nodiscard]] Least alone(Place place) const { return {place == Place::workspace ? bytes_[0] : 0, place}; }
    [[nodiscard]] Least after(const Leasts& before, std::size_t i, Place place) const {
        Least best;
        for (const Place other : all_places) {
            if (other == place && place != Place::workspace) continue;
            Index bytes = place == Place::workspace ? bytes_[i] : 0;
            if (other == place) bytes = saturating_add(bytes, bytes_[i - 1]);
            bytes = std::max(bytes, before[other].bytes);
            if (bytes < best.bytes) best = {bytes, other};
        }
        return best;
    }
    void set_offsets() {
        bool at_end = false;
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            const bool here = placed_.places[i].place == Place::workspace;
            at_end = here && i > 0 && placed_.places[i - 1].place == Place::workspace && !at_end;
            if (at_end) placed_.places[i].offset_bytes = placed_.workspace_bytes - bytes_[i];
        }
    }

    const Plan& plan_;
    const Rooms& rooms_;
    TilePlaces placed_;
    std::vector<Index> bytes_;  // of the tiles that are written
};

}  // namespace

const Layout& first_read(const Plan& plan) { return layout_before(plan, first_written(plan)); }

Rooms rooms_of(const Plan& plan, bool donate) {
    Rooms rooms{smallest_tile_bytes(plan.target)};
    if (!donate) return rooms;
    rooms.source = smallest_tile_bytes(plan.source);
    rooms.unread = unread_bytes(plan);
    return rooms;
}

TilePlaces place_tiles(const Plan& plan, const Rooms& rooms) { return Placer(plan, rooms).place(); }

}  // namespace reshard
