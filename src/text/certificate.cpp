#include "src/text/certificate.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "reshard/planner/refinement.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard::notation {

namespace {

// The extracted checker counts in 63 bits and refuses what could leave them; so does this, with a better sentence.
constexpr Index number_max = Index{1} << 40;
constexpr Index product_max = Index{1} << 56;

// Checks only the properties that a translation needs. The checker judges the rest.
Result<void> legible(const Layout& layout) {
    RESHARD_CHECK(validate(layout.mesh));
    const auto check = [](const AtomList& atoms) -> Result<void> {
        const bool positive = std::ranges::all_of(atoms, [](Atom atom) { return atom.size > 1 && atom.stride > 0; });
        if (!positive || !is_canonical(atoms)) return fail(Code::layout, "a list of atoms is not canonical");
        const bool fits =
            std::ranges::all_of(atoms, [](Atom atom) { return checked_multiply(atom.stride, atom.size).has_value(); });
        return fits ? Result<void>() : fail(Code::overflow, "an atom leaves 64 bits");
    };
    if (has_pieces(layout)) return fail(Code::unsupported, "the checker knows no cut of a dimension but ceil-div");
    for (const Dim& dim : layout.dims) {
        if (dim.extent < 0) return fail(Code::layout, fmt::format("extent {} is negative", dim.extent));
        RESHARD_CHECK(check(dim.atoms));
    }
    RESHARD_CHECK(check(layout.unreduced));
    // The order of summands is no part of a layout, but the checker compares lists.
    if (layout.unreduced != as_set(layout.unreduced))
        return fail(Code::layout, "the unreduced atoms are no canonical set");
    return {};
}

/// The common refinement of the digits of some layouts over one order of devices, and how atoms are written in it.
class Digits {
public:
    static Result<Digits> of(const std::vector<const Layout*>& layouts) {
        const Index devices = device_count(*layouts.front());
        std::vector<Index> borders = {1, devices};
        for (const Layout* layout : layouts) append_borders(*layout, borders);
        auto digits = refinement(std::move(borders));
        if (!digits)
            return fail(Code::unsupported,
                        "the digits of the device number that the layouts use have no common refinement, so the "
                        "plan cannot be written down for the checker");
        if (combinations(*digits) != devices) return fail(Code::layout, "an atom lies beyond the devices of the mesh");
        return Digits(std::move(*digits));
    }

    /// Sizes, most major first.
    std::string mesh() const {
        std::string text = "(mesh";
        for (const Atom& digit : digits_) text += fmt::format(" {}", digit.size);
        return text + ")";
    }

    std::string print(const AtomList& atoms) const {
        std::string text = "(";
        for (const Atom& atom : atoms)
            for (std::size_t i = 0; i < digits_.size(); ++i)
                if (is_within(digits_[i], atom)) text += fmt::format("{}{}", text.size() > 1 ? " " : "", i);
        return text + ")";
    }

private:
    explicit Digits(AtomList digits) : digits_(std::move(digits)) {}

    AtomList digits_;  // of all devices
};

/// The meshes of a plan, the source's first, and how layouts over them are written. Layouts over the same devices in
/// the same order share their digits.
class Meshes {
public:
    static Result<Meshes> of(const std::vector<const Layout*>& layouts) {
        const Layout& first = *layouts.front();
        std::vector<std::vector<const Layout*>> alike;
        Index devices = 1;
        for (const Layout* layout : layouts) {
            RESHARD_CHECK(legible(*layout));
            RESHARD_CHECK(same_array(first, *layout));
            devices = std::max(devices, device_count(*layout));
            const auto known = std::ranges::find_if(
                alike, [&](const auto& list) { return same_order(list.front()->mesh, layout->mesh); });
            (known == alike.end() ? alike.emplace_back() : *known).push_back(layout);
        }
        if (alike.size() > 1 && devices > certified_between_max)
            return fail(Code::unsupported, fmt::format("the checker judges plans between meshes of at most {} devices",
                                                       certified_between_max));
        Index product = devices;
        for (const Dim& dim : first.dims) {
            product = saturating_multiply(product, std::max<Index>(1, dim.extent));
            if (dim.extent >= number_max || product >= product_max)
                return fail(Code::unsupported, "devices times elements are more than the checker can count (2^56)");
        }
        Meshes meshes;
        for (const auto& list : alike) {
            RESHARD_TRY(auto& digits, Digits::of(list));
            meshes.known_.push_back({list.front()->mesh, std::move(digits)});
        }
        return meshes;
    }

