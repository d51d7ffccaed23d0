// Groups of positions in the program's mesh, from digits of the step's mesh.
#pragma once

#include "reshard/emit/program.hpp"

namespace reshard {

/// Both meshes have the same devices, maybe in another order.
class Positions {
public:
    /// `own`: of the program; `other`: of the step's atoms. Both must outlive this.
    Positions(const Mesh& own, const Mesh& other);

    [[nodiscard]] bool same() const { return same_; }  ///< position for position
    /// Positions that differ in these digits only, by the digits' value; groups by their first member.
    [[nodiscard]] std::vector<std::vector<Index>> groups(const AtomList& digits) const;
    [[nodiscard]] std::vector<Index> where_zero(const AtomList& digits) const;  ///< ascending
    /// For each position the value of each dimension's digits times the part's extent.
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
