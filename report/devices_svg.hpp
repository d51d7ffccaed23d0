// A drawing of the devices of a mesh in rows and columns, with one outline of the array for each device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/svg.hpp"
#include "reshard/layout.hpp"
#include "reshard/planner/network.hpp"

namespace reshard::cli::svg {

inline constexpr double margin = 48;  ///< around a panel, where the labels stand
inline constexpr double space = 14;   ///< between devices

/// The last two dimensions as height and width; a missing dimension counts 1.
struct Face {
    double height = 1;
    double width = 1;
};

/// The place of a box of the array whose outline begins at (x, y).
[[nodiscard]] Rectangle place_of(const Layout& layout, const Box& box, double x, double y, const Face& face);

/// The outline of the array.
[[nodiscard]] std::string outline(double x, double y, const Face& face);

/// A place between 0 and 1 from where the tile begins, so equal tiles look equal and neighbours differ.
[[nodiscard]] double colour_place(const Layout& layout, const Box& box);

struct Drawn {
    std::string text;
    double width = 0;
    double height = 0;
};

using DeviceDrawing = std::function<std::string(Index device, double x, double y, const Face& face)>;

/// Lines of text, and below them the devices. `lines_max` lines have room. If the rows and columns show a block of
/// `network` as a rectangle, it gets a frame.
[[nodiscard]] Drawn panel(const Layout& layout, const std::vector<std::string>& lines, std::size_t lines_max,
                          double left, const Network& network, const DeviceDrawing& one);

/// Errors: unsupported (too many devices to see any of them).
[[nodiscard]] Result<void> few_enough(Index devices);

}  // namespace reshard::cli::svg
