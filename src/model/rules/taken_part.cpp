#include "src/model/rules/taken_part.hpp"

#include <numeric>

#include <fmt/format.h>

namespace reshard::notation {

Taken whole_of(std::size_t tensor, const ListedTensor& listed, std::size_t rule) {
    Taken taken{tensor, std::nullopt, listed.shape, std::vector<std::size_t>(listed.shape.size()), rule};
    std::iota(taken.kept.begin(), taken.kept.end(), std::size_t{0});
    return taken;
}

Result<Taken> sliced(const Taken& whole, const ListedTensor& listed, const RulePart& part, const Bindings& names) {
    if (!part.slices) return whole;
    if (part.slices->size() != listed.shape.size())
        return fail(Code::mismatch, fmt::format("{} slices of '{}', which has {} dimensions", part.slices->size(),
                                                listed.name, listed.shape.size()));
    Taken taken{whole.tensor, Box{}, {}, {}, whole.rule};
    for (std::size_t k = 0; k < listed.shape.size(); ++k) {
        const Slice& slice = (*part.slices)[k];
        Interval side = slice.indices.value_or(Interval{0, listed.shape[k]});
        if (!slice.name.empty()) {
            const Index index = number_below(value_in(names, slice.name), index_max);
            side = {index, saturating_add(index, 1)};
        }
        if (side.begin < 0 || side.end < side.begin || side.end > listed.shape[k])
            return fail(Code::mismatch, fmt::format("there are no indices {}:{} in dimension {} of '{}', which has {}",
                                                    side.begin, side.end, k, listed.name, listed.shape[k]));
        taken.box->push_back(side);
        if (slice.drops) continue;
        taken.shape.push_back(side.size());
        taken.kept.push_back(k);
    }
    return taken;
}

bool overlap(const Taken& a, const Taken& b) {
    if (!a.box || !b.box) return true;
    return count(intersect(*a.box, *b.box)) > 0 || *a.box == *b.box;
}

namespace {

Box whole_box(std::span<const Index> extents) {
    Box box;
    for (const Index extent : extents) box.push_back({0, extent});
    return box;
}

Interval unit(Index begin, Index number, Index size) { return {begin + number * size, begin + (number + 1) * size}; }

}  // namespace

std::vector<PartProblem> moves_of(const Taken& part, TensorPart source, TensorPart target, const PartPlace& place,
                                  bool whole) {
    source.box = part.box;
    if (whole) return {{std::move(source), std::move(target)}};
    Box& to = target.box.emplace(whole_box(part.shape));
    if (place.stack) to.insert(to.begin(), *place.stack);
    const std::size_t along = place.along + (place.stack ? 1 : 0);
    if (place.copies == 1) {
        if (along < to.size()) to[along] = {place.begin, place.begin + to[along].end};
        return {{std::move(source), std::move(target)}};
    }
    // A part of copied heads has all its dimensions, or slices that keep them.
    if (!source.box) source.box = whole_box(part.shape);
    const std::size_t from = part.kept[place.along];
    const Index begin = (*source.box)[from].begin;
    std::vector<PartProblem> moves;
    for (Index head = 0; head < part.shape[place.along] / place.head; ++head)
        for (Index copy = 0; copy < place.copies; ++copy) {
            (*source.box)[from] = unit(begin, head, place.head);
            to[along] = unit(place.begin, head * place.copies + copy, place.head);
            moves.push_back({source, target});
        }
    return moves;
}

}  // namespace reshard::notation
