#include "src/emit/stages.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reshard/planner/refinement.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard {

namespace {

// The atoms that one layout has in a dimension behind all atoms of the other, as digits of the tile of the other.
std::vector<std::pair<Atom, Digit>> suffixes(const Layout& longer, const Layout& shorter) {
    std::vector<std::pair<Atom, Digit>> all;
    for (std::size_t i = 0; i < longer.dims.size(); ++i) {
        Index below = block_extent(shorter.dims[i]);
        for (const Atom& atom : after_prefix(longer.dims[i].atoms, shorter.dims[i].atoms).value_or(AtomList{})) {
            below /= atom.size;
            all.emplace_back(atom, Digit{i, atom.size, below});
        }
    }
    return all;
}

// Cuts each atom into the digits of a chain.
std::vector<std::pair<Atom, Digit>> cut_into(const std::vector<std::pair<Atom, Digit>>& atoms, const AtomList& digits) {
    std::vector<std::pair<Atom, Digit>> all;
    for (const auto& [atom, place] : atoms)
        for (const Atom& digit : digits)
            if (is_within(digit, atom))
                all.emplace_back(digit, Digit{place.dim, digit.size, place.stride * (digit.stride / atom.stride)});
    return all;
}

// Merges neighbours that continue each other in the mesh, in the taken digits and in the made digits.
std::vector<Member> merged(const std::vector<Member>& members) {
    const auto continues = [](const Digit& major, const Digit& minor) {
        return major.dim == minor.dim && major.stride == minor.size * minor.stride;
    };
    std::vector<Member> all;
    for (const Member& member : members) {
        Member* last = all.empty() ? nullptr : &all.back();
        const bool joins = last != nullptr && last->atom.stride == member.atom.size * member.atom.stride &&
                           (!member.taken || continues(*last->taken, *member.taken)) &&
                           (!member.made || continues(*last->made, *member.made));
        if (!joins) {
            all.push_back(member);
            continue;
        }
        last->atom = {last->atom.size * member.atom.size, member.atom.stride};
        if (member.taken)
            last->taken = {member.taken->dim, last->taken->size * member.taken->size, member.taken->stride};
        if (member.made) last->made = {member.made->dim, last->made->size * member.made->size, member.made->stride};
    }
    return all;
}

std::vector<Member> all_taken(const Layout& before, const Layout& after) {
    std::vector<Member> members;
    for (const auto& [atom, digit] : suffixes(after, before)) members.push_back({atom, digit, {}});
    return members;
}

std::vector<Member> all_made(const Layout& before, const Layout& after) {
    std::vector<Member> members;
    for (const auto& [atom, digit] : suffixes(before, after)) members.push_back({atom, {}, digit});
    return members;
}

std::vector<Member> atoms_only(const AtomList& atoms) {
    std::vector<Member> members;
    for (const Atom& atom : atoms) members.push_back({atom});
    return members;
}

// Each digit of the group leaves one dimension and enters another.
Result<std::vector<Member>> swapped(const Layout& before, const Layout& after) {
    const auto entered = suffixes(after, before);
    const auto left = suffixes(before, after);
    std::vector<Index> borders;
    for (const auto* side : {&entered, &left})
        for (const auto& [atom, digit] : *side) append_borders(std::span(&atom, 1), borders);
    const auto digits = refinement(std::move(borders));
    if (!digits)
        return fail(Code::unsupported,
                    "the axes that leave and enter dimensions have no common refinement; an all_to_all of equal blocks "
                    "needs one");
    const auto gone = cut_into(left, *digits);
    std::vector<Member> members;
    for (const auto& [atom, taken] : cut_into(entered, *digits)) {
        const Atom same = atom;
        const auto made = std::ranges::find(gone, same, &std::pair<Atom, Digit>::first);
        members.push_back({atom, taken, made->second});
    }
    return merged(members);
}

// The devices that send and receive whole tiles. Empty if all devices keep their tiles.
std::vector<SourceTargetPair> pairs_of(const Layout& before, const Step& step) {
    std::vector<SourceTargetPair> pairs;
    bool moves = false;
    for (Index position = 0; position < device_count(step.layout); ++position) {
        const Index device = device_at(step.layout.mesh, position);
        const Index source = schedule(before, step, device).receives.front().peer;
        moves = moves || source != device;
        pairs.push_back({source, device});
    }
    return moves ? pairs : std::vector<SourceTargetPair>{};
}

// The stages of one step.
class Lowered {
public:
    Lowered(const Layout& before, const Step& step, std::vector<Stage>& stages)
        : before_(before), step_(step), stages_(stages), extents_(extents_of(before)) {}

