// The table of states that a search has met.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/search/edge_cost.hpp"

namespace reshard {

/// Finds the node of a state. Open addressing, since a search asks once for each hop.
class Places {
public:
    /// `slots`: a power of two.
    explicit Places(std::size_t slots = 256) : slots_(slots) {}

    struct Slot {
        std::uint64_t code = 0;
        std::uint32_t node = 0;  ///< its number plus one; 0 for none
        bool asked = false;      ///< whether `least` is known
        EdgeCost least;          ///< lower bound of the cost to the target
    };

    /// The place for this code; the next call may move it. pre: code != 0.
    Slot& at(std::uint64_t code) {
        if (2 * (++used_) > slots_.size()) grow();
        Slot& slot = find(code);
        if (slot.code == code)
            --used_;
        else
            slot = {code, 0, false, {}};
        return slot;
    }

private:
    Slot& find(std::uint64_t code) {
        std::size_t at = (code * 0x9e3779b97f4a7c15u >> 32) & (slots_.size() - 1);
        while (slots_[at].code != 0 && slots_[at].code != code) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }

    void grow() {
        std::vector<Slot> old(4 * slots_.size());
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.code != 0) find(slot.code) = slot;
    }

    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

}  // namespace reshard
