#include "backends/nccl/prepare/step_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/schedule/box_cut.hpp"
#include "src/schedule/split_receives.hpp"

namespace reshard::nccl {
namespace {

constexpr Index alignment = 16;  // of messages in staging, for the widest access
constexpr Index nobody = -1;

Index aligned(Index bytes) { return (bytes + alignment - 1) / alignment * alignment; }

using BoxesByPeer = std::map<Index, std::vector<Box>>;

BoxesByPeer by_peer(const std::vector<Transfer>& transfers, Index own) {
    BoxesByPeer boxes;
    for (const Transfer& transfer : transfers) {
        if (transfer.peer != own && count(transfer.box) > 0) boxes[transfer.peer].push_back(transfer.box);
    }
    return boxes;
}

// The boxes that two ranks exchange in a step, as one list of boxes per piece. Boxes are cut into slabs, and the slabs
// of a piece have at most `elements_max` elements together.
std::vector<std::vector<Box>> pieces_of(const std::vector<Box>& boxes, Index elements_max) {
    std::vector<std::vector<Box>> pieces;
    Index filled = 0;
    for (const Box& box : boxes) {
        for (Box& part : slabs(box, elements_max)) {
            const Index elements = count(part);
            if (pieces.empty() || filled + elements > elements_max) {
                pieces.emplace_back();
                filled = 0;
            }
            filled += elements;
            pieces.back().push_back(std::move(part));
        }
    }
    return pieces;
}

// Makes one step.
class Maker {
public:
    Maker(const RankStep& step, const Agreed& agreed)
        : step_(step), sent_dtype_(sent_dtype(step)), sent_bytes_(size_of(sent_dtype_)), agreed_(agreed) {}

    StepProgram make(std::size_t array) {
        made_.name = name_of(step_, array);
        std::set<Index> peers;
        for (const auto* transfers : {&step_.schedule.sends, &step_.schedule.receives}) {
            for (const Transfer& transfer : *transfers) peers.insert(transfer.peer);
        }
        peers.erase(step_.schedule.rank);
        made_.peers.assign(peers.begin(), peers.end());
        if (agreed_.regular) {
            make_collective(*agreed_.regular);
        } else {
            make_messages();
        }
        for (const Box& box : step_.schedule.scaled) {
            made_.after.scale(step_.to_dtype, step_.schedule.scale, to(), in_target(box));
        }
        return std::move(made_);
    }

private:
    [[nodiscard]] Region in_source(const Box& box) const {
        return region_of(step_.from, box, size_of(step_.from_dtype));
    }
    [[nodiscard]] Region in_target(const Box& box) const { return region_of(step_.to, box, size_of(step_.to_dtype)); }
    [[nodiscard]] BufferId from() const { return step_.from.buffer; }
    [[nodiscard]] BufferId to() const { return step_.to.buffer; }
    [[nodiscard]] bool sums() const { return step_.schedule.combine != Combine::copy; }

    [[nodiscard]] Region staged(const Box& box, Index offset) const { return packed_region(box, sent_bytes_, offset); }
    Piece& piece(std::size_t number) {
        if (made_.pieces.size() <= number) made_.pieces.resize(number + 1);
        if (used_.size() <= number) used_.resize(number + 1, 0);
        return made_.pieces[number];
    }
    Index take(std::size_t number, Index bytes) {
        const Index offset = used_[number];
        used_[number] = aligned(offset + bytes);
        made_.slot_bytes = std::max(made_.slot_bytes, used_[number]);
        return offset;
    }

    void make_messages() {
        CopySet fills;
        for (const Box& box : step_.schedule.fills)
            fills.fill(to(), in_target(box), identity_of(step_.to_dtype, step_.schedule.identity));
        if (!fills.empty()) made_.before.push_back(std::move(fills));
        make_sends();
        if (sums()) {
            make_sums();
        } else {
            make_receives();
        }
    }

    // Visits one message for each peer and piece.
    template <class Visit>
    void each_message(const std::vector<Transfer>& transfers, const Visit& visit) {
        for (const auto& [peer, boxes] : by_peer(transfers, step_.schedule.rank)) {
            const auto pieces = pieces_of(boxes, agreed_.elements_max);
            for (std::size_t p = 0; p < pieces.size(); ++p) visit(static_cast<int>(peer), pieces[p], p, piece(p));
        }
    }

    void make_sends() {
        each_message(step_.schedule.sends, [&](int peer, const auto& boxes, std::size_t number, Piece& into) {
            into.sends.push_back({peer, send_of(boxes, number, into)});
        });
    }

