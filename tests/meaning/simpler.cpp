// Simplifies a draft, so that a failing one shows the cause.
#include "meaning/draft.hpp"

namespace reshard::test {

namespace {

/// Adds drafts with one end simplified.
void add_simpler_ends(const Draft& draft, End Draft::*which, std::vector<Draft>& all) {
    const End& end = draft.*which;
    const auto add = [&](const auto& change) {
        Draft less = draft;
        change(less.*which);
        all.push_back(std::move(less));
    };
    if (!end.unreduced.empty()) add([](End& less) { less.unreduced.clear(); });
    for (std::size_t i = 0; i < end.dims.size(); ++i) {
        if (end.dims[i].cut.kind != Cut::Kind::even && end.dims[i].cut.kind != Cut::Kind::chunks)
            add([i](End& less) { less.dims[i].cut = {}; });
        for (std::size_t part = 0; part < end.dims[i].parts.size(); ++part)
            add([i, part](End& less) {
                auto& parts = less.dims[i].parts;
                parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(part));
                if (less.dims[i].cut.kind != Cut::Kind::chunks) less.dims[i].cut = {};
            });
    }
    for (std::size_t part = 0; part < end.unreduced.size(); ++part)
        add([part](End& less) { less.unreduced.erase(less.unreduced.begin() + static_cast<std::ptrdiff_t>(part)); });
    if (end.mesh.devices) add([](End& less) { less.mesh.devices.reset(); });
}

void add_simpler_extents(const Draft& draft, std::vector<Draft>& all) {
    const auto add = [&](const auto& change) {
        Draft less = draft;
        for (End* end : {&less.source, &less.target}) change(*end);
        all.push_back(std::move(less));
    };
    if (draft.source.mesh == draft.target.mesh && draft.source.mesh.devices)
        add([](End& end) { end.mesh.devices.reset(); });
    if (draft.source.dims.size() != draft.target.dims.size()) return;
    for (std::size_t i = 0; i < draft.source.dims.size(); ++i) {
        if (draft.source.dims[i].extent != draft.target.dims[i].extent) continue;
        add([i](End& end) { end.dims.erase(end.dims.begin() + static_cast<std::ptrdiff_t>(i)); });
        const auto plain = [&](const End& end) {
            return end.dims[i].cut.kind != Cut::Kind::shares && end.dims[i].cut.kind != Cut::Kind::pieces;
        };
        if (!plain(draft.source) || !plain(draft.target)) continue;
        const Index extent = draft.source.dims[i].extent;
        for (const Index lower : {Index{1}, extent / 2, extent - 1})
            if (lower > 0 && lower < extent) add([i, lower](End& end) { end.dims[i].extent = lower; });
    }
}

}  // namespace

std::vector<Draft> simpler(const Draft& draft) {
    std::vector<Draft> all;
    const auto add = [&](bool differs, const auto& change) {
        if (!differs) return;
        Draft less = draft;
        change(less);
        all.push_back(std::move(less));
    };
    const bool chunks = draft.notation == Notation::dtensor;  // only DTensor can express these cuts
    add(draft.notation != Notation::jax && !chunks, [](Draft& less) { less.notation = Notation::jax; });
    add(draft.footprint.has_value(), [](Draft& less) { less.footprint.reset(); });
    add(draft.peak.has_value(), [](Draft& less) { less.peak.reset(); });
    add(draft.donate, [](Draft& less) { less.donate = false; });
    add(!draft.machine.empty(), [](Draft& less) { less.machine.clear(); });
    add(draft.objective != Objective::time, [](Draft& less) { less.objective = Objective::time; });
    add(draft.vocabulary != Vocabulary::all, [](Draft& less) { less.vocabulary = Vocabulary::all; });
    add(draft.dtype != DType::f32, [](Draft& less) { less.dtype = DType::f32; });
    add_simpler_extents(draft, all);
    add_simpler_ends(draft, &Draft::source, all);
    add_simpler_ends(draft, &Draft::target, all);
    if (draft.notation != Notation::jax)
        std::erase_if(all, [](const Draft& less) {
            return less.notation != Notation::jax &&
                   (!foreign_text(less, less.source) || !foreign_text(less, less.target));
        });
    return all;
}

}  // namespace reshard::test
