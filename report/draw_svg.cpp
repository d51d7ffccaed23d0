// The picture as SVG: for each device the outline of the array and, filled, the tile that it holds. Equal tiles have
// equal colours.
#include <fmt/format.h>

#include <algorithm>

#include "report/devices_svg.hpp"
#include "report/numbers.hpp"
#include "report/picture.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

constexpr std::size_t boxes_drawn_max = 1024;  // of one tile; smaller blocks could not be seen

std::string device_drawing(const Layout& layout, Index device, double x, double y, const svg::Face& face) {
    const Tile held = tile(layout, device);
    const bool sums = summand_count(layout) > 1;
    const std::string summand_text = sums ? fmt::format(" summand {}", summand(layout, device)) : "";
    std::string out = fmt::format("<g><title>device {}: {}{}</title>\n", device, ranges(layout, held), summand_text);
    out += svg::outline(x, y, face);
    const std::vector<Box> boxes = boxes_of(held);
    for (std::size_t i = 0; i < boxes.size() && i < boxes_drawn_max; ++i) {
        const std::string fill = svg::colour(svg::colour_place(layout, boxes.front()), sums ? 0.6 : 0.15);
        out += svg::drawn(svg::place_of(layout, boxes[i], x, y, face), fill);
    }
    if (sums) out += svg::words(x + 2, y + 11, fmt::format("s{}", summand(layout, device)));
    return out + "</g>\n";
}

// The title of a stage, its layout, and the time of its step on each level of the network.
std::vector<std::string> lines_of(const Plan& plan, std::size_t stage, const Machine& machine) {
    const Stage shown = stages(plan)[stage];
    std::vector<std::string> lines{shown.title, format(*shown.layout)};
    if (stage == 0) return lines;
    const Layout& before = stage == 1 ? plan.source : plan.steps[stage - 2].layout;
    const auto move = type_step(before, plan.steps[stage - 1]);
    if (!move || move->received == 0) return lines;
    const Times times = step_times(before, plan.steps[stage - 1], *move, machine);
    for (std::size_t level = 0; level < times.levels.size(); ++level)
        if (times.levels[level] > 0)
            lines.push_back(machine.levels[level].name + " " + format_picoseconds(times.levels[level]));
    return lines;
}

}  // namespace

Result<std::string> svg_picture(const Plan& plan, const Machine& machine) {
    RESHARD_CHECK(svg::few_enough(world_size(plan)));
    const Network network = network_of(machine, world_size(plan));
    const std::vector<Stage> all = stages(plan);
    std::vector<std::vector<std::string>> lines;
    std::size_t lines_max = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        lines.push_back(lines_of(plan, i, machine));
        lines_max = std::max(lines_max, lines.back().size());
    }
    std::string body;
    double width = 0;
    double height = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Layout& layout = *all[i].layout;
        const svg::Drawn drawn = svg::panel(layout, lines[i], lines_max, width, network,
                                            [&](Index device, double x, double y, const svg::Face& face) {
                                                return device_drawing(layout, device, x, y, face);
                                            });
        body += drawn.text;
        width += drawn.width;
        height = std::max(height, drawn.height);
    }
    return svg::sheet(width + svg::margin, height + svg::space, body);
}

}  // namespace reshard::cli
