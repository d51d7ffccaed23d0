#include "synth/search/device_tiles.hpp"

#include <algorithm>
#include <bit>

#include "src/plan/stripes.hpp"
#include "src/price/carried.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

constexpr DeviceSet bit(std::size_t device) { return DeviceSet{1} << device; }

std::size_t first_of(DeviceSet devices) { return static_cast<std::size_t>(std::countr_zero(devices)); }

template <class Visit>
void each(DeviceSet devices, const Visit& visit) {
    for (; devices != 0; devices &= devices - 1) visit(first_of(devices));
}

// One device for each different tile in the set.
DeviceSet once(const std::array<DeviceSet, DeviceTiles::devices_max>& same, DeviceSet devices) {
    DeviceSet firsts = 0;
    for (; devices != 0; devices &= ~same[first_of(devices)]) firsts |= bit(first_of(devices));
    return firsts;
}

}  // namespace

DeviceTiles::DeviceTiles(const SearchSpace& frame, const Machine& machine) : frame_(frame), machine_(machine) {
    const Mesh& mesh = frame.like->mesh;
    const Index count = device_count(mesh);
    std::vector<std::pair<Index, Index>> devices;  // with their positions
    for (Index position = 0; position < count; ++position) devices.emplace_back(device_at(mesh, position), position);
    std::ranges::sort(devices);
    AtomList cancelled;
    for (const AtomList& prefix : frame.prefixes) cancelled.insert(cancelled.end(), prefix.begin(), prefix.end());
    const std::size_t levels = machine.levels.size();
    blocks_.resize(levels);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        all_ |= bit(i);
        positions_.push_back(devices[i].second);
        for (std::size_t other = 0; other < devices.size(); ++other)
            if (value_of(cancelled, devices[other].second) == value_of(cancelled, positions_[i]))
                alike_[i] |= bit(other);
        for (std::size_t level = 0; level < levels; ++level) {
            const Index block = level + 1 < levels ? machine.levels[level].devices : index_max;
            if (i == 0 || devices[i].first / block != devices[i - 1].first / block) blocks_[level].push_back(0);
            blocks_[level].back() |= bit(i);
        }
    }
    for (const std::vector<DeviceSet>& blocks : blocks_)
        for (const DeviceSet block : blocks)
            around_.insert(around_.end(), static_cast<std::size_t>(std::popcount(block)), block);
    const Layout uncut = frame.layout({});
    const Network network = network_of(machine, world_size(mesh));
    counts_moves_ = (frame.even || frame.exact) && !blocks_are_digits(uncut, uncut, network);
    wants_.resize(devices.size());
    pair_.resize(levels);
    for (Numbers* counts : {&sent_, &received_, &messages_}) counts->resize(levels * devices.size());
}

DeviceSet DeviceTiles::set_of(std::span<const Index> positions) const {
    DeviceSet devices = 0;
    for (std::size_t i = 0; i < positions_.size(); ++i)
        if (std::ranges::find(positions, positions_[i]) != positions.end()) devices |= bit(i);
    return devices;
}

const DeviceTiles::Cut& DeviceTiles::cut_of(List list) {
    const auto [known, added] = cut_.try_emplace(list.word());
    Cut& cut = known->second;
    if (!added) return cut;
    cut.devices.resize(static_cast<std::size_t>(frame_.shards(list)));
    for (std::size_t i = 0; i < positions_.size(); ++i) {
        Index shard = 0;
        for (std::size_t j = 0; j < list.size(); ++j) {
            const Piece& piece = frame_.pieces[list[j]];
            shard = shard * piece.size + positions_[i] / piece.stride % piece.size;
        }
        cut.shard[i] = static_cast<std::uint8_t>(shard);
        cut.devices[static_cast<std::size_t>(shard)] |= bit(i);
    }
    return cut;
}

