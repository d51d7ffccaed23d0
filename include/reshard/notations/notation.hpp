// Layouts as others write them, read and written: JAX's PartitionSpec, Shardy's sdy, XLA's HloSharding and DTensor's
// placements. Each grammar stands at the head of its file in src/notations.
#pragma once

#include "reshard/text.hpp"

namespace reshard {

/// How a layout is written.
enum class Notation {
    jax,      ///< `f32[8@x,4]{U:w}`: our own; reads a PartitionSpec too
    spec,     ///< `P('x', None, unreduced={'w'})`
    sdy,      ///< `#sdy.sharding<mesh<["x"=2]>, [{"x"}, {}]>`
    hlo,      ///< `{devices=[2,1]<=[2]}`
    dtensor,  ///< `(Shard(dim=0), Replicate())`
};

/// Every notation, in order.
inline constexpr std::array<Notation, 5> all_notations = {Notation::jax, Notation::spec, Notation::sdy, Notation::hlo,
                                                          Notation::dtensor};

[[nodiscard]] std::string_view name(Notation notation);  ///< jax, spec, sdy, hlo, dtensor
/// jax, spec, sdy, hlo, dtensor; also shardy, xla and placements.
[[nodiscard]] Result<Notation> parse_notation(std::string_view text);

/// What a notation leaves to its context. A mesh is optional where the text brings its own (sdy, hlo).
struct Setting {
    std::optional<Mesh> mesh;  ///< none: the text brings its own
    DType dtype = DType::f32;  ///< of the elements
    std::vector<Index> shape;  ///< elements
};

/// f32[8,4]: an element type and a shape, into a setting.
[[nodiscard]] Result<Setting> parse_array(std::string_view text);

/// A mesh: our own text for jax and spec; `<["x"=2], device_ids=[1,0]>` for sdy, also as `sdy.mesh @m = <...>`; for hlo
/// a count of devices or our own; for dtensor sizes, (4, 2), or our own. Axes without a name are called d0, d1, ...
[[nodiscard]] Result<Mesh> parse_mesh(Notation notation, std::string_view text);

/// The layout that the text says. Errors point at the first wrong place: syntax; layout (also for what the notation's
/// own reader does not check, such as the product of an HloSharding against the devices); unsupported, for what is no
/// layout of one array.
[[nodiscard]] Result<Layout> parse_layout(Notation notation, const Setting& setting, std::string_view text);

/// The layout in this notation. Fails with Code::unsupported, naming what the notation has no words for.
[[nodiscard]] Result<std::string> format(Notation notation, const Layout& layout);

/// Gives both layouts one mesh in which both have names, where there is one: the mesh of either, or a mesh with an axis
/// for every digit that the two tell apart. Else they stay as they are. pre: as many devices, in order.
void share_mesh(Layout& a, Layout& b);

}  // namespace reshard
