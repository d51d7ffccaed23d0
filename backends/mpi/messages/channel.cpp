#include "backends/mpi/messages/channel.hpp"

#include <algorithm>
#include <map>

#include "src/base/try.hpp"
#include "src/schedule/box_cut.hpp"

namespace reshard::mpi {
namespace {

constexpr Index shared_at_most = 16;  // a transfer larger than this part of a piece has its own messages
constexpr Index slot_bytes_unit = 64;
constexpr Index cast_piece_bytes = 4096;  // of messages that are cast, if nothing else is packed

// A box in a message, and where it lies at this end.
struct Share {
    std::size_t step = 0;
    Box box;
    Region region;
    ElementCast cast;  // at this end
};

struct Bundle {
    std::vector<Share> shares;
    Index bytes = 0;
};

struct Ends {
    int peer = 0;
    bool sends = false;
    friend auto operator<=>(const Ends&, const Ends&) = default;
};

bool in_place(const Bundle& bundle) {
    const Share& first = bundle.shares.front();
    return bundle.shares.size() == 1 && !first.cast && contiguous(first.region);
}

// Builds one channel.
class ChannelMaker {
public:
    ChannelMaker(std::span<const ChannelStep> steps, Ends ends, const Framing& framing)
        : steps_(steps), framing_(framing), channel_{ends.peer, ends.sends, {}} {}

    void add(std::size_t step, const Box& box) {
        const Index element_bytes = steps_[step].element_bytes;
        const Index bytes = count(box) * element_bytes;
        const bool packs = framing_.piece_bytes > 0;
        if (!packs && !casts(*steps_[step].step)) {
            put(step, box, bytes);
            return close();
        }
        if (!packs || bytes > framing_.piece_bytes / shared_at_most) {
            close();
            for (const Box& part : slabs(box, (packs ? framing_.piece_bytes : cast_piece_bytes) / element_bytes)) {
                put(step, part, count(part) * element_bytes);
                close();
            }
            return;
        }
        if (open_.bytes + bytes > framing_.piece_bytes) close();
        put(step, box, bytes);
    }

    // Places the slots in the staging, from `staged_bytes` on.
    Result<Channel> make(Index& staged_bytes) {
        close();
        Index slot_bytes = 0;
        Index staged = 0;
        for (const Bundle& bundle : bundles_) {
            if (!is_packed(bundle)) continue;
            slot_bytes = std::max(slot_bytes, ceil_divide(bundle.bytes, slot_bytes_unit) * slot_bytes_unit);
            ++staged;
        }
        std::size_t slot = 0;
        for (const Bundle& bundle : bundles_) {
            RESHARD_TRY(auto& piece, make_piece(bundle, staged_bytes + static_cast<Index>(slot) * slot_bytes));
            piece.slot = slot;
            if (!piece.copies.empty()) slot = (slot + 1) % channel_slots;
            channel_.pieces.push_back(std::move(piece));
        }
        staged_bytes += std::min<Index>(staged, channel_slots) * slot_bytes;
        return std::move(channel_);
    }

private:
    void put(std::size_t step, const Box& box, Index bytes) {
        const ChannelStep& travel = steps_[step];
        const RankStep& own = *travel.step;
        const ElementCast cast = cast_of(own.from_dtype, own.to_dtype);
        open_.shares.push_back(
            channel_.sends ? Share{step, box, region_of(own.from, box, size_of(own.from_dtype)), at_sender(cast)}
                           : Share{step, box, region_of(own.to, box, size_of(own.to_dtype)), at_receiver(cast)});
        open_.bytes += bytes;
    }

    void close() {
        if (!open_.shares.empty()) bundles_.push_back(std::move(open_));
        open_ = {};
    }

    [[nodiscard]] bool is_packed(const Bundle& bundle) const {
        return !in_place(bundle) && (framing_.piece_bytes > 0 || bundle.shares.front().cast);
    }

    [[nodiscard]] BufferId where(std::size_t step) const {
        const RankStep& moved = *steps_[step].step;
        return channel_.sends ? moved.from.buffer : moved.to.buffer;
    }

    [[nodiscard]] Result<Packet> make_piece(const Bundle& bundle, Index slot_offset) const {
        const Share& first = bundle.shares.front();
        Packet piece;
        piece.bytes = bundle.bytes;
        piece.step = first.step;
        piece.array = steps_[first.step].array;
        piece.where = where(first.step);
        piece.offset_bytes = first.region.offset_bytes;
        if (!is_packed(bundle)) {
            if (framing_.piece_bytes == 0) {
                RESHARD_ASSIGN(piece.type, region_type(first.region));
            }
            return piece;
        }
        piece.where = BufferId::staging;
        piece.offset_bytes = slot_offset;
        for (const Share& share : bundle.shares) {
            const ChannelStep& travel = steps_[share.step];
            const Region packed = packed_region(share.box, travel.element_bytes, slot_offset);
            slot_offset += count(share.box) * travel.element_bytes;
            const BufferId there = where(share.step);
            piece.copies.push_back(
                channel_.sends
                    ? LocalCopy{travel.array, there, BufferId::staging, BoxCopy(share.region, packed, share.cast)}
                    : LocalCopy{travel.array, BufferId::staging, there, BoxCopy(packed, share.region, share.cast)});
        }
        return piece;
    }

    std::span<const ChannelStep> steps_;
    const Framing& framing_;
    Channel channel_;
    Bundle open_;
    std::vector<Bundle> bundles_;
};

}  // namespace

Result<std::vector<Channel>> make_channels(std::span<const ChannelStep> steps, const NodeMap& nodes,
                                           const Framing& framing, Index& staged_bytes) {
    std::map<Ends, ChannelMaker> makers;
    Index rank = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step == nullptr) continue;
        const Schedule& schedule = steps[i].step->schedule;
        rank = schedule.rank;
        for (const bool sends : {false, true}) {
            for (const Transfer& transfer : sends ? schedule.sends : schedule.receives) {
                if (count(transfer.box) == 0 || transfer.peer == schedule.rank || nodes.has(transfer.peer)) continue;
                const Ends ends{static_cast<int>(transfer.peer), sends};
                makers.try_emplace(ends, steps, ends, framing).first->second.add(i, transfer.box);
            }
        }
    }
    std::vector<Channel> channels;
    for (auto& [ends, maker] : makers) {
        RESHARD_TRY(auto& channel, maker.make(staged_bytes));
        channels.push_back(std::move(channel));
    }
    // Each rank begins with the peers after it, so that not all begin with the same one.
    std::stable_partition(channels.begin(), channels.end(),
                          [&](const Channel& channel) { return channel.peer > rank; });
    return channels;
}

}  // namespace reshard::mpi
