// How an array changes while `redistribute` moves it.
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// How the array changes while it moves. The options work together: the source is transposed first, then cast, and then
/// padded.
struct MoveOptions {
    /// The target may have another element type (Options::cast).
    bool cast = false;
    /// Transposes: dimension i of the target is dimension permute[i] of the source. Empty: dimensions keep their order.
    std::vector<Index> permute = {};
    /// The target may have other extents. Element i of a dimension stays element i. Elements that the source does not
    /// have get this value: the bytes of one element of the target's type (fill_of), or no bytes for zeros. Elements
    /// that the target does not have are dropped. nullopt: the extents are equal.
    std::optional<std::vector<std::byte>> fill = std::nullopt;
    friend bool operator==(const MoveOptions&, const MoveOptions&) = default;
};

/// The bytes of one element, for MoveOptions::fill: `.fill = fill_of(1.5f)`.
template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] std::vector<std::byte> fill_of(const T& value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    return std::vector<std::byte>(first, first + sizeof(T));
}

}  // namespace reshard
