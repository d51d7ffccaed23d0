#include "synth/search/level_floor.hpp"

namespace reshard {

LevelFloor::LevelFloor(const Machine& machine, InlineVector<Index, levels_max> inside, Index element_bytes)
    : machine_(machine), inside_(inside), element_(element_bytes) {
    Index least = index_max;
    for (std::size_t level = inside_.size(); level-- > 0;) {
        if (unit_ == 0 && machine.levels[level].shared) unit_ = level;
        least = std::min(least, saturating_add(machine.levels[level].start_ps, machine.levels[level].latency_ps));
        first_[level] = least;
    }
    for (std::size_t level = 0; level < inside_.size(); ++level)
        for (std::size_t outer = level; outer < inside_.size(); ++outer)
            whole_ = whole_ && carries(outer, level) == carries(level, level);
    known_ = rises();
}

Index LevelFloor::carries(std::size_t level, std::size_t inner) const {
    const bool shared = level > 0 && machine_.levels[level].shared;
    return shared ? unit_devices(inner) / inside_[level] : unit_devices(inner);
}

// No element is cheaper over a level than over those inside it, so that a level need not carry more than it must.
bool LevelFloor::rises() const {
    const auto seconds = [&](std::size_t level) {
        return transfer_picoseconds(element_, machine_.levels[level].bytes_per_second);
    };
    for (std::size_t level = 1; level < inside_.size(); ++level)
        for (std::size_t inner = 0; inner < level; ++inner)
            if (saturating_multiply(seconds(level) - 1, carries(inner, inner)) <
                saturating_multiply(seconds(inner), carries(level, inner)))
                return false;
    return true;
}

}  // namespace reshard
