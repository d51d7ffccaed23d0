// From stages in chosen orders to operations on dense arrays.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/emit/program.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/emit/groups.hpp"
#include "src/emit/orders.hpp"
#include "src/emit/permutes.hpp"

namespace reshard {

namespace {

constexpr Index devices_max = Index{1} << 22;  // a group lists its devices

std::vector<Index> dense(const Order& order, const std::vector<Index>& extents) {
    const Order whole = merged(order);
    return whole == row_major(extents) ? extents : sizes_of(whole);
}

class Operations {
public:
    Operations(const Mesh& mesh, std::vector<Index> shape, std::vector<Operation>& operations)
        : mesh_(mesh), shape_(std::move(shape)), operations_(operations) {}

    void reshape(const std::vector<Index>& shape) {
        if (shape == shape_) return;
        if (!operations_.empty() && operations_.back().kind == OperationKind::reshape) {
            shape_ = operations_.back().input;
            operations_.pop_back();
            reshape(shape);
            return;
        }
        add(OperationKind::reshape, shape);
    }

    void transpose(const Order& from, const Order& to) {
        const auto turned = transposition(from, to);
        if (!turned->moves()) return;
        reshape(turned->sizes);
        std::vector<Index> shape;
        for (const std::size_t i : turned->permutation) shape.push_back(turned->sizes[i]);
        add(OperationKind::transpose, shape).permutation = turned->permutation;
    }

    // One dimension of a row-major tile.
    void reorder(const std::vector<Index>& extents, std::size_t dim, std::vector<Interval> runs) {
        const auto place = extents.begin() + static_cast<std::ptrdiff_t>(dim);
        reshape({elements_of(std::vector<Index>(extents.begin(), place)), *place,
                 elements_of(std::vector<Index>(place + 1, extents.end()))});
        add(OperationKind::reorder, shape_).runs = std::move(runs);
        reshape(extents);
    }

    void run(const Stage& stage, const Chosen& chosen) {
        const Positions positions(mesh_, *stage.mesh);
        switch (stage.kind) {
            case OperationKind::slice:
                slice(stage, chosen, positions);
                return;
            case OperationKind::update_slice:
                update_slice(stage, chosen, positions);
                return;
            case OperationKind::mask: {
                const AtomList digits = atoms_of(stage, chosen);
                Operation& mask = add(OperationKind::mask, shape_);
                mask.keeps = positions.where_zero(digits);
                mask.combine = stage.combine;
                if (positions.same()) mask.digits = {digits};
                return;
            }
            case OperationKind::scale:
                add(OperationKind::scale, shape_).factor = stage.factor;
                return;
            case OperationKind::cast:
                add(OperationKind::cast, shape_).dtype = stage.made;
                return;
            case OperationKind::permute:
                add(OperationKind::permute, shape_).pairs = positions.of_devices(stage.pairs);
                return;
            case OperationKind::all_reduce:
                all_reduce(stage, chosen, positions);
                return;
            default:
                exchange_blocks(stage, chosen, positions);
        }
    }

private:
    Operation& add(OperationKind kind, std::vector<Index> shape) {
        operations_.push_back({kind, shape_, shape});
        shape_ = std::move(shape);
        return operations_.back();
    }

    static AtomList atoms_of(const Stage& stage, const Chosen& chosen) {
        AtomList atoms;
        for (const std::size_t i : chosen.rotation) atoms.push_back(stage.members[i].atom);
        return canonical(std::move(atoms));
    }

    Operation& collective(OperationKind kind, std::vector<Index> shape, const Stage& stage, const Chosen& chosen,
                          const Positions& positions) {
        Operation& made = add(kind, std::move(shape));
        const AtomList digits = atoms_of(stage, chosen);
        made.groups = positions.groups(digits);
        if (positions.same()) made.digits = {digits};
        return made;
    }

