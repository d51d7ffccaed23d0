// The way back for gradients: the adjoint of a plan, as a plan.
#pragma once

#include "reshard/plan.hpp"

namespace reshard {

/// The layout of the gradient of an array in this layout. The dimensions are cut as before. Devices that hold copies of
/// an element each have a part of its gradient, so replicated digits become summands. Summands become copies, since
/// each one changes the element by as much. The dual of the dual is the layout.
/// Errors: unsupported (summands that are not sums, or copies of a type that has no sums).
[[nodiscard]] Result<Layout> dual(const Layout& layout);

/// The adjoint of a plan A from source to target: a plan A* from dual(target) to dual(source) with
/// <A x, y> = <x, A* y> for arrays x in the source layout and tiles y on the devices of the target. It takes the steps
/// backwards: a gather becomes a reduce-scatter and the reverse, a slice fills with zeros and the reverse, an
/// all-to-all, a permute and a view go back, and an all-reduce is its own adjoint. A step that has no such twin becomes
/// three: all summands are added up, an exchange moves them, and zeros fill the new summands. The adjoint of a cast
/// casts back. Judge the plan before it runs, as any other. Errors: as dual; unsupported (a step has no adjoint, for
/// example a cast of elements that become summands).
[[nodiscard]] Result<Plan> adjoint(const Plan& plan);

}  // namespace reshard
