// Casts elements from one type to another.
#pragma once

#include "reshard/layout.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard {

/// Casts so many elements along one line; strides in bytes.
using CastLine = void (*)(Index elements, Index source_stride, Index target_stride, const std::byte* source,
                          std::byte* target);

/// The cast that a copy applies to its elements; by default none. A float is rounded once, to nearest even. A number
/// that is too large becomes infinity, or NaN in a type without infinity. A NaN stays a NaN. An integer keeps its
/// value.
struct ElementCast {
    Index from_bytes = 0;                    ///< of an element in the source
    Index to_bytes = 0;                      ///< of an element in the target
    CastLine lines[2] = {nullptr, nullptr};  ///< by Store
    explicit operator bool() const { return lines[0] != nullptr; }
    [[nodiscard]] bool narrows() const { return to_bytes < from_bytes; }
};

/// The cast between two types; none if they are equal. pre: they are equal, or tables::can_cast.
[[nodiscard]] ElementCast cast_of(DType from, DType to);

/// The part of a cast at each end of a message. The sender casts if that narrows, and the receiver casts otherwise.
[[nodiscard]] inline ElementCast at_sender(const ElementCast& cast) { return cast.narrows() ? cast : ElementCast{}; }
[[nodiscard]] inline ElementCast at_receiver(const ElementCast& cast) { return cast.narrows() ? ElementCast{} : cast; }

}  // namespace reshard