    [[nodiscard]] bool is_one() const { return known_.size() == 1; }

    /// That of the source.
    std::string mesh() const { return known_.front().digits.mesh(); }

    /// The checker's L: a list of lists of positions, the unreduced positions, and between meshes the number of the
    /// mesh.
    std::string print(const Layout& layout) const {
        const auto at =
            std::ranges::find_if(known_, [&](const Known& one) { return same_order(one.mesh, layout.mesh); });
        std::string text = "(";
        for (const Dim& dim : layout.dims)
            text += fmt::format("{}{}", text.size() > 1 ? " " : "", at->digits.print(dim.atoms));
        text += ") " + at->digits.print(layout.unreduced);
        if (is_one()) return text;
        if (at != known_.begin()) text += " " + at->digits.mesh();
        if (at->mesh.devices.in_order()) return text;
        text += " (devices";
        for (Index i = 0; i < device_count(at->mesh); ++i) text += fmt::format(" {}", device_at(at->mesh, i));
        return text + ")";
    }

    std::string print(const Step& step) const { return fmt::format("{} {}", name(step.kind), print(step.layout)); }

private:
    struct Known {
        Mesh mesh;
        Digits digits;
    };
    std::vector<Known> known_;
};

std::string print_shape(const Layout& layout) {
    std::string text = "(shape";
    for (const Dim& dim : layout.dims) text += fmt::format(" {}", dim.extent);
    return text + ")";
}

std::string print(const Box& box, const char* between) {
    std::string text;
    for (const Interval& side : box)
        text += fmt::format("{}({} {})", text.empty() ? "" : between, side.begin, side.end);
    return text;
}

std::string print(const char* what, const std::vector<Transfer>& transfers) {
    std::string text = fmt::format("({}", what);
    for (const Transfer& transfer : transfers)
        text += fmt::format(" ({}{}{})", transfer.peer, transfer.box.empty() ? "" : " ", print(transfer.box, " "));
    return text + ")";
}

std::string print(const Schedule& schedule) {
    std::string text = "(rank " + print("sends", schedule.sends) + " " + print("receives", schedule.receives);
    text += " (fills";
    for (const Box& box : schedule.fills) text += fmt::format(" ({})", print(box, " "));
    return text + "))";
}

}  // namespace

namespace {

// The proofs are about any commutative monoid: sum, max, min and prod are one, and an avg is the sum of its shares, so
// one law of typing certifies all. It is one monoid for a whole plan, which the checker does not see named.
Result<void> one_reduction(const std::vector<const Layout*>& layouts) {
    const Layout* first = nullptr;
    for (const Layout* layout : layouts) {
        if (layout->unreduced.empty()) continue;
        if (!first) first = layout;
        if (layout->reduction != first->reduction)
            return fail(Code::unsupported,
                        fmt::format("the plan reduces by {} and by {}: what is proved is about one reduction",
                                    name(first->reduction), name(layout->reduction)));
    }
    return {};
}

}  // namespace

namespace {

// The extents of digits that all layouts have, as parts of the dimensions of one of them.
std::vector<std::vector<Index>> parts_in(const Layout& layout, const AtomList& digits) {
    std::vector<std::vector<Index>> parts;
    auto digit = digits.begin();
    for (const Dim& dim : layout.dims) {
        parts.emplace_back();
        for (Index left = dim.extent; left > 1 && digit != digits.end(); left /= (digit++)->size)
            parts.back().push_back(digit->size);
    }
    return parts;
}

// The checker knows one shape. Writes all layouts in the digits that their shapes share, and drops the views.
Result<Plan> in_one_shape(const Plan& plan) {
    const bool views = std::ranges::any_of(plan.steps, [](const Step& step) { return step.kind == StepKind::view; });
    if (!views) return plan;
    std::vector<const Layout*> layouts = {&plan.source, &plan.target};
    for (const Step& step : plan.steps) layouts.push_back(&step.layout);
    std::vector<Index> borders = {1};
    for (const Layout* layout : layouts) {
        RESHARD_CHECK(validate(*layout));
        if (global_bytes(*layout) != global_bytes(plan.source))
            return fail(Code::mismatch,
                        fmt::format("{} has other elements than {}", format(*layout), format(plan.source)));
        Index inner = 1;
        for (std::size_t k = layout->dims.size(); k-- > 0;) borders.push_back(inner *= layout->dims[k].extent);
    }
    const bool empty = std::ranges::find(borders, 0) != borders.end();
    const auto digits = empty ? std::nullopt : refinement(std::move(borders));
    const auto seen = [&](const Layout& layout) -> Result<Layout> {
        auto made = digits ? in_parts(layout, parts_in(layout, *digits)) : std::nullopt;
        if (made) return *std::move(made);
        return fail(Code::unsupported, "the views of the plan have no common shape, and the checker knows one shape");
    };
    Plan made{{}, {}, {}, plan.network};
    RESHARD_ASSIGN(made.source, seen(plan.source));
    RESHARD_ASSIGN(made.target, seen(plan.target));
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        RESHARD_TRY(auto& layout, seen(step.layout));
        if (step.kind != StepKind::view)
            made.steps.push_back({step.kind, std::move(layout)});
        else if (shape(step.layout) == shape(layout_before(plan, i)) ||
                 !equivalent(layout, layout_before(made, made.steps.size())))
            return fail(Code::step,
                        fmt::format("step {}: {} is no view of the tiles before it", i + 1, format(step.layout)));
    }
    return made;
}

