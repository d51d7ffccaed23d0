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
        for (std::size_t inner = 0; inner <= level; ++inner) {
            const bool shared = level > 0 && machine.levels[level].shared;
            carries_[level][inner] = shared ? unit_devices(inner) / inside_[level] : unit_devices(inner);
            whole_ = whole_ && carries_[level][inner] == carries_[inner][inner];
        }
    known_ = rises();
}

// No element is cheaper over a level than over those inside it, so that a level need not carry more than it must.
bool LevelFloor::rises() const {
    const auto seconds = [&](std::size_t level) {
        return transfer_picoseconds(element_, machine_.levels[level].bytes_per_second);
    };
    for (std::size_t level = 1; level < inside_.size(); ++level)
        for (std::size_t inner = 0; inner < level; ++inner)
            if (saturating_multiply(seconds(level) - 1, carries_[inner][inner]) <
                saturating_multiply(seconds(inner), carries_[level][inner]))
                return false;
    return true;
}

}  // namespace reshard
