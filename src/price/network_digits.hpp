// The levels of a machine that the digits of a mesh cross.
#pragma once

#include "reshard/planner/cost.hpp"

namespace reshard {

/// By level, the members of a group that it reaches and no inner level does.
struct LevelMembers {
    std::vector<Index> of_device;  ///< for the device with the most
    std::vector<Index> of_block;   ///< added up over the devices that share a block inside the level, for the most
};

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
    [[nodiscard]] LevelMembers members(std::span<const Atom> group) const;
    /// True if `members` is exact; else it is no less.
    [[nodiscard]] bool counts_members() const { return exact_ || !blocks_.empty(); }
    /// True if digits describe every block of devices, each digit being within or above it.
    [[nodiscard]] bool exact() const { return exact_; }
    /// No block parts the digit.
    [[nodiscard]] bool exact(Atom atom) const;

private:
    struct Digit {
        Index low = 1;
        Index high = 1;
        std::size_t level = 0;
    };
    void list_digits(const Mesh& mesh, const AtomList& digits, const Machine& machine);
    [[nodiscard]] LevelMembers members_by_blocks(std::span<const Atom> group) const;

    std::vector<Digit> digits_;  // most major first
    std::vector<Index> inside_;  // by level
    bool exact_ = true;
    std::vector<std::vector<Index>> blocks_;  // by level and position, if no digits describe them and devices are few
};

}  // namespace reshard