    // The run of bytes that is sent or received: in the tile, or in staging. In staging, `stage` gets every box. An end
    // that casts always stages.
    template <class Stage>
    Run run_of(const std::vector<Box>& boxes, BufferId where, DType held, const Region& first, std::size_t number,
               const Stage& stage) {
        if (boxes.size() == 1 && contiguous(first) && held == sent_dtype_)
            return {where, first.offset_bytes, bytes_of(first)};
        const Index bytes = bytes_together(boxes);
        Index at = take(number, bytes);
        const Run run{BufferId::staging, at, bytes};
        for (const Box& box : boxes) {
            stage(box, staged(box, at));
            at += count(box) * sent_bytes_;
        }
        return run;
    }

    Run send_of(const std::vector<Box>& boxes, std::size_t number, Piece& into) {
        const DType held = step_.from_dtype;
        return run_of(boxes, from(), held, in_source(boxes.front()), number, [&](const Box& box, const Region& slot) {
            into.packs.cast(held, sent_dtype_, from(), in_source(box), BufferId::staging, slot);
        });
    }

    [[nodiscard]] Index bytes_together(const std::vector<Box>& boxes) const {
        Index bytes = 0;
        for (const Box& box : boxes) bytes += count(box) * sent_bytes_;
        return bytes;
    }

    void make_receives() {
        CopySet own;
        for (const Transfer& receive : step_.schedule.receives) {
            if (receive.peer == step_.schedule.rank)
                own.cast(step_.from_dtype, step_.to_dtype, from(), in_source(receive.box), to(),
                         in_target(receive.box));
        }
        if (!own.empty()) made_.before.push_back(std::move(own));
        each_message(step_.schedule.receives, [&](int peer, const auto& boxes, std::size_t number, Piece& into) {
            into.receives.push_back({peer, receive_of(boxes, number, into)});
        });
    }

    Run receive_of(const std::vector<Box>& boxes, std::size_t number, Piece& into) {
        const DType held = step_.to_dtype;
        return run_of(boxes, to(), held, in_target(boxes.front()), number, [&](const Box& box, const Region& slot) {
            if (into.unpacks.empty()) into.unpacks.emplace_back();
            into.unpacks.front().cast(sent_dtype_, held, BufferId::staging, slot, to(), in_target(box));
        });
    }

    // A box of a sum: where it comes from, and its piece.
    struct Summand {
        std::size_t piece;
        BufferId from;
        Region region;
        Box box;
    };

    // Summands of a piece are in the order of the list. Every piece of a peer is one message.
    void make_sums() {
        std::vector<Summand> summands = own_and_received();
        std::ranges::stable_sort(summands, {}, &Summand::piece);
        Schedule order{step_.schedule.kind, step_.schedule.rank, {}, {}, step_.schedule.combine, {}, {}, {}, {}};
        for (const Summand& summand : summands) order.receives.push_back({0, summand.box});
        const auto falls = arrivals(order);
        for (std::size_t i = 0; i < falls.size(); ++i) {
            CopySet set;
            for (const SplitReceive& fall : falls[i]) land(summands[i], fall, set);
            if (!set.empty()) piece(summands[i].piece).unpacks.push_back(std::move(set));
        }
    }

    void land(const Summand& summand, const SplitReceive& fall, CopySet& set) const {
        const Region part = within(summand.region, summand.box, fall.box);
        if (fall.adds) {
            set.combine(step_.to_dtype, step_.schedule.combine, summand.from, part, to(), in_target(fall.box));
        } else {
            set.copy(summand.from, part, to(), in_target(fall.box));
        }
    }

