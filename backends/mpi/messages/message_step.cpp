#include "backends/mpi/messages/message_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/base/try.hpp"
#include "src/schedule/box_cut.hpp"
#include "src/schedule/native_collective.hpp"

namespace reshard::mpi {
namespace {

bool reduces_natively(const RankStep& step) {
    return step.schedule.kind == StepKind::all_reduce && native_collective(step.schedule).has_value();
}

constexpr Index slot_alignment = 16;  // fits an element of any dtype

Index aligned(Index bytes) { return ceil_divide(bytes, slot_alignment) * slot_alignment; }

// Both ends know the box and cut it in the same way. If piece_bytes is 0, returns the whole box.
std::vector<Box> pieces_of(const Box& box, DType dtype, Index piece_bytes) {
    if (piece_bytes == 0) return {box};
    return slabs(box, std::max<Index>(piece_bytes / size_of(dtype), 1));
}

bool only_stores(const std::vector<SplitReceive>& falls) { return falls.size() == 1 && !falls.front().adds; }

// The same on all members, whose tiles have one size. Limits the number of parts, even if part_bytes_max is small.
Index elements_of_part(const RankStep& step, DType dtype, Index part_bytes_max) {
    constexpr Index parts_max = Index{1} << 16;
    const Index elements = count(step.schedule.target_tile);
    return std::min(elements, std::max(part_bytes_max / size_of(dtype), ceil_divide(elements, parts_max)));
}

// Makes one step. Each member function fills one part of the result.
class Maker {
public:
    Maker(const RankStep& step, DType dtype, std::size_t array, const Carriage& carriage)
        : step_(step), dtype_(dtype), element_bytes_(size_of(dtype)), carriage_(carriage) {
        made_.name = fmt::format("array {}, step {} ({})", array, step_.step + 1, name(step_.schedule.kind));
        made_.array = array;
    }

    Result<MessageStep> make() {
        for (const Box& box : step_.schedule.fills) {
            made_.fills.emplace_back(step_.to.buffer,
                                     BoxFill(in_target(box), identity_of(dtype_, step_.schedule.identity)));
        }
        for (const Box& box : step_.schedule.scaled) {
            made_.scales.emplace_back(step_.to.buffer, BoxScale(dtype_, step_.schedule.scale, in_target(box)));
        }
        auto done = parts();
        if (!done) return fail(done.error().code, fmt::format("{}: {}", made_.name, done.error().message));
        return std::move(made_);
    }

private:
    Result<void> parts() {
        if (step_.schedule.combine == Combine::copy) return make_copies();
        if (!carriage_.sums) return {};
        if (reduces_natively(step_)) return make_reduction();
        RESHARD_CHECK(make_sends());
        return make_landings();
    }

    [[nodiscard]] Region in_source(const Box& box) const { return region_of(step_.from, box, element_bytes_); }
    [[nodiscard]] Region in_target(const Box& box) const { return region_of(step_.to, box, element_bytes_); }
    [[nodiscard]] bool is_own(const Transfer& transfer) const { return transfer.peer == step_.schedule.rank; }

    [[nodiscard]] LocalCopy copy(BufferId from, BufferId to, const Region& source, const Region& target) const {
        return {made_.array, from, to, BoxCopy(source, target)};
    }

    // Slots divide the staging evenly.
    Index next_slot() { return staged_++ % made_.slots * slot_bytes_; }

    void divide_staging(Index slots, Index slot_bytes) {
        made_.slots = slots;
        slot_bytes_ = slot_bytes;
    }

    static Result<Message> message(Index peer, BufferId where, const Region& region) {
        RESHARD_TRY(auto& type, region_type(region));
        return Message{static_cast<int>(peer), where, region.offset_bytes, bytes_of(region), std::move(type)};
    }

    Result<void> make_sends() {
        for (const Transfer& send : step_.schedule.sends) {
            if (count(send.box) == 0) continue;
            const auto same = [&](const Sends& one) { return one.peer == send.peer; };
            auto to = std::ranges::find_if(made_.sends, same);
            if (to == made_.sends.end()) to = made_.sends.insert(to, {static_cast<int>(send.peer), {}});
            for (const Box& box : pieces_of(send.box, dtype_, carriage_.piece_bytes)) {
                RESHARD_TRY(auto& made, message(send.peer, step_.from.buffer, in_source(box)));
                to->messages.push_back(std::move(made));
            }
        }
        return {};
    }

    Result<void> make_copies() {
        for (const Transfer& receive : step_.schedule.receives) {
            if (!carriage_.own_share || !is_own(receive) || count(receive.box) == 0) continue;
            const Region target = region_of(step_.to, receive.box, size_of(step_.to_dtype));
            made_.copies.push_back(
                {made_.array, step_.from.buffer, step_.to.buffer,
                 BoxCopy(in_source(receive.box), target, cast_of(step_.from_dtype, step_.to_dtype))});
        }
        return {};
    }

    Result<void> make_landings() {
        const auto falls = arrivals(step_.schedule);
        if (carriage_.piece_bytes > 0) return make_pieces(falls);
        divide_staging(staging_slots, carriage_.staging_bytes / staging_slots / slot_alignment * slot_alignment);
        for (std::size_t i = 0; i < falls.size(); ++i) {
            if (falls[i].empty()) continue;
            RESHARD_TRY(auto& landing, make_landing(step_.schedule.receives[i], falls[i]));
            made_.landings.push_back(std::move(landing));
        }
        return {};
    }