    Result<void> append() {
        const Layout& after = step_.layout;
        switch (step_.kind) {
            case StepKind::slice:
                add(OperationKind::slice).members = all_taken(before_, after);
                return {};
            case StepKind::all_gather:
                add(OperationKind::all_gather).members = all_made(before_, after);
                return {};
            case StepKind::all_to_all: {
                RESHARD_TRY(auto& members, swapped(before_, after));
                add(OperationKind::all_to_all).members = std::move(members);
                return {};
            }
            case StepKind::permute:
                if (auto pairs = pairs_of(before_, step_); !pairs.empty())
                    add(OperationKind::permute).pairs = std::move(pairs);
                return {};
            case StepKind::reduce_scatter:
            case StepKind::all_reduce:
                reduce();
                return {};
            case StepKind::zero_fill:
                fill();
                return {};
            case StepKind::view:  // no stage: portable reshapes the tile
                return {};
            case StepKind::cast:
                return cast();
            case StepKind::exchange:
                break;
        }
        return fail(Code::unsupported,
                    "an exchange is no operation that every framework has: plan with the vocabulary 'collectives'");
    }

private:
    Stage& add(OperationKind kind) {
        std::vector<Index> after = extents_of(step_.layout);
        stages_.push_back({kind, &before_.mesh, extents_, after});
        stages_.back().dtype = before_.dtype;
        extents_ = std::move(after);
        return stages_.back();
    }

    Result<void> cast() {
        const DType to = step_.layout.dtype;
        if (before_.dtype == DType::f64 && size_of(to) < size_of(DType::f32))
            return fail(Code::unsupported,
                        fmt::format("the frameworks round f64 to f32 first and then to {}, and a cast "
                                    "rounds once; cast to f32",
                                    name(to)));
        add(OperationKind::cast).made = to;
        return {};
    }

    void scale(Scale factor) {
        if (factor != Scale{})
            stages_.push_back({OperationKind::scale,
                               &before_.mesh,
                               extents_,
                               extents_,
                               {},
                               {},
                               factor,
                               Combine::copy,
                               before_.dtype});
    }

    void reduce() {
        const bool scatters = step_.kind == StepKind::reduce_scatter;
        const auto reduced = reshard::without(before_.unreduced, step_.layout.unreduced, device_count(before_));
        Stage& stage = add(scatters ? OperationKind::reduce_scatter : OperationKind::all_reduce);
        stage.members = scatters ? all_taken(before_, step_.layout) : atoms_only(*reduced);
        stage.combine = combine_of(before_.reduction);
        scale({1, divisor(before_) / divisor(step_.layout)});
    }

    void fill() {
        const Layout& after = step_.layout;
        const Combine combine = combine_of(after.reduction);
        scale({divisor(after) / divisor(before_), 1});
        if (auto members = all_made(before_, after); !members.empty()) {
            Stage& stage = add(OperationKind::update_slice);
            stage.members = std::move(members);
            stage.combine = combine;
        }
        if (const AtomList spread = spread_atoms(before_, after); !spread.empty()) {
            Stage& stage = add(OperationKind::mask);
            stage.members = atoms_only(spread);
            stage.combine = combine;
        }
    }

    const Layout& before_;
    const Step& step_;
    std::vector<Stage>& stages_;
    std::vector<Index> extents_;
};

}  // namespace

std::vector<Index> extents_of(const Layout& layout) {
    std::vector<Index> extents;
    for (const Dim& dim : layout.dims) extents.push_back(tile_extent(dim));
    return extents;
}

Result<void> has_equal_tiles(const Layout& layout) {
    const bool equal = std::ranges::all_of(layout.dims, [](const Dim& dim) {
        return by_ceil_div(dim) ? divides(dim) : tile_extent(dim) == tile_extent_min(dim);
    });
    if (equal) return {};
    return fail(Code::unsupported, fmt::format("{}; a tile program needs tiles of one shape", why_uneven(layout)));
}

Layout in_order_of_shards(Layout layout) {
    for (Dim& dim : layout.dims) dim = Dim(dim.extent, std::move(dim.atoms));
    return layout;
}

std::vector<Interval> runs_of_shards(const Dim& dim) {
    std::vector<Interval> all;
    for (const Side& side : sides(dim)) all.insert(all.end(), side.intervals.begin(), side.intervals.end());
    return all;
}

std::vector<Interval> places_of(const std::vector<Interval>& runs) {
    std::vector<std::pair<Interval, Index>> ascending;  // and where each begins there
    Index begin = 0;
    for (const Interval& run : runs) {
        ascending.emplace_back(run, begin);
        begin += run.size();
    }
    std::ranges::sort(ascending, {}, [](const auto& one) { return one.first.begin; });
    std::vector<Interval> places;
    for (const auto& [run, at] : ascending) places.push_back({at, at + run.size()});
    return places;
}

Result<std::vector<Stage>> stages_of(const Plan& plan, std::size_t first) {
    std::vector<Stage> stages;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        auto lowered = Lowered(layout_before(plan, i), step, stages).append();
        if (lowered) continue;
        lowered.error().message = fmt::format("step {} ({} to {}): {}", first + i + 1, name(step.kind),
                                              format(step.layout), lowered.error().message);
        return lowered.map([] { return std::vector<Stage>{}; });
    }
    return stages;
}

Order taken_by(const Stage& stage) {
    Order order;
    for (const Member& member : stage.members)
        if (member.taken) order.push_back(*member.taken);
    return order;
}

Order made_by(const Stage& stage) {
    Order order;
    for (const Member& member : stage.members)
        if (member.made) order.push_back(*member.made);
    return order;
}

}  // namespace reshard
