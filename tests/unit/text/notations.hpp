// Layouts in notations, for tests: read on one mesh, or refused at a place.
#pragma once

#include <gtest/gtest.h>

#include "reshard/notations/notation.hpp"

namespace reshard {

inline const Mesh mesh{{"x", 2}, {"y", 4}};
inline const NotationContext array{mesh, DType::f32, {8, 16}};

/// The layout of a text in our notation, or its error.
inline std::string own(Notation notation, const char* text, const NotationContext& setting = array) {
    const auto layout = parse_layout(notation, setting, text);
    return layout ? format(layout->mesh) + " " + format(*layout) : describe(layout.error());
}

/// Expects an error with the text, and a caret under the first wrong place.
inline void expect_caret(Notation notation, const char* text, std::size_t offset, const char* words) {
    const auto layout = parse_layout(notation, array, text);
    ASSERT_FALSE(layout.has_value()) << text;
    EXPECT_EQ(layout.error().offset, offset) << describe(layout.error());
    EXPECT_EQ(layout.error().text, text);
    EXPECT_NE(layout.error().message.find(words), std::string::npos) << describe(layout.error());
}

}  // namespace reshard
