// The change of a step in a few words: `dim 0 +y`, `dim 0 (x,y) to (y,x)`, `4 of 6 tiles move`.
#pragma once

#include <string>

#include "reshard/check.hpp"

namespace reshard::cli {

[[nodiscard]] std::string changes(const Layout& before, const Step& step);

/// The kinds of a plan's steps in order: `slice, all_to_all`; `nothing to do` for none.
[[nodiscard]] std::string kinds(const Plan& plan);

/// Messages that a device waits for, at most, over all steps.
[[nodiscard]] Index messages(const Verdict& verdict);

/// The names of atoms as a layout writes them: x, (x,y), y:(2)3.
[[nodiscard]] std::string axes(const Mesh& mesh, const AtomList& atoms);

}  // namespace reshard::cli
