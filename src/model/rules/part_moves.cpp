#include "src/model/rules/part_moves.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/planner/view.hpp"
#include "src/base/odometer.hpp"
#include "src/base/try.hpp"
#include "src/layout/flattened.hpp"
#include "src/model/rules/part_cut.hpp"

namespace reshard::notation {

namespace {

constexpr Index moves_max = Index{1} << 12;  // of one part, if a layout has no view

// Windows of a source dimension that become windows of a target dimension, one by one.
struct Runs {
    Windows from;
    Windows to;
};

// Consecutive indices, as windows of any width that divides them.
Windows in_windows(const Windows& one, Index width) { return {one.begin, width, width, one.size() / width}; }

bool is_one(const Windows& windows) { return windows.count == 1 || windows.period == windows.width; }

// Pairs the windows of both ends. If one end has wider windows, each of them becomes several.
Result<std::vector<Runs>> paired(Windows from, Windows to) {
    if ((is_one(from) && is_one(to)) || from.size() == 0)
        return std::vector<Runs>{
            {one_window({from.begin, from.begin + from.size()}), one_window({to.begin, to.begin + to.size()})}};
    if (is_one(from)) from = in_windows(from, to.width);
    if (is_one(to)) to = in_windows(to, from.width);
    const Index width = std::min(from.width, to.width);
    if (from.width % width != 0 || to.width % width != 0)
        return fail(Code::mismatch, fmt::format("windows of {} indices become windows of {}; one must divide the other",
                                                from.width, to.width));
    std::vector<Runs> runs;
    const Index times_from = from.width / width;
    const Index times_to = to.width / width;
    if (std::max(times_from, times_to) > moves_max)
        return fail(Code::unsupported, fmt::format("a window becomes more than {} windows", moves_max));
    // One of both numbers is 1.
    for (Index i = 0; i < times_from * times_to; ++i) {
        const Index source = times_from > 1 ? i * width : i * from.period;
        const Index target = times_to > 1 ? i * width : i * to.period;
        runs.push_back({{from.begin + source, width, from.period * times_to, from.count / times_to},
                        {to.begin + target, width, to.period * times_from, to.count / times_from}});
    }
    return runs;
}

// The source of each copy of each head of a part. The heads of the target follow each other.
Result<std::vector<Runs>> copied(const Windows& from, const PartPlace& place) {
    if (!is_one(from) && from.width % place.head != 0)
        return fail(Code::mismatch,
                    fmt::format("slices of {} indices are not whole heads of {}", from.width, place.head));
    const Windows heads = is_one(from) ? one_window({from.begin, from.begin + from.size()}) : from;
    std::vector<Runs> runs;
    for (Index head = 0; head < from.size() / place.head; ++head) {
        const Index index = head * place.head;
        const Index begin = heads.begin + index / heads.width * heads.period + index % heads.width;
        for (Index copy = 0; copy < place.copies; ++copy) {
            const Index to = place.begin + (head * place.copies + copy) * place.head;
            runs.push_back({one_window({begin, begin + place.head}), one_window({to, to + place.head})});
        }
    }
    return runs;
}

// Cuts indices of a tensor where the places in its layout jump. `held` is empty if none does.
Stretches places_of(Interval indices, const Stretches& held) {
    if (held.empty()) return {{indices, indices.begin}};
    Stretches places;
    for (const auto& [own, begin] : held) {
        const Interval both = {std::max(own.begin, indices.begin), std::min(own.end, indices.end)};
        if (both.size() > 0) places.push_back({both, begin + both.begin - own.begin});
    }
    return places;
}

// Moves of indices that an end holds in other places, or in several. A source has each index once.
Result<std::vector<Runs>> in_places(const std::vector<Runs>& all, const Stretches& source, const Stretches& target) {
    std::vector<Runs> runs;
    for (const Runs& one : all)
        for (Index i = 0; i < one.from.count; ++i) {
            const Index from = one.from.begin + i * one.from.period;
            const Index to = one.to.begin + i * one.to.period;
            for (const auto& [wanted, at] : places_of({to, to + one.to.width}, target)) {
                const Interval taken = {from + wanted.begin - to, from + wanted.end - to};
                for (const auto& [given, begin] : places_of(taken, source)) {
                    const Index end = at + given.begin - taken.begin;
                    runs.push_back({one_window({begin, begin + given.size()}), one_window({end, end + given.size()})});
                }
            }
            if (std::ssize(runs) > moves_max)
                return fail(Code::unsupported,
                            fmt::format("blocks that ranks share make more than {} moves of one part", moves_max));
        }
    return runs;
}

// Returns how the windows lie in a dimension as periods: the period of the dimension, and the sides in both. nullopt
// if the dimension is not whole periods, or if a window reaches over the end of one.
struct Periods {
    Index period = 1;
    Interval outer;
    Interval inner;
};
std::optional<Periods> in_periods(const Windows& windows, Index extent) {
    const Index period = windows.period;
    const Index begin = windows.begin % period;
    if (extent % period != 0 || begin + windows.width > period) return std::nullopt;
    const Index first = windows.begin / period;
    return Periods{period, {first, first + windows.count}, {begin, begin + windows.width}};
}

// An end of a move, dimension by dimension of the tensor.
class EndMaker {
public:
    explicit EndMaker(const MoveEnd& end) : end_(end) {}