    // all_gather, all_to_all and reduce_scatter take digits from the front, and put the digits that they make there.
    // Blocks are equal parts of dimension 0, whatever shape they have.
    void exchange_blocks(const Stage& stage, const Chosen& chosen, const Positions& positions) {
        const Index size = combinations(atoms_of(stage, chosen));
        const Order taken = taken_by(stage);
        std::vector<Index> extents = stage.before;
        for (const Digit& digit : taken) extents[digit.dim] /= digit.size;
        std::vector<Index> body = dense(without(chosen.order, taken), extents);
        if (body.empty()) body = {1};
        if (stage.kind == OperationKind::all_gather) {
            if (shape_.empty()) reshape(body);
            collective(OperationKind::all_gather, longer(size), stage, chosen, positions);
            return;
        }
        if (shape_.empty() || shape_[0] % size != 0) {
            std::vector<Index> blocks = body;
            blocks[0] *= size;
            reshape(blocks);
        }
        if (stage.kind == OperationKind::reduce_scatter && stage.combine == Combine::sum) {
            std::vector<Index> block = shape_;
            block[0] /= size;
            collective(OperationKind::reduce_scatter, block, stage, chosen, positions).combine = Combine::sum;
            return;
        }
        collective(OperationKind::all_to_all, shape_, stage, chosen, positions);
        if (stage.kind == OperationKind::reduce_scatter) reduce(size, body, stage.combine);
    }

    [[nodiscard]] std::vector<Index> longer(Index times) const {
        std::vector<Index> shape = shape_;
        shape[0] *= times;
        return shape;
    }

    // The leading dimension has `size` entries of this shape.
    void reduce(Index size, const std::vector<Index>& shape, Combine combine) {
        std::vector<Index> entries = shape;
        entries.insert(entries.begin(), size);
        reshape(entries);
        add(OperationKind::reduce, shape).combine = combine;
    }

    void all_reduce(const Stage& stage, const Chosen& chosen, const Positions& positions) {
        if (stage.combine != Combine::prod) {
            collective(OperationKind::all_reduce, shape_, stage, chosen, positions).combine = stage.combine;
            return;
        }
        const std::vector<Index> shape = shape_;
        const Index size = combinations(atoms_of(stage, chosen));
        const Index elements = elements_of(shape_);
        const bool scatters = elements % size == 0;
        const Index part = scatters ? elements / size : elements;
        reshape({elements});
        if (scatters)
            collective(OperationKind::all_to_all, {elements}, stage, chosen, positions);
        else
            collective(OperationKind::all_gather, {elements * size}, stage, chosen, positions);
        reduce(size, {part}, Combine::prod);
        if (scatters) collective(OperationKind::all_gather, {elements}, stage, chosen, positions);
        reshape(shape);
    }

    // Dimensions of the array in memory order, each with the atoms that select one of its blocks.
    struct Blocks {
        std::vector<Index> whole;
        std::vector<Index> part;
        std::vector<AtomList> digits;
    };

    void slice(const Stage& stage, const Chosen& chosen, const Positions& positions) {
        const Blocks blocks = blocks_of(stage, chosen);
        reshape(blocks.whole);
        place(add(OperationKind::slice, blocks.part), blocks, positions);
    }

    void update_slice(const Stage& stage, const Chosen& chosen, const Positions& positions) {
        Blocks blocks;
        if (merged(chosen.order) == row_major(stage.before)) {
            blocks = {stage.after, stage.before, std::vector<AtomList>(stage.before.size())};
            for (const Member& member : stage.members) blocks.digits[member.made->dim].push_back(member.atom);
        } else {
            blocks.part = shape_;
            blocks.part.insert(blocks.part.begin(), 1);
            blocks.whole = blocks.part;
            blocks.whole[0] = elements_of(made_by(stage));
            blocks.digits.resize(blocks.part.size());
            for (const Member& member : stage.members) blocks.digits[0].push_back(member.atom);
        }
        reshape(blocks.part);
        Operation& made = add(OperationKind::update_slice, blocks.whole);
        made.combine = stage.combine;
        place(made, blocks, positions);
    }

