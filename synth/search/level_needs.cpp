#include "synth/search/level_needs.hpp"

#include <algorithm>

namespace reshard {

namespace {

/// Blocks of so many devices at most are looked at; fewer if no digits tell them apart, since each tile is looked at.
constexpr Index devices_max = 1024;

std::vector<Index> positions_of(const SearchSpace& frame) {
    std::vector<Index> positions = {0};
    for (const Piece& piece : frame.pieces) {
        const std::size_t count = positions.size();
        for (Index digit = 1; digit < piece.size; ++digit)
            for (std::size_t i = 0; i < count; ++i) positions.push_back(positions[i] + digit * piece.stride);
    }
    return positions;
}

Index common_indices(std::span<const Interval> a, std::span<const Interval> b) {
    Index sum = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        sum += std::max<Index>(0, std::min(a[i].end, b[j].end) - std::max(a[i].begin, b[j].begin));
        if (a[i].end < b[j].end)
            ++i;
        else
            ++j;
    }
    return sum;
}

}  // namespace

LevelNeeds::LevelNeeds(const SearchSpace& frame, const Machine& machine, const NetworkDigits& network,
                       DeviceTiles* tiles)
    : frame_(frame), machine_(machine), network_(network), element_(size_of(frame.like->dtype)) {
    const auto told = [&](const Piece& piece) { return network.exact({piece.size, piece.stride}); };
    const bool all_told = std::all_of(frame.pieces.begin(), frame.pieces.end(), told);
    const std::size_t levels = machine.levels.size();
    Index elements = 1;
    for (const Index extent : frame.extents) elements = saturating_multiply(elements, extent);
    if (frame.mixed || !(frame.even || frame.exact) || (all_told ? frame.devices > devices_max : tiles == nullptr) ||
        elements == index_max || levels == 1)
        return;
    std::vector<std::pair<Index, Index>> devices;
    for (const Index position : positions_of(frame))
        devices.emplace_back(device_at(frame.like->mesh, position), position);
    if (!all_told) {
        if (std::ssize(devices) < device_count(frame.like->mesh)) return;  // others stand elsewhere
        tiles_ = tiles;
    }
    std::ranges::sort(devices);
    InlineVector<Index, levels_max> inside;
    for (std::size_t level = 0; level < levels; ++level) inside.push_back(devices_inside(level));
    floor_.emplace(machine, inside, element_);
    if (!floor_->known()) return;
    const auto block_of = [&](std::size_t level, Index device) {
        return level == 0 ? device : device / machine.levels[level - 1].devices;
    };
    for (std::size_t level = 0; level < levels; ++level) {
        const std::size_t around = floor_->unit_level(level);
        Border border{positions_.size(), {}, 1, {}};
        for (std::size_t i = 0; i < devices.size() && around > 0; ++i) {  // what single devices receive is known
            const auto begins = [&](std::size_t at) {
                return i == 0 || block_of(at, devices[i].first) != block_of(at, devices[i - 1].first);
            };
            if (begins(around) && i > 0) border.ends.push_back(positions_.size());
            if (begins(level)) positions_.emplace_back();
            positions_.back().push_back(devices[i].second);
        }
        if (around > 0) border.ends.push_back(positions_.size());
        if (all_told)
            border.times =
                floor_->unit_devices(level) * std::max<Index>(std::ssize(border.ends), 1) / std::ssize(devices);
        for (const Piece& piece : frame.pieces)
            border.tells.push_back(network.level({piece.size, piece.stride}) >= level);
        borders_.push_back(std::move(border));
    }
    for (std::size_t block = 0; tiles_ != nullptr && block < positions_.size(); ++block)
        blocks_.push_back(tiles_->set_of(positions_[block]));
}

// For blocks that no digits describe: the number of devices that fit.
Index LevelNeeds::devices_inside(std::size_t level) const {
    if (!tiles_) return network_.devices_inside(level);
    return level == 0 ? 1 : machine_.levels[level - 1].devices;
}