    // Returns false if the windows are no sides of a view.
    bool add(const Windows& windows) {
        const Index extent = end_.shape[dims_.size()];
        skip_homes(extent);
        dims_.push_back({box_.size()});
        if (windows.count == 1) {
            add({extent}, {{windows.begin, windows.begin + windows.width}});
            return true;
        }
        const auto periods = in_periods(windows, extent);
        if (!periods) return false;
        viewed_ = true;
        dims_.back().push_back(box_.size() + 1);
        add({extent / periods->period, periods->period}, {periods->outer, periods->inner});
        return true;
    }

    // Returns nullopt if the layout has no such view. `kept` are the tensor's dimensions in the order of the part.
    std::optional<TensorPart> made(std::span<const std::size_t> kept) {
        skip_homes(index_max);
        TensorPart part{end_.layout, box_, {}};
        if (viewed_) {
            // A view looks at the shards of a dimension one by one.
            for (const Dim& dim : end_.layout->dims)
                if (shard_count(dim) > layout_pieces_max) return std::nullopt;
            auto view = in_parts(*end_.layout, parts_);
            if (!view) return std::nullopt;
            part.layout = std::make_shared<const Layout>(*std::move(view));
        }
        if (!std::ranges::is_sorted(kept)) part.order = order_of(kept);
        return part;
    }

private:
    // Dimensions that only say who owns the tensor have one index.
    void skip_homes(Index extent) {
        const std::vector<Dim>& dims = end_.layout->dims;
        while (parts_.size() < dims.size() && dims[parts_.size()].extent != extent) add({1}, {{0, 1}});
    }

    void add(std::vector<Index> extents, std::initializer_list<Interval> sides) {
        parts_.push_back(std::move(extents));
        box_.insert(box_.end(), sides);
    }

    // The dimensions that the part does not have come first. Each has one index.
    [[nodiscard]] std::vector<std::size_t> order_of(std::span<const std::size_t> kept) const {
        std::vector<std::size_t> named;
        for (const std::size_t k : kept) named.insert(named.end(), dims_[k].begin(), dims_[k].end());
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < box_.size(); ++i)
            if (std::ranges::find(named, i) == named.end()) order.push_back(i);
        order.insert(order.end(), named.begin(), named.end());
        return order;
    }

    const MoveEnd& end_;
    std::vector<std::vector<Index>> parts_;       // of each dimension of the layout
    std::vector<std::vector<std::size_t>> dims_;  // of the view, for each dimension of the tensor
    Box box_;                                     // in the view
    bool viewed_ = false;
};

class Moves {
public:
    Moves(const Taken& part, const MoveEnd& source, const MoveEnd& target, const PartPlace& place)
        : part_(part), source_(source), target_(target), place_(place) {}