    // All boxes are the same: one piece comes from every peer, then the next one.
    Result<void> make_pieces(const std::vector<std::vector<SplitReceive>>& falls) {
        const auto first = std::ranges::find_if(falls, [](const auto& one) { return !one.empty(); });
        if (first == falls.end()) return {};
        const std::vector<Box> pieces = pieces_of(first->front().box, dtype_, carriage_.piece_bytes);
        const Index bytes = aligned(count(pieces.front()) * element_bytes_);
        divide_staging(std::min(piece_slots, carriage_.staging_bytes / bytes), bytes);
        for (const Box& piece : pieces) {
            for (std::size_t i = 0; i < falls.size(); ++i) {
                if (falls[i].empty()) continue;
                const Transfer part{step_.schedule.receives[i].peer, piece};
                const std::vector<SplitReceive> fall{{piece, falls[i].front().adds}};
                RESHARD_TRY(auto& landing, make_landing(part, fall));
                made_.landings.push_back(std::move(landing));
            }
        }
        return {};
    }

    Result<Landing> make_landing(const Transfer& receive, const std::vector<SplitReceive>& falls) {
        Landing landing;
        const BufferId to = step_.to.buffer;
        if (!is_own(receive) && only_stores(falls)) {
            RESHARD_ASSIGN(landing.message, message(receive.peer, to, in_target(receive.box)));
            return landing;
        }
        Slot from = step_.from;
        if (!is_own(receive)) {
            const Tile staged = as_tile(receive.box);
            from = {BufferId::source, next_slot(), staged, row_major(staged)};
            RESHARD_ASSIGN(landing.message,
                           message(receive.peer, BufferId::staging, region_of(from, receive.box, element_bytes_)));
        }
        const BufferId read = is_own(receive) ? step_.from.buffer : BufferId::staging;
        for (const SplitReceive& fall : falls) {
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

    Result<void> make_reduction() {
        RESHARD_TRY(auto& type, element_type(dtype_));
        RESHARD_TRY(auto& sum, reduce_operation(dtype_, step_.schedule.combine));
        made_.reduction = std::make_shared<Reduction>(
            Reduction{step_.schedule.group, MPI_COMM_NULL, std::move(type), std::move(sum), {}});
        const Index elements_max = elements_of_part(step_, dtype_, carriage_.part_bytes_max);
        divide_staging(staging_slots, aligned(elements_max * element_bytes_));
        for (const Box& box : slabs(as_box(step_.schedule.target_tile), elements_max)) {
            const Region slot = packed_region(box, element_bytes_, next_slot());
            made_.reduction->parts.push_back({copy(step_.from.buffer, BufferId::staging, in_source(box), slot),
                                              copy(BufferId::staging, step_.to.buffer, slot, in_target(box)),
                                              slot.offset_bytes, static_cast<int>(count(box))});
        }
        return {};
    }

    const RankStep& step_;
    DType dtype_;
    Index element_bytes_;
    const Carriage& carriage_;
    Index staged_ = 0;
    Index slot_bytes_ = 0;
    MessageStep made_;
};

}  // namespace

Result<MessageStep> make_message_step(const RankStep& step, DType dtype, std::size_t array, const Carriage& carriage) {
    return Maker(step, dtype, array, carriage).make();
}

bool receives_alike(const Schedule& schedule) {
    const Transfer* known = nullptr;
    std::set<Index> peers;
    for (const Transfer& receive : schedule.receives) {
        if (count(receive.box) == 0) continue;
        if (!peers.insert(receive.peer).second || (known != nullptr && known->box != receive.box)) return false;
        known = &receive;
    }
    return true;
}

Index staged_bytes(const RankStep& step, DType dtype, const Carriage& carriage) {
    if (step.schedule.combine == Combine::copy) return 0;
    if (reduces_natively(step)) {
        return staging_slots * aligned(elements_of_part(step, dtype, carriage.part_bytes_max) * size_of(dtype));
    }
    Index most = 0;  // bytes of one box or one piece
    Index slots = carriage.piece_bytes == 0 ? staging_slots : 0;
    Index staged = 0;  // pieces of all boxes
    const auto falls = arrivals(step.schedule);
    for (std::size_t i = 0; i < falls.size(); ++i) {
        const Transfer& receive = step.schedule.receives[i];
        if (receive.peer == step.schedule.rank || falls[i].empty() || only_stores(falls[i])) continue;
        if (carriage.piece_bytes == 0) {
            most = std::max(most, aligned(count(receive.box) * size_of(dtype)));
            continue;
        }
        const std::vector<Box> cut = pieces_of(receive.box, dtype, carriage.piece_bytes);
        most = aligned(count(cut.front()) * size_of(dtype));
        staged += std::ssize(cut);
        // No more slots than two whole boxes fill.
        slots = std::min({piece_slots, staged, staging_slots * std::ssize(cut)});
    }
    return most * slots;
}

}  // namespace reshard::mpi