const LevelNeeds::Unions& LevelNeeds::unions(std::size_t dim, List list) {
    const auto [known, added] = unions_[dim].try_emplace(list.word());
    if (!added) return known->second;
    auto& [intervals, ends] = known->second;
    ends.reserve(positions_.size());
    std::vector<Index> shards;
    for (const std::vector<Index>& block : positions_) {
        shards.clear();
        for (const Index position : block) {
            Index shard = 0;
            for (std::size_t j = 0; j < list.size(); ++j) {
                const Piece& piece = frame_.pieces[list[j]];
                shard = shard * piece.size + position / piece.stride % piece.size;
            }
            shards.push_back(shard);
        }
        std::ranges::sort(shards);
        shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
        const std::size_t first = intervals.size();
        for (const Index shard : shards) {
            const Interval part = frame_.share(dim, list, shard);
            if (part.begin >= part.end) continue;
            if (intervals.size() > first && part.begin <= intervals.back().end)
                intervals.back().end = std::max(intervals.back().end, part.end);
            else
                intervals.push_back(part);
        }
        ends.push_back(intervals.size());
    }
    return known->second;
}

// For each block the number of indices of a dimension that its devices have in both cuts. Then, for each block, the
// number of indices in the second cut.
const Index* LevelNeeds::common(std::size_t dim, List held, List wanted) {
    const std::uint64_t both = static_cast<std::uint64_t>(held.word()) << 32 | wanted.word();
    const auto [known, added] = common_[dim].try_emplace(both);
    if (added) {
        const Unions& one = unions(dim, held);
        const Unions& other = unions(dim, wanted);
        known->second.reserve(2 * positions_.size());
        const auto of = [&](const Unions& all, std::size_t block) {
            const std::size_t first = block == 0 ? 0 : all.ends[block - 1];
            return std::span(all.intervals).subspan(first, all.ends[block] - first);
        };
        for (std::size_t block = 0; block < positions_.size(); ++block)
            known->second.push_back(common_indices(of(one, block), of(other, block)));
        for (std::size_t block = 0; block < positions_.size(); ++block) {
            Index sum = 0;
            for (const Interval& interval : of(other, block)) sum += interval.size();
            known->second.push_back(sum);
        }
    }
    return known->second.data();
}

// The most elements that the blocks of a unit want and lack. Returns 0 if summands change to other summands.
Index LevelNeeds::entering(std::size_t level, const State& held, const State& wanted) {
    if (tiles_) return entering_tiles(level, held, wanted);
    const Border& border = borders_[level];
    const std::size_t dims = frame_.dims();
    const List summands = held.lists[dims];
    bool lacks_all = false;  // some summand of each element is elsewhere
    if (summands != wanted.lists[dims]) {
        if (!wanted.lists[dims].empty()) return 0;
        for (std::size_t j = 0; j < summands.size(); ++j) lacks_all = lacks_all || border.tells[summands[j]];
    }
    Index whole = 1;  // elements of the dimensions that neither cuts
    InlineVector<const Index*, lists_max> cuts;
    for (std::size_t i = 0; i < dims; ++i) {
        if (held.lists[i].empty() && wanted.lists[i].empty())
            whole *= frame_.extents[i];
        else
            cuts.push_back(common(i, held.lists[i], wanted.lists[i]));
    }
    Index most = 0;
    std::size_t block = border.first;
    for (const std::size_t end : border.ends) {
        Index lacks = 0;
        for (; block < end; ++block) {
            Index wants = whole;
            Index has = lacks_all ? 0 : whole;
            for (const Index* both : cuts) {
                wants *= both[positions_.size() + block];
                has *= both[block];
            }
            lacks = saturating_add(lacks, wants - has);
        }
        most = std::max(most, lacks);
    }
    return saturating_multiply(most, border.times);
}

Index LevelNeeds::entering_tiles(std::size_t level, const State& held, const State& wanted) {
    const Border& border = borders_[level];
    const std::size_t dims = frame_.dims();
    if (held.lists[dims] != wanted.lists[dims] && !wanted.lists[dims].empty()) return 0;
    tiles_->between(held, wanted);
    Index most = 0;
    std::size_t block = border.first;
    for (const std::size_t end : border.ends) {
        Index lacks = 0;
        for (; block < end; ++block) lacks += tiles_->lacking(level, blocks_[block]);
        most = std::max(most, lacks);
    }
    return most;
}

Index LevelNeeds::picoseconds(const State& held, const State& wanted, Index received) {
    return floor_->picoseconds(
        [&](std::size_t level) { return borders_[level].ends.empty() ? received : entering(level, held, wanted); });
}

}  // namespace reshard
