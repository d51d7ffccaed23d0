// Plans whose steps see the array in another shape than their ends.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// The plan between these ends, which hold the same elements as the ends of `seen`. A view leads to the shape of
/// `seen`, and another one back, unless the shapes are equal.
[[nodiscard]] Plan between_views(const Problem& ends, Plan seen);

/// Two views that follow each other become one, or none if they lead back.
void merge_views(Plan& plan);

/// The problem with pieces as digits (in_digits of planner/view.hpp), in a shape that both ends have. nullopt if no
/// dimension has pieces, or if pieces are no digits.
[[nodiscard]] std::optional<Problem> in_digits(const Problem& problem);

}  // namespace reshard
