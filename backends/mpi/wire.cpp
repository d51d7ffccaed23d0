#include "backends/mpi/wire.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reshard::mpi {
namespace {

bool reduces_natively(const RankStep& step) {
    const Schedule& schedule = step.schedule;
    return schedule.kind == StepKind::all_reduce && schedule.group.size() > 1 && count(schedule.target_tile) > 0;
}

bool only_stores(const std::vector<Arrival>& falls) { return falls.size() == 1 && !falls.front().adds; }

// The receives of a gather in the order of their boxes, which does not depend on anybody's storage.
std::vector<Transfer> blocks_of(const Schedule& schedule) {
    std::vector<Transfer> blocks = schedule.receives;
    std::ranges::sort(blocks, [](const Transfer& a, const Transfer& b) {
        return std::ranges::lexicographical_compare(a.box, b.box, {}, &Interval::begin, &Interval::begin);
    });
    return blocks;
}

// Makes one step. Each member function fills one part of the result.
class Maker {
public:
    Maker(const RankStep& step, DType dtype, std::size_t array, const Carriage& carriage)
        : step_(step), dtype_(dtype), element_bytes_(size_of(dtype)), carriage_(carriage) {
        made_.name = fmt::format("array {}, step {} ({})", array, step_.step + 1, name(step_.schedule.kind));
        made_.array = array;
    }

    Result<WireStep> make() {
        for (const Box& box : step_.schedule.fills) {
            made_.fills.emplace_back(where_of(step_.to.place),
                                     BoxFill(in_target(box), identity_of(dtype_, step_.schedule.identity)));
        }
        for (const Box& box : step_.schedule.scaled) {
            made_.scales.emplace_back(where_of(step_.to.place), BoxScale(dtype_, step_.schedule.scale, in_target(box)));
        }
        auto done = parts();
        if (!done) return fail(done.error().code, fmt::format("{}: {}", made_.name, done.error().message));
        return std::move(made_);
    }

private:
    Result<void> parts() {
        if (carriage_.gather && !step_.schedule.receives.empty()) return make_gather();
        if (step_.schedule.combine == Combine::copy) return make_copies();
        if (!carriage_.sums) return {};
        if (reduces_natively(step_)) return make_reduction();
        if (auto done = make_sends(); !done) return done;
        return make_landings();
    }

    [[nodiscard]] Region in_source(const Box& box) const { return region_of(step_.from, box, element_bytes_); }
    [[nodiscard]] Region in_target(const Box& box) const { return region_of(step_.to, box, element_bytes_); }
    [[nodiscard]] bool is_own(const Transfer& transfer) const { return transfer.peer == step_.schedule.rank; }

    [[nodiscard]] LocalCopy copy(Where from, Where to, const Region& source, const Region& target) const {
        return {made_.array, from, to, BoxCopy(source, target)};
    }

    static Result<Message> message(Index peer, Where where, const Region& region) {
        auto type = region_type(region);
        if (!type) return tl::unexpected(type.error());
        return Message{static_cast<int>(peer), where, region.offset_bytes, bytes_of(region), std::move(*type)};
    }

    Result<void> make_sends() {
        for (const Transfer& send : step_.schedule.sends) {
            if (count(send.box) == 0) continue;
            auto made = message(send.peer, where_of(step_.from.place), in_source(send.box));
            if (!made) return tl::unexpected(made.error());
            made_.sends.push_back(std::move(*made));
        }
        return {};
    }

    Result<void> make_copies() {
        for (const Transfer& receive : step_.schedule.receives) {
            if (!carriage_.own_share || !is_own(receive) || count(receive.box) == 0) continue;
            made_.copies.push_back(copy(where_of(step_.from.place), where_of(step_.to.place), in_source(receive.box),
                                        in_target(receive.box)));
        }
        return {};
    }

    Result<void> make_landings() {
        const auto falls = arrivals(step_.schedule);
        for (std::size_t i = 0; i < falls.size(); ++i) {
            if (falls[i].empty()) continue;
            auto landing = make_landing(step_.schedule.receives[i], falls[i]);
            if (!landing) return tl::unexpected(landing.error());
            made_.landings.push_back(std::move(*landing));
        }
        return {};
    }

    Result<Landing> make_landing(const Transfer& receive, const std::vector<Arrival>& falls) {
        Landing landing;
        const Where to = where_of(step_.to.place);
        if (!is_own(receive) && only_stores(falls)) {
            auto made = message(receive.peer, to, in_target(receive.box));
            if (!made) return tl::unexpected(made.error());
            landing.message = std::move(*made);
            return landing;
        }
        Slot from = step_.from;
        if (!is_own(receive)) {
            const Index slot_offset = staged_++ % staging_slots * carriage_.slot_bytes;
            const Tile staged = as_tile(receive.box);
            from = {Place::source, slot_offset, staged, row_major(staged)};
            auto made = message(receive.peer, Where::staging, region_of(from, receive.box, element_bytes_));
            if (!made) return tl::unexpected(made.error());
            landing.message = std::move(*made);
        }
        const Where read = is_own(receive) ? where_of(step_.from.place) : Where::staging;
        for (const Arrival& fall : falls) {
            const Region source = region_of(from, fall.box, element_bytes_);
            const Region target = in_target(fall.box);
            if (fall.adds) {
                landing.adds.push_back({read, to, BoxCombine(dtype_, step_.schedule.combine, source, target)});
            } else {
                landing.stores.push_back(copy(read, to, source, target));
            }
        }
        return landing;
    }