// Cuts at once depend on nothing but the number of shards.
const DeviceTiles::Common& DeviceTiles::common_of(std::size_t dim, List held, List wanted) {
    const auto cut = [&](List list) {
        return frame_.by_turns ? std::uint64_t{list.word()} : static_cast<std::uint64_t>(frame_.shards(list));
    };
    const auto [known, added] = common_[dim].try_emplace(cut(held) << 32 | cut(wanted));
    Common& common = known->second;
    if (!added) return common;
    std::vector<Interval> parts;
    for (Index shard = 0; shard < frame_.shards(held); ++shard) parts.push_back(frame_.share(dim, held, shard));
    const auto wanted_shards = static_cast<std::size_t>(frame_.shards(wanted));
    for (std::size_t to = 0; to < wanted_shards; ++to) {
        const Interval mine = frame_.share(dim, wanted, static_cast<Index>(to));
        common.wants.push_back(std::max<Index>(0, mine.size()));
        for (std::size_t from = 0; from < parts.size(); ++from) {
            const Interval& part = parts[from];
            common.elements.push_back(
                std::max<Index>(0, std::min(mine.end, part.end) - std::max(mine.begin, part.begin)));
            if (common.elements.back() > 0) common.meetings.emplace_back(from, to);
        }
    }
    common.part = std::ranges::max(common.elements);
    const auto varies = [&](Index part) { return part != 0 && part != common.part; };
    const auto differs = [&](Index want) { return want != common.wants[0]; };
    if (std::ranges::any_of(common.elements, varies) || std::ranges::any_of(common.wants, differs)) common.part = 0;
    return common;
}

const DeviceTiles::Contact& DeviceTiles::contact_of(std::size_t dim, List held, List wanted) {
    const std::uint64_t both = static_cast<std::uint64_t>(held.word()) << 32 | wanted.word();
    const auto [known, added] = contact_[dim].try_emplace(both);
    Contact& contact = known->second;
    if (!added) return contact;
    contact.held = &cut_of(held);
    contact.wanted = &cut_of(wanted);
    contact.common = &common_of(dim, held, wanted);
    contact.holders.resize(contact.wanted->devices.size());
    contact.wanters.resize(contact.held->devices.size());
    for (const auto& [from, to] : contact.common->meetings) {
        contact.holders[to] |= contact.held->devices[from];
        contact.wanters[from] |= contact.wanted->devices[to];
    }
    return contact;
}

const DeviceTiles::Tiles& DeviceTiles::tiles_of(const State& state) {
    const auto [known, added] = tiles_.try_emplace(state.code(frame_.lists));
    Tiles& tiles = known->second;
    if (!added) return tiles;
    tiles.same = alike_;
    for (std::size_t dim = 0; dim < frame_.dims(); ++dim) {
        if (state.lists[dim].empty()) continue;
        const Cut& cut = cut_of(state.lists[dim]);
        for (std::size_t i = 0; i < positions_.size(); ++i) tiles.same[i] &= cut.devices[cut.shard[i]];
    }
    tiles.once.push_back(all_);
    for (std::size_t level = 0; level + 1 < blocks_.size(); ++level) {
        DeviceSet firsts = 0;
        for (const DeviceSet block : blocks_[level]) firsts |= once(tiles.same, block);
        tiles.once.push_back(firsts);
    }
    return tiles;
}

void DeviceTiles::between(const State& held, const State& wanted) {
    if (held_tiles_ != nullptr && held_ == held && wanted_ == wanted) return;
    held_ = held;
    wanted_ = wanted;
    held_tiles_ = &tiles_of(held);
    wanted_tiles_ = &tiles_of(wanted);
    held_summands_ = &cut_of(held.lists[frame_.dims()]);
    wanted_summands_ = &cut_of(wanted.lists[frame_.dims()]);
    whole_ = part_ = wants_each_ = 1;
    contacts_.clear();
    uneven_.clear();
    for (std::size_t dim = 0; dim < frame_.dims(); ++dim) {
        if (held.lists[dim].empty() && wanted.lists[dim].empty()) {
            whole_ *= frame_.extents[dim];
            continue;
        }
        const Contact& contact = contact_of(dim, held.lists[dim], wanted.lists[dim]);
        contacts_.push_back(&contact);
        if (contact.common->part == 0) {
            uneven_.push_back(&contact);
        } else {
            part_ *= contact.common->part;
            wants_each_ *= contact.common->wants[0];
        }
    }
    part_ *= whole_;
    wants_each_ *= whole_;
}

