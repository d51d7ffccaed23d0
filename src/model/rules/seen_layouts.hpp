// The layouts of tensors as moves see them: in the type that moves, and in another shape.
#pragma once

#include <map>

#include "src/model/rules/part_moves.hpp"

namespace reshard::notation {

/// The type of the elements that move between ranks: the narrower one of both ends, or the source's if both have one
/// size. The end that has the other type casts its tile.
[[nodiscard]] DType moving_dtype(DType source, DType target);

/// Keeps each layout once, so that moves share it.
class SeenLayouts {
public:
    using Shared = std::shared_ptr<const Layout>;

    /// Returns the layout with elements of another type.
    [[nodiscard]] Shared in_dtype(const Shared& layout, DType dtype);

    /// Returns the layout of a tensor in another shape of as many elements (in_shape). Dimensions that only say who
    /// owns the tensor come first. `name` is the tensor's. Errors, without a place: unsupported (the cut has no form in
    /// that shape).
    [[nodiscard]] Result<Shared> in_shape(std::string_view name, const MoveEnd& end, const std::vector<Index>& shape);

private:
    std::map<std::pair<Shared, DType>, Shared> in_dtype_;
    std::map<std::pair<Shared, std::vector<Index>>, Shared> in_shape_;
};

}  // namespace reshard::notation
