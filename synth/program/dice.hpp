// Pseudorandom numbers that are equal on every rank and with every compiler.
#pragma once

#include "src/base/hash.hpp"

namespace reshard::program {

class Dice {
public:
    explicit Dice(std::uint64_t seed = 0) : rolls_(mixed(seed)) {}
    /// A number in [0, count). pre: 0 < count.
    int below(int count) { return static_cast<int>(mixed(++rolls_) % static_cast<std::uint64_t>(count)); }

private:
    std::uint64_t rolls_;
};

}  // namespace reshard::program