Index DeviceTiles::met(std::size_t holder, std::size_t wanter) const {
    Index elements = whole_;
    for (const Contact* contact : contacts_) elements *= contact->met(holder, wanter);
    return elements;
}

Index DeviceTiles::lacking(std::size_t level, DeviceSet block) const {
    const DeviceSet holders = held_tiles_->once[level] & block;
    Index lacks = 0;
    each(wanted_tiles_->once[level] & block, [&](std::size_t wanter) {
        DeviceSet near = holders;
        for (const Contact* contact : contacts_) near &= contact->holders[contact->wanted->shard[wanter]];
        if (uneven_.empty()) {
            lacks += wants_each_ - part_ * std::popcount(near);
            return;
        }
        Index wants = wants_each_;
        InlineVector<Factor, lists_max> factors;
        for (const Contact* contact : uneven_) {
            const std::uint8_t shard = contact->wanted->shard[wanter];
            wants *= contact->common->wants[shard];
            factors.push_back({contact->elements() + shard * contact->held->devices.size(), contact});
        }
        lacks += wants;
        each(near, [&](std::size_t holder) {
            Index has = part_;
            for (const auto& [met, contact] : factors) has *= met[contact->held->shard[holder]];
            lacks -= has;
        });
    });
    return lacks;
}

// visit(holders, wanters) for each tile that is held; of a sum for each summand. No other devices want any of it.
template <class Visit>
void DeviceTiles::each_tile(const Visit& visit) const {
    for (DeviceSet left = all_; left != 0;) {
        const std::size_t first = first_of(left);
        const std::uint8_t summand = held_summands_->shard[first];
        const DeviceSet holders = held_tiles_->same[first] & held_summands_->devices[summand];
        left &= ~holders;
        visit(holders, alike_[first] & wanted_summands_->devices[summand]);
    }
}

// visit(level, block) for each block with devices of both, from the inside out, until one set is empty.
template <class Visit>
void DeviceTiles::each_block(const DeviceSet& held, const DeviceSet& wanted, const Visit& visit) const {
    for (std::size_t level = 0; level < blocks_.size() && wanted != 0; ++level) {
        const DeviceSet* around = around_.data() + level * positions_.size();
        DeviceSet left = held;
        while (left != 0) {
            const DeviceSet block = around[first_of(left)];
            left &= ~block;
            if ((wanted & block) != 0) visit(level, block);
        }
    }
}

// The holders in the least block around a device serve it.
void DeviceTiles::exchange(const LevelSpans& out) {
    begin();
    each_tile([&](DeviceSet holders, DeviceSet wanters) {
        const std::size_t first = first_of(holders);
        wanters &= ~holders;
        for (const Contact* contact : contacts_) wanters &= contact->wanters[contact->held->shard[first]];
        // A factor for each dimension that is cut after the move.
        Index whole = whole_;
        InlineVector<Factor, lists_max> factors;
        for (const Contact* contact : contacts_) {
            const Index* met = contact->elements() + contact->held->shard[first];
            if (contact->wanted->devices.size() > 1)
                factors.push_back({met, contact});
            else
                whole *= *met;
        }
        each(wanters, [&](std::size_t wanter) {
            Index elements = whole;
            for (const auto& [met, contact] : factors)
                elements *= met[contact->wanted->shard[wanter] * contact->held->devices.size()];
            wants_[wanter] = elements;
        });
        each_block(holders, wanters, [&](std::size_t level, DeviceSet block) {
            serve(level, holders & block, wanters & block);
            wanters &= ~block;
        });
    });
    end(out);
}

