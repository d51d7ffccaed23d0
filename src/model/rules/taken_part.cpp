#include "src/model/rules/taken_part.hpp"

#include <numeric>

#include <fmt/format.h>

#include "src/base/try.hpp"

namespace reshard::notation {

namespace {

constexpr Index windows_max = Index{1} << 24;

// The indices from `side.begin` to `side.end` of each period. They are within the dimension.
Result<Windows> windows_of(const Slice& slice, Interval side, Index extent) {
    if (slice.period > 0) {
        if (extent % slice.period != 0)
            return fail(Code::mismatch, fmt::format("{} indices are not whole periods of {}", extent, slice.period));
        return Windows{side.begin, side.size(), slice.period, extent / slice.period};
    }
    if (slice.step == 1 || side.size() <= 1) return one_window(side);
    return Windows{side.begin, 1, slice.step, ceil_divide(side.size(), slice.step)};
}

// Tells whether a window from `begin` to `end` shares an index with `windows`.
bool meet(const Windows& windows, Index begin, Index end) {
    const Index past = begin - windows.begin - windows.width;
    const Index first = past < 0 ? 0 : past / windows.period + 1;  // that ends after `begin`
    return first < windows.count && windows.begin + first * windows.period < end;
}

bool meet(const Windows& a, const Windows& b) {
    if (a.size() == 0 || b.size() == 0) return false;
    if (a.count > b.count) return meet(b, a);
    for (Index i = 0; i < a.count; ++i)
        if (meet(b, a.begin + i * a.period, a.begin + i * a.period + a.width)) return true;
    return false;
}

}  // namespace

Taken whole_of(std::size_t tensor, const ListedTensor& listed, std::size_t rule) {
    Taken taken{tensor, std::nullopt, listed.shape, std::vector<std::size_t>(listed.shape.size()), rule};
    std::iota(taken.kept.begin(), taken.kept.end(), std::size_t{0});
    return taken;
}

namespace {

Result<Taken> without_order(const Taken& whole, const ListedTensor& listed, const RulePart& part,
                            const Bindings& names) {
    if (!part.slices) return whole;
    if (part.slices->size() != listed.shape.size())
        return fail(Code::mismatch, fmt::format("{} slices of '{}', which has {} dimensions", part.slices->size(),
                                                listed.name, listed.shape.size()));
    Taken taken{whole.tensor, std::vector<Windows>{}, {}, {}, whole.rule};
    for (std::size_t k = 0; k < listed.shape.size(); ++k) {
        const Slice& slice = (*part.slices)[k];
        Interval side = slice.indices.value_or(Interval{0, listed.shape[k]});
        if (side.end == index_max) side.end = listed.shape[k];
        if (!slice.name.empty()) {
            const Index index = number_below(value_in(names, slice.name), index_max);
            side = {index, saturating_add(index, 1)};
        }
        if (side.begin < 0 || side.end < side.begin || side.end > listed.shape[k])
            return fail(Code::mismatch, fmt::format("there are no indices {}:{} in dimension {} of '{}', which has {}",
                                                    side.begin, side.end, k, listed.name, listed.shape[k]));
        RESHARD_TRY(const auto& windows, windows_of(slice, side, listed.shape[k]));
        if (windows.count > windows_max)
            return fail(Code::unsupported, fmt::format("more than {} steps in dimension {}", windows_max, k));
        taken.sides->push_back(windows);
        if (slice.drops) continue;
        taken.shape.push_back(windows.size());
        taken.kept.push_back(k);
    }
    return taken;
}

}  // namespace

Result<Taken> sliced(const Taken& whole, const ListedTensor& listed, const RulePart& part, const Bindings& names) {
    RESHARD_TRY(auto& taken, without_order(whole, listed, part, names));
    if (part.order.empty()) return std::move(taken);
    if (part.order.size() != taken.shape.size())
        return fail(Code::mismatch, fmt::format("an order of {} dimensions for the {} of '{}'", part.order.size(),
                                                taken.shape.size(), listed.name));
    const std::vector<Index> extents = std::exchange(taken.shape, {});
    const std::vector<std::size_t> kept = std::exchange(taken.kept, {});
    for (const std::size_t k : part.order) {
        taken.shape.push_back(extents[k]);
        taken.kept.push_back(kept[k]);
    }
    return std::move(taken);
}

bool overlap(const Taken& a, const Taken& b) {
    if (!a.sides || !b.sides || *a.sides == *b.sides) return true;
    for (std::size_t k = 0; k < a.sides->size(); ++k)
        if (!meet((*a.sides)[k], (*b.sides)[k])) return false;
    return true;
}

}  // namespace reshard::notation
