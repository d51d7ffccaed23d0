// Reads and writes layouts in other notations: JAX's PartitionSpec, Shardy's sdy, XLA's HloSharding and DTensor's
// placements. Each file in src/notations has its grammar at its head.
#pragma once

#include "reshard/text.hpp"

namespace reshard {

/// The notation of a layout.
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
/// Parses jax, spec, sdy, hlo, dtensor; also shardy, xla and placements. Errors: syntax.
[[nodiscard]] Result<Notation> parse_notation(std::string_view text);

/// The context that the text of a layout does not have. The mesh is optional if the text has its own (sdy, hlo).
struct NotationContext {
    std::optional<Mesh> mesh;  ///< empty: the text has its own
    DType dtype = DType::f32;  ///< type of the elements
    std::vector<Index> shape;  ///< in elements
};

/// Parses an element type and a shape, f32[8,4], into a setting without a mesh.
[[nodiscard]] Result<NotationContext> parse_array(std::string_view text);

/// Parses a mesh. Every notation but sdy reads our own text. hlo also reads a count of devices, dtensor also sizes,
/// (4, 2). sdy reads `<["x"=2], device_ids=[1,0]>`, also as `sdy.mesh @m = <...>`. Axes without a name are called
/// d0, d1, ...
[[nodiscard]] Result<Mesh> parse_mesh(Notation notation, std::string_view text);

/// Parses a layout. Errors point at the first wrong place: syntax; layout; unsupported (the text is not a layout of one
/// array). Code::layout includes faults that the notation's own reader does not check, such as a product of tiles that
/// is not the number of devices in an HloSharding.
[[nodiscard]] Result<Layout> parse_layout(Notation notation, const NotationContext& setting, std::string_view text);

/// Writes the layout in this notation. Fails with Code::unsupported and names what the notation cannot express.
[[nodiscard]] Result<std::string> format(Notation notation, const Layout& layout);

/// Gives both layouts one mesh that has names for both: the mesh of either, or a mesh with an axis for every digit
/// that the two tell apart. If no such mesh exists, they are unchanged. pre: equally many devices, in order.
void share_mesh(Layout& a, Layout& b);

}  // namespace reshard
