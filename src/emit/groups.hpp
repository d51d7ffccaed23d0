// From digits of the mesh that types a step to positions of the mesh that a program is written in.
#pragma once

#include "reshard/emit/program.hpp"

namespace reshard {

/// Both meshes have the same devices, perhaps in different orders.
class Positions {
public:
    /// `own`: the mesh of the program. `other`: the mesh of the atoms of the step. Both must outlive this object.
    Positions(const Mesh& own, const Mesh& other);

    [[nodiscard]] bool same() const { return same_; }  ///< position for position
    /// Groups of positions that differ in these digits only, ordered by the value of the digits. Groups are ordered by
    /// their first member.
    [[nodiscard]] std::vector<std::vector<Index>> groups(const AtomList& digits) const;
    [[nodiscard]] std::vector<Index> where_zero(const AtomList& digits) const;  ///< ascending
    /// For each position, the value of each dimension's digits times the extent of the part.
    [[nodiscard]] std::vector<std::vector<Index>> starts(const std::vector<AtomList>& digits,
                                                         const std::vector<Index>& part) const;
    [[nodiscard]] std::vector<SourceTargetPair> of_devices(
        const std::vector<SourceTargetPair>& pairs) const;  ///< by ascending target

private:
    [[nodiscard]] Index to_other(Index position) const;
    [[nodiscard]] Index to_own(Index position) const;

    const Mesh& own_;
    const Mesh& other_;
    Index count_;
    bool same_;
};

}  // namespace reshard