// As Stripes.
void DeviceTiles::serve(std::size_t level, DeviceSet holders, DeviceSet wanters) {
    const std::size_t first = first_of(holders);
    if (holders == bit(first)) {
        each(wanters, [&](std::size_t wanter) { add(level, first, wanter, wants_[wanter]); });
        return;
    }
    Index all = 0;
    each(wanters, [&](std::size_t wanter) { all += wants_[wanter]; });
    const Index part = ceil_divide(all, std::popcount(holders));
    Index room = part;  // what the holder at hand still serves
    each(wanters, [&](std::size_t wanter) {
        for (Index wants = wants_[wanter]; wants > 0;) {
            if (room == 0) {
                holders &= holders - 1;
                room = part;
            }
            const Index served = std::min(wants, room);
            add(level, first_of(holders), wanter, served);
            wants -= served;
            room -= served;
        }
    });
}

void DeviceTiles::permute(const LevelSpans& out) {
    begin();
    each_tile([&](DeviceSet holders, DeviceSet wanters) {
        const std::size_t first = first_of(holders);
        Index tile = whole_;
        for (const Contact* contact : contacts_) {
            const std::uint8_t shard = contact->held->shard[first];
            wanters &= contact->wanted->devices[shard];
            tile *= contact->common->wants[shard];
        }
        DeviceSet givers = holders & ~wanters;
        DeviceSet takers = wanters & ~holders;
        each_block(givers, takers, [&](std::size_t level, DeviceSet block) {
            while ((givers & block) != 0 && (takers & block) != 0) {
                const std::size_t from = first_of(givers & block);
                const std::size_t to = first_of(takers & block);
                add(level, from, to, tile);
                givers &= ~bit(from);
                takers &= ~bit(to);
            }
        });
    });
    end(out);
}

// Each member of a group has something for each other.
void DeviceTiles::collective(StepKind kind, std::span<const Atom> group, const LevelSpans& out) {
    begin();
    const AtomList others = complement(group, std::ssize(positions_));
    std::unordered_map<Index, DeviceSet> groups;  // by the other digits
    for (std::size_t i = 0; i < positions_.size(); ++i) groups[value_of(others, positions_[i])] |= bit(i);
    each(all_, [&](std::size_t wanter) {
        DeviceSet left = groups[value_of(others, positions_[wanter])] & ~bit(wanter);
        for (std::size_t level = 0; level < blocks_.size(); ++level) {
            const DeviceSet block = around_[level * positions_.size() + wanter];
            each(left & block, [&](std::size_t holder) {
                if (const Index elements = met(holder, wanter); elements > 0) add(level, holder, wanter, elements);
            });
            left &= ~block;
        }
    });
    const bool sums = kind == StepKind::all_reduce;
    end(out, rounds_of(kind), sums ? combinations(group) : 1);
}

void DeviceTiles::begin() {
    for (Numbers* counts : {&sent_, &received_, &messages_, &pair_}) std::ranges::fill(*counts, 0);
}

Index DeviceTiles::busiest(const Numbers& counts, std::size_t level) const {
    const std::span<const Index> all = std::span(counts).subspan(level * positions_.size(), positions_.size());
    if (sharing_block(machine_, level) == 1) return *std::ranges::max_element(all);
    Index most = 0;
    for (const DeviceSet block : blocks_[level - 1]) {
        Index sum = 0;
        each(block, [&](std::size_t device) { sum += all[device]; });
        most = std::max(most, sum);
    }
    return most;
}

// Each element goes so many times, in so many parts.
void DeviceTiles::end(const LevelSpans& out, Index times, Index parts) const {
    for (std::size_t level = 0; level < blocks_.size(); ++level) {
        out.elements[level] = ceil_divide(times * std::max(busiest(sent_, level), busiest(received_, level)), parts);
        out.pair[level] = ceil_divide(times * pair_[level], parts);
        const auto first = messages_.begin() + static_cast<std::ptrdiff_t>(level * positions_.size());
        out.messages[level] = times * *std::max_element(first, first + std::ssize(positions_));
    }
}

}  // namespace reshard