// Casts are left out, so the checker cannot judge them.
Result<void> check_casts(const Plan& plan) {
    DType dtype = plan.source.dtype;
    bool has_cast = false;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        if (step.kind == StepKind::cast) {
            if (const auto typed = type_step(layout_before(plan, i), step); !typed)
                return fail(Code::step, fmt::format("step {}: {}", i + 1, typed.error().message));
            if (std::exchange(has_cast, true)) return fail(Code::step, fmt::format("step {}: another cast", i + 1));
            dtype = step.layout.dtype;
        } else if (step.layout.dtype != dtype) {
            return fail(Code::step,
                        fmt::format("step {}: {} of elements of type {}", i + 1, format(step.layout), name(dtype)));
        }
    }
    return plan.target.dtype == dtype ? Result<void>() : fail(Code::step, "the plan ends in another element type");
}

}  // namespace

Plan without_casts(Plan plan) {
    plan.target.dtype = plan.source.dtype;
    std::erase_if(plan.steps, [](const Step& step) { return step.kind == StepKind::cast; });
    for (Step& step : plan.steps) step.layout.dtype = plan.source.dtype;
    return plan;
}

Result<std::string> certificate(const Plan& asked, std::optional<Index> elements_max) {
    RESHARD_CHECK(check_casts(asked));
    RESHARD_TRY(const Plan& plan, in_one_shape(without_casts(asked)));
    std::vector<const Layout*> layouts = {&plan.source, &plan.target};
    for (const Step& step : plan.steps) layouts.push_back(&step.layout);
    RESHARD_CHECK(one_reduction(layouts));
    RESHARD_TRY(const auto& meshes, Meshes::of(layouts));
    std::string text = "(check " + meshes.mesh() + " " + print_shape(plan.source);
    if (elements_max) text += fmt::format(" (bound {})", std::min(*elements_max, number_max - 1));
    text += fmt::format(" (source {}) (target {}) (plan", meshes.print(plan.source), meshes.print(plan.target));
    for (const Step& step : plan.steps) text += fmt::format(" ({})", meshes.print(step));
    return text + "))";
}

Result<std::string> certificate(const Layout& before, const Step& step, const std::vector<Schedule>& schedules) {
    RESHARD_CHECK(one_reduction({&before, &step.layout}));
    RESHARD_TRY(const auto& meshes, Meshes::of({&before, &step.layout}));
    if (!meshes.is_one()) return fail(Code::unsupported, "the checker judges schedules on one mesh");
    if (!before.mesh.devices.in_order())
        return fail(Code::unsupported, "the checker numbers ranks by their position in the mesh");
    const Index devices = device_count(before);
    if (devices > certified_ranks_max)
        return fail(Code::unsupported, fmt::format("the checker judges schedules on at most {} devices, not {}",
                                                   certified_ranks_max, devices));
    if (static_cast<Index>(schedules.size()) != devices)
        return fail(Code::plan, fmt::format("{} schedules for {} devices", schedules.size(), devices));
    std::string text = "(schedules " + meshes.mesh() + " " + print_shape(before) + " (before " + meshes.print(before) +
                       ") (step " + meshes.print(step) + ") (ranks";
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        if (schedules[i].rank != static_cast<Index>(i) || schedules[i].kind != step.kind)
            return fail(Code::plan, fmt::format("schedule {} belongs to another rank or step", i));
        text += fmt::format(" {}", print(schedules[i]));
    }
    return text + "))";
}

}  // namespace reshard::notation
