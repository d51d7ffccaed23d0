// What a layout means, by counting through the mesh with named coordinates. Nothing here uses the library's tile
// function, typing rules or lists of digits: it is the other side of every comparison.
#pragma once

#include <string>
#include <vector>

#include "reshard/planner/schedule.hpp"

namespace reshard::test {

/// One dimension of a Spec: its extent and the (sub-)axes that shard it, major to minor, with sizes written out.
struct SpecDim {
    Index extent = 1;
    std::vector<SubAxis> axes;
};

/// A layout as a person writes it: names only.
struct Spec {
    std::vector<Axis> mesh;
    std::vector<SpecDim> dims;
    std::vector<SubAxis> unreduced;
    DType dtype = DType::f32;
    Reduction reduction = Reduction::sum;
};

[[nodiscard]] std::string mesh_text(const Spec& spec);    ///< x=2,y=3
[[nodiscard]] std::string layout_text(const Spec& spec);  ///< f32[8@(x,y:(2)3),4]{U:w}
[[nodiscard]] Layout layout_of(const Spec& spec);         ///< by make_layout; throws when that refuses

/// What one device holds.
struct Holding {
    Box tile;
    Index summand = 0;
    Combine combine = Combine::sum;  ///< of the summands; what a layout without any says means nothing
    friend bool operator==(const Holding& a, const Holding& b) { return a.tile == b.tile && a.summand == b.summand; }
};

/// Per device what it holds. From names by a dictionary of coordinates; from a Layout by the definition of an atom.
[[nodiscard]] std::vector<Holding> holdings(const Spec& spec);
[[nodiscard]] std::vector<Holding> holdings(const Layout& layout);

[[nodiscard]] Index shards(const SpecDim& dim);
[[nodiscard]] Index devices(const Spec& spec);
[[nodiscard]] Index summands(const std::vector<Holding>& held);
[[nodiscard]] Index elements(const Box& box);
[[nodiscard]] Index overlap(const Box& a, const Box& b);
[[nodiscard]] Index largest_tile(const std::vector<Holding>& held);

/// Elements of its tile after that device `device` does not hold before (another summand counts as not held).
[[nodiscard]] Index foreign(const std::vector<Holding>& before, const std::vector<Holding>& after, std::size_t device);
[[nodiscard]] Index most_foreign(const std::vector<Holding>& before, const std::vector<Holding>& after);

/// Per device the most it may send when the holders of each tile share what others want of it.
[[nodiscard]] std::vector<Index> stripe_limits(const std::vector<Holding>& before, const std::vector<Holding>& after);

}  // namespace reshard::test
