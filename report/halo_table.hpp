// The cost of a fill of halos before it runs, and the cells of each device.
#pragma once

#include <string>

#include "report/page.hpp"
#include "reshard/halo/plan.hpp"

namespace reshard::cli {

/// The ways to fill with their prices, and the chosen one.
[[nodiscard]] std::string halo_table(const HaloMove& move, const HaloPlan& plan, const Machine& machine,
                                     const Page& page);

/// A row for each device: its block, its array, and the cells that hold elements. Errors: unsupported (more than 4096
/// devices).
[[nodiscard]] Result<std::string> halo_picture(const HaloLayout& layout, const Page& page);

/// The block of each device in the array, and the cells of its halo, as SVG. Errors: unsupported (more than 1024
/// devices).
[[nodiscard]] Result<std::string> halo_svg(const HaloLayout& layout);

}  // namespace reshard::cli