    static void place(Operation& operation, const Blocks& blocks, const Positions& positions) {
        operation.starts = positions.starts(blocks.digits, blocks.part);
        if (!positions.same()) return;
        for (const AtomList& digits : blocks.digits) operation.digits.push_back(canonical(digits));
    }

    static Blocks blocks_of(const Stage& stage, const Chosen& chosen) {
        if (merged(chosen.order) == row_major(stage.before)) {
            Blocks blocks{stage.before, stage.after, std::vector<AtomList>(stage.before.size())};
            for (const Member& member : stage.members) blocks.digits[member.taken->dim].push_back(member.atom);
            return blocks;
        }
        const Order order = *cut_out(chosen.order, taken_by(stage));
        Blocks blocks;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const auto member = std::ranges::find(stage.members, std::optional(order[i]), &Member::taken);
            const bool taken = member != stage.members.end();
            const bool continues =
                i > 0 && order[i - 1].dim == order[i].dim && order[i - 1].stride == order[i].size * order[i].stride;
            // A taken digit begins a block, unless another taken digit is right before it.
            const bool joins = continues && (!taken || blocks.part.back() == 1);
            if (!joins) {
                blocks.whole.push_back(1);
                blocks.part.push_back(1);
                blocks.digits.emplace_back();
            }
            blocks.whole.back() *= order[i].size;
            if (taken) blocks.digits.back().push_back(member->atom);
            if (!taken) blocks.part.back() *= order[i].size;
        }
        return blocks;
    }

    const Mesh& mesh_;
    std::vector<Index> shape_;
    std::vector<Operation>& operations_;
};

Result<void> same_on_devices(const Layout& asked, const Layout& planned) {
    if (equivalent(asked, planned)) return {};
    bool same = same_devices(asked.mesh, planned.mesh) && divisor(asked) == divisor(planned) &&
                summand_count(asked) == summand_count(planned);
    for (Index position = 0; same && position < device_count(asked); ++position) {
        const Index device = device_at(asked.mesh, position);
        same = tile(asked, device) == tile(planned, device) && summand(asked, device) == summand(planned, device);
    }
    if (same) return {};
    return fail(Code::mismatch,
                fmt::format("the plan is no answer to this question: it sees an end as {}", format(planned)));
}

// The steps between two views. The tile is in this order before them, and row-major after them.
Result<void> append_run(const Plan& plan, std::size_t first, Order order, Operations& made) {
    const TileEnds ends{order, extents_of(plan.target), size_of(plan.target.dtype)};
    if (plan.steps.empty()) {
        made.transpose(order, row_major(ends.target));
        return {};
    }
    RESHARD_TRY(auto& stages, stages_of(plan, first));
    if (order == row_major(extents_of(plan.source))) made.reshape(extents_of(plan.source));
    const std::vector<Chosen> chosen = split_gathers(stages, ends).choices;
    const auto go = [&](const Order& to, const std::vector<Index>& tile) {
        const std::vector<Order> path = way(order, to, tile);
        for (std::size_t i = 1; i < path.size(); ++i) made.transpose(path[i - 1], path[i]);
    };
    for (std::size_t i = 0; i < stages.size(); ++i) {
        go(chosen[i].order, stages[i].before);
        made.run(stages[i], chosen[i]);
        order = behind(stages[i], chosen[i]);
    }
    go(row_major(ends.target), ends.target);
    return {};
}

// Appends the steps of a plan shape by shape, each run of steps with even cuts. A view is a reshape of a row-major
// tile. A dimension that is cut in pieces has its indices in the order of shards while the steps run.
class Runs {
public:
    // The source's tile is in this order.
    Runs(const Plan& plan, Order order, Operations& made)
        : plan_(plan), made_(made), run_(from(plan.source)), order_(std::move(order)) {}

