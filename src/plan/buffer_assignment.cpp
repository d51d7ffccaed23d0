#include "src/plan/buffer_assignment.hpp"
#include "src/tables/step_kinds.hpp"

#include <algorithm>

namespace reshard {

namespace {

// The first of several equally good places wins.
constexpr std::array<BufferId, 3> assignable = {BufferId::target, BufferId::source, BufferId::workspace};

// True if the step writes a tile by copies alone, which may cast each element.
bool copies(const Plan& plan, std::size_t step) {
    if (step >= plan.steps.size()) return false;
    const StepKind kind = plan.steps[step].kind;
    return kind != StepKind::cast && !is_alias(kind) && !changes_summands(kind);
}

bool is_cast(const Plan& plan, std::size_t step) {
    return step < plan.steps.size() && plan.steps[step].kind == StepKind::cast;
}

bool casts_with_next(const Plan& plan, std::size_t step) { return is_cast(plan, step) && copies(plan, step + 1); }

bool casts_with_last(const Plan& plan, std::size_t step) {
    return is_cast(plan, step) && !copies(plan, step + 1) && step > 0 && copies(plan, step - 1);
}

bool writes_tile(const Plan& plan, std::size_t step) {
    if (is_part_of_copy(plan, step)) return false;
    const auto kind = [&](std::size_t i) { return plan.steps[i].kind; };
    if (!is_alias(kind(step))) return true;
    if (kind(step) == StepKind::view) return false;
    return step + 1 == plan.steps.size() || kind(step + 1) == StepKind::view;
}

std::size_t first_written(const Plan& plan) {
    std::size_t step = 0;
    while (step < plan.steps.size() && !writes_tile(plan, step)) ++step;
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
    const Layout& whole = behind_views(plan, 0);
    Layout slice = first_read(plan);
    slice.dtype = whole.dtype;  // it is read before it is cast
    if (!divides(whole) || !divides(slice) || tile_bytes(slice) == 0) return 0;
    bool outer = true;  // true while all dimensions before have one index: then later dimensions may be cut
    for (std::size_t k = 0; k < whole.dims.size(); ++k) {
        if (!outer && tile_extent(slice.dims[k]) != tile_extent(whole.dims[k])) return 0;
        outer = outer && tile_extent(slice.dims[k]) == 1;
    }
    return tile_bytes(whole) / tile_bytes(slice) / 2 * tile_bytes(slice);
}

// The least workspace of the tiles up to one that lies in a certain place. index_max: none, or beyond 64 bits.
struct Least {
    Index bytes = index_max;
    BufferId before = BufferId::workspace;  ///< where the tile before lies then
};

// For each place.
struct Leasts {
    std::array<Least, assignable.size()> of;
    Least& operator[](BufferId buffer) { return of[static_cast<std::size_t>(buffer)]; }
    const Least& operator[](BufferId buffer) const { return of[static_cast<std::size_t>(buffer)]; }
};

class Placer {
public:
    Placer(const Plan& plan, const Capacities& capacities) : plan_(plan), capacities_(capacities) {
        for (std::size_t i = 0; i < plan.steps.size(); ++i) {
            if (!writes_tile(plan, i)) continue;
            placed_.written.push_back(i);
            bytes_.push_back(tile_bytes(written_layout(plan, i)));
        }
    }

    BufferAssignment assign() {
        if (bytes_.empty()) return std::move(placed_);
        std::vector<Leasts> least(bytes_.size());
        for (std::size_t i = 0; i < bytes_.size(); ++i)
            for (const BufferId buffer : assignable)
                if (fits(i, buffer)) least[i][buffer] = i == 0 ? alone(buffer) : after(least[i - 1], i, buffer);
        BufferId buffer = BufferId::target;
        placed_.places.resize(bytes_.size());
        placed_.workspace_bytes = least.back()[buffer].bytes;
        for (std::size_t i = bytes_.size(); i-- > 0; buffer = least[i][buffer].before)
            placed_.places[i].buffer = buffer;
        set_offsets();
        return std::move(placed_);
    }

private:
    // A device that is not among an end's has no memory there.
    [[nodiscard]] bool fits(std::size_t i, BufferId buffer) const {
        const Mesh& mesh = plan_.steps[placed_.written[i]].layout.mesh;
        if (i + 1 == bytes_.size()) return buffer == BufferId::target;
        switch (buffer) {
            case BufferId::source:
                return bytes_[i] <= (i == 0 ? capacities_.unread : capacities_.source) &&
                       same_devices(mesh, plan_.source.mesh);
            case BufferId::target:
                return bytes_[i] <= capacities_.target && same_devices(mesh, plan_.target.mesh);
            case BufferId::workspace:
            case BufferId::staging:
                break;
        }
        return true;
    }
    [[nodiscard]] Least alone(BufferId buffer) const { return {buffer == BufferId::workspace ? bytes_[0] : 0, buffer}; }
    [[nodiscard]] Least after(const Leasts& before, std::size_t i, BufferId buffer) const {
        Least best;
        for (const BufferId other : assignable) {
            if (other == buffer && buffer != BufferId::workspace) continue;
            Index bytes = buffer == BufferId::workspace ? bytes_[i] : 0;
            if (other == buffer) bytes = saturating_add(bytes, bytes_[i - 1]);
            bytes = std::max(bytes, before[other].bytes);
            if (bytes < best.bytes) best = {bytes, other};
        }
        return best;
    }
    void set_offsets() {
        bool at_end = false;
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            const bool here = placed_.places[i].buffer == BufferId::workspace;
            at_end = here && i > 0 && placed_.places[i - 1].buffer == BufferId::workspace && !at_end;
            if (at_end) placed_.places[i].offset_bytes = placed_.workspace_bytes - bytes_[i];
        }
    }

    const Plan& plan_;
    const Capacities& capacities_;
    BufferAssignment placed_;
    std::vector<Index> bytes_;  // of the tiles that are written
};

}  // namespace

bool is_part_of_copy(const Plan& plan, std::size_t step) {
    return casts_with_next(plan, step) || casts_with_last(plan, step);
}

DType read_dtype(const Plan& plan, std::size_t step) {
    return layout_before(plan, step > 0 && casts_with_next(plan, step - 1) ? step - 1 : step).dtype;
}

const Layout& written_layout(const Plan& plan, std::size_t step) {
    return plan.steps[casts_with_last(plan, step + 1) ? step + 1 : step].layout;
}

const Layout& first_read(const Plan& plan) { return layout_before(plan, first_written(plan)); }

const Layout& behind_views(const Plan& plan, std::size_t step) {
    if (casts_with_last(plan, step)) ++step;
    while (step < plan.steps.size() && plan.steps[step].kind == StepKind::view) ++step;
    return layout_before(plan, step);
}

bool writes(const Plan& plan) {
    const auto last = std::find_if(plan.steps.rbegin(), plan.steps.rend(),
                                   [](const Step& step) { return step.kind != StepKind::view; });
    return last != plan.steps.rend() && !is_alias(last->kind);
}

Capacities capacities_of(const Plan& plan, bool donate) {
    Capacities room{smallest_tile_bytes(plan.target)};
    if (!donate) return room;
    room.source = smallest_tile_bytes(plan.source);
    room.unread = unread_bytes(plan);
    return room;
}

BufferAssignment assign_buffers(const Plan& plan, const Capacities& capacities) {
    return Placer(plan, capacities).assign();
}

}  // namespace reshard
