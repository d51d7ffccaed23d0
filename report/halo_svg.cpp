#include <fmt/format.h>

#include <algorithm>

#include "report/devices_svg.hpp"
#include "report/halo_table.hpp"
#include "report/picture.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

using svg::Face;
using svg::Rectangle;

constexpr double thinnest = 4;  // a thinner halo could not be seen

// The block of a device, and pale around it the cells of its neighbours.
std::string halo_drawing(const HaloLayout& layout, Index device, double x, double y, const Face& face) {
    std::string out =
        fmt::format("<g><title>device {}: {}</title>\n", device, ranges(layout.owned, tile(layout.owned, device)));
    out += svg::outline(x, y, face);
    const std::vector<Box> blocks = boxes_of(tile(layout.owned, device));
    if (blocks.empty()) return out + "</g>\n";
    const Rectangle block = svg::place_of(layout.owned, blocks.front(), x, y, face);
    const Box core = core_of(layout, device);
    const Box filled = filled_of(layout, device);
    // The width of the cells before and after the block, drawn no thinner than can be seen.
    const auto width = [&](std::size_t from_last, bool before, double length) {
        if (core.size() < from_last) return 0.0;
        const std::size_t d = core.size() - from_last;
        const Index cells = before ? core[d].begin - filled[d].begin : filled[d].end - core[d].end;
        const double extent = std::max<double>(1, static_cast<double>(layout.owned.dims[d].extent));
        return cells == 0 ? 0.0 : std::max(thinnest, static_cast<double>(cells) / extent * length);
    };
    const double above = width(2, true, face.height);
    const double left = width(1, true, face.width);
    const double place = svg::colour_place(layout.owned, blocks.front());
    out += svg::drawn({block.x - left, block.y - above, block.width + left + width(1, false, face.width),
                       block.height + above + width(2, false, face.height)},
                      svg::colour(place, 0.65));
    return out + svg::drawn(block, svg::colour(place, 0.15)) + "</g>\n";
}

}  // namespace

Result<std::string> halo_svg(const HaloLayout& layout) {
    RESHARD_CHECK(svg::few_enough(device_count(layout.owned.mesh)));
    const svg::Drawn drawn = svg::panel(
        layout.owned, {format(layout)}, 1, 0, {},
        [&](Index device, double x, double y, const Face& face) { return halo_drawing(layout, device, x, y, face); });
    return svg::sheet(drawn.width + svg::margin, drawn.height + svg::space, drawn.text);
}

}  // namespace reshard::cli