    Result<std::vector<PartProblem>> make() {
        for (std::size_t k = 0; k < part_.shape.size(); ++k) {
            const bool along = k == place_.along;
            if (along && place_.copies > 1) {
                RESHARD_ASSIGN(runs_.emplace_back(), copied(from(k), place_));
            } else {
                RESHARD_ASSIGN(runs_.emplace_back(), paired(from(k), along ? to_along(k) : to(k)));
            }
            const Stretches& given = held_in(source_, part_.kept[k]);
            const Stretches& wanted = held_in(target_, k + (place_.stack && place_.stack_dim <= k ? 1 : 0));
            if (given.empty() && wanted.empty()) continue;
            RESHARD_ASSIGN(runs_.back(), in_places(runs_.back(), given, wanted));
        }
        std::vector<Index> counts;
        for (const auto& runs : runs_) counts.push_back(std::ssize(runs));
        RESHARD_CHECK(for_each_place(counts, [&](std::span<const Index> at) -> Result<void> {
            std::vector<Runs> chosen;
            for (std::size_t k = 0; k < at.size(); ++k) chosen.push_back(runs_[k][static_cast<std::size_t>(at[k])]);
            return append(chosen);
        }));
        return std::move(moves_);
    }

private:
    static const Stretches& held_in(const MoveEnd& end, std::size_t dim) {
        static const Stretches as_they_are;
        return end.held.empty() ? as_they_are : end.held[dim];
    }

    [[nodiscard]] Windows from(std::size_t k) const {
        return part_.sides ? (*part_.sides)[part_.kept[k]] : one_window({0, part_.shape[k]});
    }
    [[nodiscard]] Windows to(std::size_t k) const { return one_window({0, part_.shape[k]}); }
    [[nodiscard]] Windows to_along(std::size_t k) const {
        const Index width = part_.shape[k] / place_.groups;
        if (place_.groups > 1) return {place_.begin, width, place_.group, place_.groups};
        return one_window({place_.begin, place_.begin + width});
    }

    Result<void> append(const std::vector<Runs>& runs) {
        if (append_view(runs)) return {};
        std::vector<Index> counts;
        Index windows = 1;
        for (const Runs& one : runs) {
            counts.push_back(one.from.count);
            windows = saturating_multiply(windows, one.from.count);
        }
        if (saturating_add(std::ssize(moves_), windows) > moves_max)
            return fail(Code::unsupported,
                        fmt::format("a cut within windows makes more than {} moves of one part", moves_max));
        return for_each_place(counts, [&](std::span<const Index> at) -> Result<void> {
            std::vector<Runs> alone;
            for (std::size_t k = 0; k < at.size(); ++k)
                alone.push_back({nth(runs[k].from, at[k]), nth(runs[k].to, at[k])});
            (void)append_view(alone);  // one window needs no view
            return {};
        });
    }

    static Windows nth(const Windows& windows, Index number) {
        const Index begin = windows.begin + number * windows.period;
        return one_window({begin, begin + windows.width});
    }

    bool append_view(const std::vector<Runs>& runs) {
        EndMaker from(source_);
        EndMaker to(target_);
        for (std::size_t dim = 0; dim < source_.shape.size(); ++dim) {
            const auto k = static_cast<std::size_t>(std::ranges::find(part_.kept, dim) - part_.kept.begin());
            // A dimension that the part does not have is an index.
            if (!from.add(k < runs.size() ? runs[k].from : index_in(dim))) return false;
        }
        std::vector<std::size_t> ascending;
        for (const Runs& one : runs) {
            add_stack(to, ascending.size());
            if (!to.add(one.to)) return false;
            ascending.push_back(ascending.size());
        }
        add_stack(to, ascending.size());
        auto source = from.made(part_.kept);
        auto target = to.made(ascending);
        if (!source || !target) return false;
        // The part is one window.
        bool all = source->order.empty() && source_.held.empty() && target_.held.empty();
        for (std::size_t k = 0; k < runs.size(); ++k)
            all = all && runs[k].from.count == 1 && runs[k].from.width == part_.shape[k];
        if (all && !part_.sides) source->box.reset();
        if (all && place_.whole) target->box.reset();
        moves_.push_back({*std::move(source), *std::move(target)});
        return true;
    }

