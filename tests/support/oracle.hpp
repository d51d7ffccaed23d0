// The meaning of a layout, by counting through the mesh with named coordinates. The oracle does not use the library's
// tile function, typing rules or lists of digits: it is the other side of every comparison.
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
[[nodiscard]] Layout layout_of(const Spec& spec);         ///< by make_layout; throws if that fails

/// The tile and summand that one device holds.
struct Holding {
    Box tile;
    Index summand = 0;
    Combine combine = Combine::sum;  ///< how summands combine; ignored if the layout has no summands
    friend bool operator==(const Holding& a, const Holding& b) { return a.tile == b.tile && a.summand == b.summand; }
};

/// The holding of each device. A Spec uses a dictionary of coordinates; a Layout uses the definition of an atom.
[[nodiscard]] std::vector<Holding> holdings(const Spec& spec);
[[nodiscard]] std::vector<Holding> holdings(const Layout& layout);

[[nodiscard]] Index shards(const SpecDim& dim);
[[nodiscard]] Index devices(const Spec& spec);
[[nodiscard]] Index summands(const std::vector<Holding>& held);
[[nodiscard]] Index elements(const Box& box);
[[nodiscard]] Index overlap(const Box& a, const Box& b);
[[nodiscard]] Index largest_tile(const std::vector<Holding>& held);

/// Elements of the later tile of `device` that it does not hold before. Another summand counts as not held.
[[nodiscard]] Index foreign(const std::vector<Holding>& before, const std::vector<Holding>& after, std::size_t device);
[[nodiscard]] Index most_foreign(const std::vector<Holding>& before, const std::vector<Holding>& after);

/// The most that each device may send if the holders of each tile share the elements that others want.
[[nodiscard]] std::vector<Index> stripe_limits(const std::vector<Holding>& before, const std::vector<Holding>& after);

}  // namespace reshard::test