    Result<void> make_gather() {
        Gather gather;
        for (const Transfer& block : blocks_of(step_.schedule)) gather.members.push_back(block.peer);
        const Box& own =
            std::ranges::find_if(step_.schedule.receives, [&](const Transfer& t) { return is_own(t); })->box;
        auto send = message(0, where_of(step_.from.place), in_source(own));
        if (!send) return tl::unexpected(send.error());
        const Region first = in_target(blocks_of(step_.schedule).front().box);
        auto block = run_type(bytes_of(first));
        if (!block) return tl::unexpected(block.error());
        gather.send = std::move(*send);
        gather.receive = {0, where_of(step_.to.place), first.offset_bytes, bytes_of(first), std::move(*block)};
        made_.gather = std::move(gather);
        return {};
    }

    Result<void> make_reduction() {
        const Box box = as_box(step_.schedule.target_tile);
        const Region packed = packed_region(box, element_bytes_);
        auto type = element_type(dtype_);
        auto sum = reduce_operation(dtype_, step_.schedule.combine);
        if (!type) return tl::unexpected(type.error());
        if (!sum) return tl::unexpected(sum.error());
        const Region source = in_source(box);
        const Region target = in_target(box);
        const bool source_dense = contiguous(source);
        const bool target_dense = contiguous(target);
        if (!source_dense) {
            made_.packs.push_back(copy(where_of(step_.from.place), Where::staging, source, packed));
        }
        if (!target_dense) {
            Region second = packed;
            second.offset_bytes = carriage_.slot_bytes;
            made_.unpacks.push_back(copy(Where::staging, where_of(step_.to.place), second, target));
        }
        made_.reduction = Reduction{step_.schedule.group,
                                    MPI_COMM_NULL,
                                    dtype_,
                                    count(box),
                                    source_dense ? where_of(step_.from.place) : Where::staging,
                                    target_dense ? where_of(step_.to.place) : Where::staging,
                                    source_dense ? source.offset_bytes : 0,
                                    target_dense ? target.offset_bytes : carriage_.slot_bytes,
                                    std::move(*type),
                                    std::move(*sum)};
        return {};
    }

    const RankStep& step_;
    DType dtype_;
    Index element_bytes_;
    const Carriage& carriage_;
    Index staged_ = 0;
    WireStep made_;
};

Index staged_by_reduction(const RankStep& step, Index element_bytes) {
    const Box box = as_box(step.schedule.target_tile);
    const bool dense =
        contiguous(region_of(step.from, box, element_bytes)) && contiguous(region_of(step.to, box, element_bytes));
    return dense ? 0 : count(box) * element_bytes;
}

}  // namespace

bool gathers_in_place(const RankStep& step, DType dtype) {
    const Schedule& schedule = step.schedule;
    if (schedule.receives.empty() && schedule.sends.empty()) return true;  // not a member: no objection
    if (schedule.kind != StepKind::all_gather || schedule.group.size() < 2) return false;
    if (schedule.receives.size() != schedule.group.size()) return false;
    const std::vector<Transfer> blocks = blocks_of(schedule);
    const Region first = region_of(step.to, blocks.front().box, size_of(dtype));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Region block = region_of(step.to, blocks[i].box, size_of(dtype));
        const Index expected = first.offset_bytes + static_cast<Index>(i) * bytes_of(first);
        if (!contiguous(block) || bytes_of(block) != bytes_of(first) || block.offset_bytes != expected) return false;
    }
    return std::ranges::find(blocks, schedule.rank, &Transfer::peer) != blocks.end();
}

Result<WireStep> make_wire_step(const RankStep& step, DType dtype, std::size_t array, const Carriage& carriage) {
    return Maker(step, dtype, array, carriage).make();
}

Index staged_bytes(const RankStep& step, DType dtype) {
    if (reduces_natively(step)) return staged_by_reduction(step, size_of(dtype));
    if (step.schedule.combine == Combine::copy) return 0;
    Index most = 0;
    const auto falls = arrivals(step.schedule);
    for (std::size_t i = 0; i < falls.size(); ++i) {
        const Transfer& receive = step.schedule.receives[i];
        if (receive.peer == step.schedule.rank || falls[i].empty() || only_stores(falls[i])) continue;
        most = std::max(most, count(receive.box) * size_of(dtype));
    }
    return most;
}

}  // namespace reshard::mpi