    // The index of a dimension that the part does not have.
    [[nodiscard]] Windows index_in(std::size_t dim) const {
        const Index index = (*part_.sides)[dim].begin;
        const Index place = places_of({index, index + 1}, held_in(source_, dim)).front().begin;
        return one_window({place, place + 1});
    }

    // Adds the dimension of the stack if it comes before dimension `next` of the part.
    void add_stack(EndMaker& to, std::size_t next) const {
        if (place_.stack && place_.stack_dim == next) (void)to.add(one_window(*place_.stack));
    }

    const Taken& part_;
    const MoveEnd& source_;
    const MoveEnd& target_;
    const PartPlace& place_;
    std::vector<std::vector<Runs>> runs_;  // of each dimension of the part
    std::vector<PartProblem> moves_;
};

// The move of consecutive indices, if nothing else is asked: most parts of a model are one box.
std::optional<PartProblem> one_box(const Taken& part, const MoveEnd& source, const MoveEnd& target,
                                   const PartPlace& place) {
    const bool owned =
        source.layout->dims.size() != source.shape.size() || target.layout->dims.size() != target.shape.size();
    if (owned || !source.held.empty() || !target.held.empty() || place.groups > 1 || place.copies > 1 ||
        !std::ranges::is_sorted(part.kept))
        return std::nullopt;
    PartProblem move{{source.layout}, {target.layout}};
    if (part.sides) {
        Box& from = move.source.box.emplace();
        for (const Windows& side : *part.sides) {
            if (side.count > 1) return std::nullopt;
            from.push_back({side.begin, side.begin + side.width});
        }
    }
    if (place.whole) return move;
    Box& to = move.target.box.emplace();
    for (std::size_t k = 0; k < part.shape.size(); ++k) {
        const Index begin = k == place.along ? place.begin : 0;
        to.push_back({begin, begin + part.shape[k]});
    }
    if (place.stack) to.insert(to.begin() + static_cast<std::ptrdiff_t>(place.stack_dim), *place.stack);
    return move;
}

bool is_flattened(const MoveEnd& end) { return end.layout->dims.size() < end.shape.size(); }

// The whole tensor as one dimension. Its tiles are equal in memory.
Result<TensorPart> as_one_dimension(const MoveEnd& end) {
    TensorPart part{end.layout, {}, {}};
    if (!is_flattened(end)) {
        const std::array<Index, 1> one_unit = {1};
        RESHARD_TRY(auto& dim, flattened(end.layout->dims, {}, one_unit));
        Layout flat = *end.layout;
        flat.dims = {std::move(dim)};
        part.layout = std::make_shared<const Layout>(std::move(flat));
    }
    part.box = Box{{0, part.layout->dims[0].extent}};
    return part;
}

Result<std::vector<PartProblem>> flattened_move(const Taken& part, const MoveEnd& source, const MoveEnd& target,
                                                const PartPlace& place) {
    if (part.sides || !place.whole || !std::ranges::is_sorted(part.kept))
        return fail(Code::unsupported,
                    "a flattened tensor moves as it is: no slices, stacks, fused parts, padding or other orders");
    RESHARD_TRY(auto& from, as_one_dimension(source));
    RESHARD_TRY(auto& to, as_one_dimension(target));
    return std::vector<PartProblem>{{std::move(from), std::move(to)}};
}

}  // namespace

Result<std::vector<PartProblem>> moves_of(const Taken& part, const MoveEnd& source, const MoveEnd& target,
                                          const PartPlace& place) {
    if (is_flattened(source) || is_flattened(target)) return flattened_move(part, source, target, place);
    if (auto move = one_box(part, source, target, place)) return std::vector<PartProblem>{*std::move(move)};
    return Moves(part, source, target, place).make();
}

}  // namespace reshard::notation
