// How the digits of positions lie in the blocks of a machine.
#include <algorithm>
#include <utility>

#include "reshard/planner/refinement.hpp"
#include "src/price/network_digits.hpp"

namespace reshard {

Network network_of(const Machine& machine, Index devices) {
    Network network;
    for (const Level& level : machine.levels)
        if (&level != &machine.levels.back() && level.devices < devices) network.push_back(level.devices);
    return network;
}

namespace {

// The innermost level that has devices so far apart.
std::size_t level_of_span(const Machine& machine, Index devices) {
    std::size_t level = 0;
    while (level + 1 < machine.levels.size() && machine.levels[level].devices < devices) ++level;
    return level;
}

// The block of each position in a level.
std::vector<Index> blocks_of(const Mesh& mesh, Index devices) {
    std::vector<Index> blocks;
    for (Index position = 0; position < device_count(mesh); ++position)
        blocks.push_back(device_at(mesh, position) / devices);
    return blocks;
}

// The same numbers, from 0 without gaps.
std::vector<Index> without_gaps(std::vector<Index> blocks) {
    std::vector<Index> numbers = blocks;
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (Index& block : blocks) block = std::ranges::lower_bound(numbers, block) - numbers.begin();
    return blocks;
}

/// Groups are looked at device by device on up to so many.
constexpr Index devices_looked_at_max = 4096;

// Positions are in one block exactly when they agree in the digits beyond it. `primes`: all digits, most major first.
bool told_by(const std::vector<Index>& blocks, const AtomList& primes, const std::vector<bool>& beyond) {
    std::vector<Index> values = {0};  // of those digits, by position
    values.reserve(blocks.size());
    Index weight = 1;
    for (std::size_t i = primes.size(); i-- > 0;) {
        const Index step = beyond[i] ? weight : 0;
        const std::size_t count = values.size();
        for (Index digit = 1; digit < primes[i].size; ++digit)
            for (std::size_t at = 0; at < count; ++at) values.push_back(values[at] + digit * step);
        if (beyond[i]) weight *= primes[i].size;
    }
    std::vector<Index> block_of(static_cast<std::size_t>(weight), -1);
    for (std::size_t position = 0; position < blocks.size(); ++position) {
        Index& block = block_of[static_cast<std::size_t>(values[position])];
        if (block >= 0 && block != blocks[position]) return false;
        block = blocks[position];
    }
    std::ranges::sort(block_of);
    return std::ranges::adjacent_find(block_of) == block_of.end();
}

}  // namespace

NetworkDigits::NetworkDigits(const Mesh& mesh, std::vector<Index> borders, const Machine& machine)
    : inside_(machine.levels.size(), 1) {
    const Index devices = device_count(mesh);
    borders.insert(borders.end(), {1, devices});
    const bool in_order = mesh.devices.in_order();
    Index low = 1;
    for (auto axis = mesh.axes.rbegin(); axis != mesh.axes.rend(); ++axis) borders.push_back(low *= axis->size);
    std::vector<Index> with_blocks = borders;
    for (std::size_t i = 0; i + 1 < machine.levels.size(); ++i) {
        Index block = machine.levels[i].devices;
        if (!in_order) {
            // As many positions as begin in one block.
            const Index first = device_at(mesh, 0) / block;
            Index run = 1;
            while (run < devices && device_at(mesh, run) / block == first) ++run;
            block = run;
        }
        if (block < devices) with_blocks.push_back(block);
    }
    auto digits = refinement(with_blocks);
    if (!digits && !in_order) digits = refinement(std::move(borders));
    exact_ = digits.has_value();
    if (exact_ && in_order) {
        for (const Atom& digit : *digits)
            digits_.push_back(
                {digit.stride, digit.stride * digit.size, level_of_span(machine, digit.stride * digit.size)});
    } else if (exact_) {
        list_digits(mesh, *digits, machine);
    } else if (in_order) {
        // Levels in order, where a border inside a digit leaves it whole.
        std::ranges::sort(with_blocks);
        for (std::size_t i = with_blocks.size(); i-- > 1;)
            if (with_blocks[i - 1] < with_blocks[i])
                digits_.push_back({with_blocks[i - 1], with_blocks[i], level_of_span(machine, with_blocks[i])});
    } else {
        digits_.push_back({1, devices, machine.levels.size() - 1});
    }
    for (std::size_t level = 0; level < inside_.size(); ++level) {
        if (!exact_ && level > 0) inside_[level] = std::min(machine.levels[level - 1].devices, devices);
        for (const Digit& digit : exact_ ? digits_ : std::vector<Digit>{})
            if (digit.level < level) inside_[level] = saturating_multiply(inside_[level], digit.high / digit.low);
    }
    if (exact_ || devices > devices_looked_at_max) return;
    for (std::size_t level = 0; level + 1 < machine.levels.size(); ++level)
        blocks_.push_back(without_gaps(blocks_of(mesh, machine.levels[level].devices)));
    blocks_.emplace_back(static_cast<std::size_t>(devices), 0);
}

void NetworkDigits::list_digits(const Mesh& mesh, const AtomList& digits, const Machine& machine) {
    AtomList primes;
    for (const Atom& digit : digits) {
        Index size = digit.size;
        for (const Index prime : prime_factors(digit.size)) {
            size /= prime;
            primes.push_back({prime, digit.stride * size});
        }
    }
    for (const Atom& prime : primes) digits_.push_back({prime.stride, prime.stride * prime.size, 0});
    for (std::size_t level = 0; level + 1 < machine.levels.size(); ++level) {
        const std::vector<Index> blocks = blocks_of(mesh, machine.levels[level].devices);
        std::vector<bool> beyond;
        for (std::size_t i = 0; i < primes.size(); ++i) {
            beyond.push_back(blocks[static_cast<std::size_t>(primes[i].stride)] != blocks[0]);
            if (beyond.back()) digits_[i].level = level + 1;
        }
        exact_ = exact_ && told_by(blocks, primes, beyond);
    }
    if (exact_) return;
    // Somewhere they may be as far apart as any.
    for (Digit& digit : digits_) digit.level = machine.levels.size() - 1;
}

std::size_t NetworkDigits::level(Atom atom) const {
    std::size_t level = 0;
    for (const Digit& digit : digits_)
        if (digit.low < atom.stride * atom.size && atom.stride < digit.high) level = std::max(level, digit.level);
    return level;
}

bool NetworkDigits::exact(Atom atom) const {
    const std::size_t all = level(atom);
    for (const Digit& digit : digits_) {
        const bool overlaps = digit.low < atom.stride * atom.size && atom.stride < digit.high;
        if (overlaps && digit.level != all) return false;
    }
    return exact_;
}

LevelMembers NetworkDigits::members(std::span<const Atom> group) const {
    if (!blocks_.empty()) return members_by_blocks(group);
    const std::size_t levels = inside_.size();
    std::vector<Index> members(levels, 1);
    for (const Atom& atom : group)
        for (const Digit& digit : digits_) {
            const Index low = std::max(digit.low, atom.stride);
            const Index high = std::min(digit.high, atom.stride * atom.size);
            for (std::size_t level = digit.level; low < high && level < levels; ++level)
                members[level] = saturating_multiply(members[level], ceil_divide(high, low));
        }
    for (std::size_t level = levels; level-- > 0;)
        members[level] = std::max<Index>(members[level] - (level > 0 ? members[level - 1] : 1), 0);
    LevelMembers made{members, members};
    for (std::size_t level = 0; level < levels; ++level)
        made.of_block[level] = saturating_multiply(members[level], inside_[level]);
    return made;
}

// Looks at each device.
LevelMembers NetworkDigits::members_by_blocks(std::span<const Atom> group) const {
    const std::vector<Index> members = group_of(group, 0);
    const auto devices = std::ssize(blocks_[0]);
    const std::vector<Index> groups = group_of(complement(group, devices), 0);
    std::vector<Index> inner(blocks_[0].size(), 1);  // by position, the members within the levels so far
    LevelMembers made;
    for (std::size_t level = 0; level < blocks_.size(); ++level) {
        const std::vector<Index>& blocks = blocks_[level];
        std::vector<Index> in_block(blocks.size());
        std::vector<Index> reached(blocks.size());
        std::vector<Index> sums(blocks.size());  // by block inside the level
        const auto at = [&](Index first, Index member) { return static_cast<std::size_t>(first + member); };
        for (const Index first : groups) {
            for (const Index member : members) ++in_block[static_cast<std::size_t>(blocks[at(first, member)])];
            for (const Index member : members) {
                const std::size_t position = at(first, member);
                const Index within = in_block[static_cast<std::size_t>(blocks[position])];
                reached[position] = within - std::exchange(inner[position], within);
                sums[level == 0 ? position : static_cast<std::size_t>(blocks_[level - 1][position])] +=
                    reached[position];
            }
            for (const Index member : members) in_block[static_cast<std::size_t>(blocks[at(first, member)])] = 0;
        }
        made.of_device.push_back(*std::ranges::max_element(reached));
        made.of_block.push_back(*std::ranges::max_element(sums));
    }
    return made;
}

}  // namespace reshard
