// From a dtype to the C++ type of its elements.
#pragma once

#include "src/copy/element_cast.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard {

/// True for the elements that can be combined.
template <class Element>
inline constexpr bool combines = requires {
    Element::is_ordered;
};

/// visit(Element{}) for the element type of `dtype`.
template <class Visit>
auto with_element_type(DType dtype, const Visit& visit) -> decltype(visit(Boolean{})) {
    switch (dtype) {
#define X(name, Element, ...)                                              \
    static_assert(sizeof(Element) == tables::row(DType::name).bytes);      \
    static_assert(combines<Element> == tables::row(DType::name).combines); \
    case DType::name:                                                      \
        return visit(Element{});
        RESHARD_DTYPES(X, X)
#undef X
    }
    __builtin_unreachable();
}

}  // namespace reshard
