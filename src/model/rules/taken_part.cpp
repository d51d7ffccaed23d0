#include "src/model/rules/taken_part.hpp"

#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/try.hpp"

namespace reshard::notation {

namespace {

constexpr Index windows_max = Index{1} << 24;

// The indices from `side.begin` to `side.end` of each period. They are within the dimension.
Result<Windows> windows_of(const Slice& slice, Interval side, Index extent) {
    if (slice.period > 0) {
        const Interval range{slice.range.begin, slice.range.end == index_max ? extent : slice.range.end};
        if (range.end < range.begin || range.end > extent)
            return fail(Code::mismatch,
                        fmt::format("there are no indices {}:{} among {}", range.begin, range.end, extent));
        if (range.size() % slice.period != 0)
            return fail(Code::mismatch,
                        fmt::format("{} indices are not whole periods of {}", range.size(), slice.period));
        return Windows{range.begin + side.begin, side.size(), slice.period, range.size() / slice.period};
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

std::string shape_text(std::span<const Index> shape) {
    std::vector<std::string> extents;
    for (const Index extent : shape) extents.push_back(extent == same_extent ? ":" : fmt::format("{}", extent));
    return fmt::format("({})", fmt::join(extents, ","));
}

// The shape that a part sees.
Result<std::vector<Index>> shape_of(const ListedTensor& listed, const RulePart& part) {
    if (!part.shape) return listed.shape;
    std::vector<Index> shape = *part.shape;
    Index elements = 1;
    for (const Index extent : listed.shape) elements = saturating_multiply(elements, extent);
    Index named = 1;
    for (std::size_t k = 0; k < shape.size(); ++k) {
        if (shape[k] == same_extent && k >= listed.shape.size())
            return fail(Code::mismatch,
                        fmt::format("':' in the shape {} is dimension {} of '{}', which has {} dimensions",
                                    shape_text(shape), k, listed.name, listed.shape.size()));
        if (shape[k] == same_extent) shape[k] = listed.shape[k];
        if (shape[k] != other_indices) named = saturating_multiply(named, shape[k]);
    }
    const auto other = std::ranges::find(shape, other_indices);
    const bool divides = named > 0 && elements % named == 0;
    if (other != shape.end() && divides) *other = elements / named;
    if (other == shape.end() ? named == elements : divides) return shape;
    return fail(Code::mismatch, fmt::format("'{}' has shape {}, and its elements do not fill the shape {}", listed.name,
                                            shape_text(listed.shape), shape_text(shape)));
}

Result<Windows> side_of(const ListedTensor& listed, const Slice& slice, std::size_t k, Index extent,
                        const Bindings& names) {
    Interval side = slice.indices.value_or(Interval{0, extent});
    if (side.end == index_max) side.end = extent;
    for (Index* const index : {&side.begin, &side.end})
        if (*index < 0) *index = saturating_add(*index, extent);
    if (!slice.name.empty()) {
        const Index index = number_below(value_in(names, slice.name), index_max);
        side = {index, saturating_add(index, 1)};
    }
    if (side.begin < 0 || side.end < side.begin || side.end > extent)
        return fail(Code::mismatch, fmt::format("there are no indices {}:{} in dimension {} of '{}', which has {}",
                                                side.begin, side.end, k, listed.name, extent));
    auto windows = windows_of(slice, side, extent);
    if (!windows) windows.error().message += fmt::format(", in dimension {} of '{}'", k, listed.name);
    if (windows && windows->count > windows_max)
        return fail(Code::unsupported,
                    fmt::format("more than {} steps in dimension {} of '{}'", windows_max, k, listed.name));
    return windows;
}

Result<Taken> without_order(std::size_t tensor, const ListedTensor& listed, std::size_t rule, const RulePart& part,
                            const Bindings& names) {
    if (!part.slices && !part.shape) return whole_of(tensor, listed, rule);
    RESHARD_TRY(const auto& shape, shape_of(listed, part));
    if (part.slices && part.slices->size() != shape.size())
        return fail(Code::mismatch, fmt::format("{} slices of '{}', which has {} dimensions", part.slices->size(),
                                                listed.name, shape.size()));
    Taken taken{tensor, std::vector<Windows>{}, {}, {}, rule, shape == listed.shape ? std::vector<Index>{} : shape};
    for (std::size_t k = 0; k < shape.size(); ++k) {
        const Slice slice = part.slices ? (*part.slices)[k] : Slice{};
        RESHARD_TRY(const auto& windows, side_of(listed, slice, k, shape[k], names));
        taken.sides->push_back(windows);
        if (slice.drops) continue;
        taken.shape.push_back(windows.size());
        taken.kept.push_back(k);
    }
    return taken;
}

}  // namespace

Result<Taken> sliced(std::size_t tensor, const ListedTensor& listed, std::size_t rule, const RulePart& part,
                     const Bindings& names) {
    RESHARD_TRY(auto& taken, without_order(tensor, listed, rule, part, names));
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

namespace {

// The elements of a part, by their numbers in row-major order.
class Elements {
public:
    Elements(const Taken& taken, std::span<const Index> shape)
        : sides_(*taken.sides), inner_(sides_.size() + 1, 1), full_(sides_.size()) {
        const std::span<const Index> extents = taken.view.empty() ? shape : std::span<const Index>(taken.view);
        for (std::size_t k = sides_.size(); k-- > 0;) {
            inner_[k] = inner_[k + 1] * extents[k];
            if (sides_[k].size() == extents[k] && full_ == k + 1) full_ = k;
            empty_ = empty_ || sides_[k].size() == 0;
        }
    }

    [[nodiscard]] Index runs() const {
        if (empty_) return 0;
        Index runs = 1;
        for (std::size_t k = 0; k < full_; ++k)
            runs = saturating_multiply(runs, k + 1 < full_ ? sides_[k].size() : sides_[k].count);
        return runs;
    }

    // Tells whether some run satisfies `found`. Every element is in one run.
    template <class Found>
    bool any_run(const Found& found) const {
        return !empty_ && any_run(found, 0, 0);
    }

    // Tells whether a number from `run.begin` to `run.end` is an element.
    [[nodiscard]] bool meet(Interval run) const { return !empty_ && meet(run, 0); }

private:
    template <class Found>
    bool any_run(const Found& found, std::size_t k, Index begin) const {
        if (k == full_) return found(Interval{begin, begin + inner_[k]});
        const Windows& side = sides_[k];
        for (Index window = 0; window < side.count; ++window) {
            const Index first = side.begin + window * side.period;
            const Interval run{begin + first * inner_[k + 1], begin + (first + side.width) * inner_[k + 1]};
            if (k + 1 == full_ && found(run)) return true;
            for (Index at = run.begin; k + 1 < full_ && at < run.end; at += inner_[k + 1])
                if (any_run(found, k + 1, at)) return true;
        }
        return false;
    }

    // `run` is within one index of the dimension before k, and counts from its first element.
    [[nodiscard]] bool meet(Interval run, std::size_t k) const {
        if (run.size() <= 0) return false;
        if (k == sides_.size()) return true;
        const Index inner = inner_[k + 1];
        const Index first = run.begin / inner;
        const Index last = (run.end - 1) / inner;
        const auto within = [&](Index index) {
            const Interval part{std::max<Index>(run.begin - index * inner, 0),
                                std::min(run.end - index * inner, inner)};
            return notation::meet(sides_[k], index, index + 1) && meet(part, k + 1);
        };
        if (within(first) || (last > first && within(last))) return true;
        return last > first + 1 && notation::meet(sides_[k], first + 1, last);
    }

    const std::vector<Windows>& sides_;
    std::vector<Index> inner_;  // inner_[k]: elements of the dimensions from k on
    std::size_t full_;          // the dimensions from here on are taken whole
    bool empty_ = false;
};

constexpr Index runs_max = Index{1} << 20;

bool overlap_in_two_shapes(const Elements& a, const Elements& b) {
    if (a.runs() > b.runs()) return overlap_in_two_shapes(b, a);
    return a.runs() > runs_max || a.any_run([&](Interval run) { return b.meet(run); });
}

}  // namespace

bool overlap(const Taken& a, const Taken& b, std::span<const Index> shape) {
    if (!a.sides || !b.sides) return true;
    if (a.view != b.view) return overlap_in_two_shapes({a, shape}, {b, shape});
    if (*a.sides == *b.sides) return true;
    for (std::size_t k = 0; k < a.sides->size(); ++k)
        if (!meet((*a.sides)[k], (*b.sides)[k])) return false;
    return true;
}

}  // namespace reshard::notation