    // The cut boxes of every receive, in the order of the list. All boxes of one peer and piece lie together in
    // staging. The rank's own share is cut in the same way, and stays where it lies.
    std::vector<Summand> own_and_received() {
        struct Incoming {
            std::vector<std::vector<Box>> pieces;
            std::vector<Index> offsets;  // in staging, of the next box of each piece
            std::size_t piece = 0;
            std::size_t box = 0;
        };
        std::map<Index, Incoming> incoming;
        for (const auto& [peer, boxes] : by_peer(step_.schedule.receives, nobody)) {
            Incoming& one = incoming[peer];
            one.pieces = pieces_of(boxes, agreed_.elements_max);
            for (std::size_t p = 0; p < one.pieces.size(); ++p) {
                Piece& into = piece(p);
                const bool own = peer == step_.schedule.rank;
                const Index bytes = own ? 0 : bytes_together(one.pieces[p]);
                one.offsets.push_back(take(p, bytes));
                if (!own) into.receives.push_back({static_cast<int>(peer), {BufferId::staging, one.offsets[p], bytes}});
            }
        }
        std::vector<Summand> summands;
        for (const Transfer& receive : step_.schedule.receives) {
            const bool own = receive.peer == step_.schedule.rank;
            for (const Box& part : slabs(receive.box, agreed_.elements_max)) {
                Incoming& one = incoming[receive.peer];
                Index& offset = one.offsets[one.piece];
                summands.push_back(
                    {one.piece, own ? from() : BufferId::staging, own ? in_source(part) : staged(part, offset), part});
                offset += own ? 0 : count(part) * sent_bytes_;
                if (++one.box == one.pieces[one.piece].size()) {
                    ++one.piece;
                    one.box = 0;
                }
            }
        }
        return summands;
    }

    void make_collective(const NcclCollective& regular) {
        const auto members = static_cast<Index>(regular.members.size());
        const Index elements_max = agreed_.direct ? index_max : std::max<Index>(1, agreed_.elements_max / members);
        std::vector<std::vector<Box>> gives;
        std::vector<std::vector<Box>> takes;
        for (const Box& box : regular.gives) gives.push_back(slabs(box, elements_max));
        for (const Box& box : regular.takes) takes.push_back(slabs(box, elements_max));
        for (std::size_t p = 0; p < gives.front().size(); ++p) {
            Piece& into = piece(p);
            Collective call{regular.kind, regular.as.type, regular.as.op, 0, {}, {}};
            call.count = static_cast<std::size_t>(count(gives.front()[p]) * regular.as.elements);
            call.gives = gives_of(gives, p, into);
            call.takes = takes_of(takes, p, into);
            into.collective = call;
        }
    }

    [[nodiscard]] std::vector<Box> blocks_of(const std::vector<std::vector<Box>>& parts, std::size_t number) const {
        std::vector<Box> blocks;
        for (const std::vector<Box>& of_block : parts) blocks.push_back(of_block[number]);
        return blocks;
    }

    Run gives_of(const std::vector<std::vector<Box>>& parts, std::size_t number, Piece& into) {
        const std::vector<Box> blocks = blocks_of(parts, number);
        if (!agreed_.direct) return send_of(blocks, number, into);
        return {from(), in_source(blocks.front()).offset_bytes, bytes_together(blocks)};
    }

    Run takes_of(const std::vector<std::vector<Box>>& parts, std::size_t number, Piece& into) {
        const std::vector<Box> blocks = blocks_of(parts, number);
        if (!agreed_.direct) return receive_of(blocks, number, into);
        return {to(), in_target(blocks.front()).offset_bytes, bytes_together(blocks)};
    }

    const RankStep& step_;
    DType sent_dtype_;
    Index sent_bytes_;  // of an element in a message
    const Agreed& agreed_;
    std::vector<Index> used_;  // bytes of the slot, per piece
    StepProgram made_;
};

}  // namespace

std::string name_of(const RankStep& step, std::size_t array) {
    return fmt::format("array {}, step {} ({})", array, step.step + 1, name(step.schedule.kind));
}

StepProgram make_step_program(const RankStep& step, std::size_t array, const Agreed& agreed) {
    return Maker(step, agreed).make(array);
}

bool nothing_packed(const RankStep& step) {
    const Schedule& schedule = step.schedule;
    if (schedule.combine != Combine::copy || casts(step)) return false;
    const Index element_bytes = size_of(step.from_dtype);
    const auto whole = [&](const std::vector<Transfer>& transfers, const Slot& slot) {
        return std::ranges::all_of(by_peer(transfers, schedule.rank), [&](const auto& boxes) {
            return boxes.second.size() == 1 && contiguous(region_of(slot, boxes.second.front(), element_bytes));
        });
    };
    return whole(schedule.sends, step.from) && whole(schedule.receives, step.to);
}

bool order_survives_cutting(const Schedule& schedule) {
    if (schedule.combine == Combine::copy || schedule.receives.empty()) return true;
    const Box& first = schedule.receives.front().box;
    std::set<Index> peers;
    for (const Transfer& receive : schedule.receives) {
        if (receive.box != first || !peers.insert(receive.peer).second) return false;
    }
    return true;
}

}  // namespace reshard::nccl
