// The levels of a machine that the digits of a mesh cross.
#pragma once

#include "reshard/planner/cost.hpp"

namespace reshard {

/// The level of a machine at which devices are apart if they differ in a digit of their position in a mesh. If the mesh
/// lists its devices, each is looked at once.
class NetworkDigits {
public:
    /// For layouts whose digits have these borders.
    NetworkDigits(const Mesh& mesh, std::vector<Index> borders, const Machine& machine);

    /// The level at which positions are apart that differ in this digit; the outermost of several.
    [[nodiscard]] std::size_t level(Atom atom) const;
    /// Devices of the mesh in one block of the level inside this one.
    [[nodiscard]] Index devices_inside(std::size_t level) const { return inside_[level]; }
    /// By level, the members of a group that it reaches for each of them, and no inner one does.
    void count_members(std::span<const Atom> group, std::span<Index> members) const;
    /// True if digits describe every block of devices, each digit being within or above it.
    [[nodiscard]] bool exact() const { return exact_; }
    /// No block parts the digit.
    [[nodiscard]] bool exact(Atom atom) const;
    /// visit(low, high, level) for each digit, most major first; its value is position / low mod high / low.
    void each_digit(const auto& visit) const {
        for (const Digit& digit : digits_) visit(digit.low, digit.high, digit.level);
    }

private:
    struct Digit {
        Index low = 1;
        Index high = 1;
        std::size_t level = 0;
    };
    void list_digits(const Mesh& mesh, const AtomList& digits, const Machine& machine);

    std::vector<Digit> digits_;  // most major first
    std::vector<Index> inside_;  // by level
    bool exact_ = true;
};

}  // namespace reshard