    Result<void> append() {
        for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
            const Step& step = plan_.steps[i];
            if (step.kind == StepKind::view) {
                RESHARD_CHECK(finish(i + 1));
                begin(step.layout);
                continue;
            }
            const Layout& before = layout_before(plan_, i);
            for (std::size_t d = 0; d < before.dims.size(); ++d)
                if (is_whole(before.dims[d]) && !by_ceil_div(step.layout.dims[d]))
                    RESHARD_CHECK(reorder(i, before, d, runs_of_shards(step.layout.dims[d])));
            RESHARD_CHECK(keeps_pieces(i, before, step.layout));
            run_.target = in_order_of_shards(step.layout);
            run_.steps.push_back({step.kind, run_.target});
            for (std::size_t d = 0; d < before.dims.size(); ++d)
                if (is_whole(step.layout.dims[d]) && !by_ceil_div(before.dims[d]))
                    RESHARD_CHECK(reorder(i + 1, step.layout, d, places_of(runs_of_shards(before.dims[d]))));
        }
        return finish(plan_.steps.size());
    }

private:
    static bool is_whole(const Dim& dim) { return dim.atoms.empty() && by_ceil_div(dim); }

    [[nodiscard]] Plan from(const Layout& layout) const {
        const Layout even = in_order_of_shards(layout);
        return {even, even, {}, plan_.network};
    }

    Result<void> finish(std::size_t next) {
        RESHARD_CHECK(append_run(run_, first_, order_, made_));
        first_ = next;
        return {};
    }

    void begin(const Layout& layout) {
        run_ = from(layout);
        order_ = row_major(extents_of(layout));
    }

    Result<void> reorder(std::size_t next, const Layout& layout, std::size_t dim, std::vector<Interval> runs) {
        RESHARD_CHECK(finish(next));
        begin(layout);
        made_.reorder(extents_of(layout), dim, std::move(runs));
        return {};
    }

    static Result<void> keeps_pieces(std::size_t i, const Layout& before, const Layout& after) {
        RESHARD_CHECK(has_equal_tiles(after));
        for (std::size_t d = 0; d < before.dims.size(); ++d)
            if (before.dims[d].pieces != after.dims[d].pieces && !is_whole(before.dims[d]) && !is_whole(after.dims[d]))
                return fail(Code::unsupported,
                            fmt::format("step {} cuts dimension {} in other pieces, {} after {}; a tile program needs "
                                        "equal blocks there",
                                        i + 1, d, format(after), format(before)));
        return {};
    }

    const Plan& plan_;
    Operations& made_;
    Plan run_;
    Order order_;  // of the tile before the run
    std::size_t first_ = 0;
};

}  // namespace

Result<TileProgram> portable(const Plan& plan, const Problem& asked, std::span<const Index> permute) {
    RESHARD_CHECK(has_program(asked));
    for (const Layout* end : {&asked.source, &asked.target, &plan.source, &plan.target})
        if (device_count(*end) > devices_max)
            return fail(Code::unsupported, fmt::format("a program for {} devices; at most {} are listed in its groups",
                                                       device_count(*end), devices_max));
    RESHARD_CHECK(check(plan));
    RESHARD_TRY(const auto& source, permuted(asked.source, permute));
    Layout target = asked.target;
    target.dtype = source.dtype;
    RESHARD_TRY(auto& seen, in_common_view(source, target));
    seen.second.dtype = asked.target.dtype;
    RESHARD_CHECK(same_on_devices(seen.first, plan.source));
    RESHARD_CHECK(same_on_devices(seen.second, plan.target));
    TileProgram program{asked.source, asked.target, {}};
    Operations made(asked.source.mesh, extents_of(asked.source), program.operations);
    // An array that has no elements needs no move.
    if (elements_of(extents_of(plan.source)) > 0) {
        const std::vector<Index> extents = extents_of(source);
        const Order held = transposed(extents, permute);
        const auto order = reshaped(held, extents, extents_of(plan.source));
        if (!order) made.transpose(held, row_major(extents));
        RESHARD_CHECK(Runs(plan, order.value_or(row_major(extents_of(plan.source))), made).append());
    }
    made.reshape(extents_of(asked.target));
    permute_behind_all_to_alls(program.operations);
    return program;
}

Result<TileProgram> portable(const Plan& plan) { return portable(plan, {plan.source, plan.target}); }

}  // namespace reshard
