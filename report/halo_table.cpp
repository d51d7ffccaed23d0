#include "report/halo_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"

namespace reshard::cli {

namespace {

constexpr Index devices_drawn_max = 4096;

const HaloPrice& chosen(const HaloPlan& plan) { return *std::ranges::find(plan.prices, plan.way, &HaloPrice::way); }

std::string text_of(const Tile& tile) {
    std::vector<std::string> sides;
    for (const Side& side : tile) {
        std::vector<std::string> intervals;
        for (const Interval& one : side.intervals) intervals.push_back(fmt::format("{}..{}", one.begin, one.end));
        sides.push_back(fmt::format("{}", fmt::join(intervals, "+")));
    }
    return fmt::format("{}", fmt::join(sides, " x "));
}

std::string why(const HaloPlan& plan) {
    if (plan.prices.size() == 1) return "a move from another layout has one way";
    const auto other = std::ranges::find_if(plan.prices, [&](const HaloPrice& one) { return one.way != plan.way; });
    const Index own = chosen(plan).picoseconds;
    if (other->picoseconds == own) return "both ways take as long";
    if (other->picoseconds < own / 2) return "all ranks share memory, so a fill is one pass through it";
    if (other->picoseconds < own) return "messages of one round overlap, so more rounds must take less than half";
    return fmt::format("{} takes {:.2f} times as long", name(other->way),
                       static_cast<double>(other->picoseconds) / static_cast<double>(std::max<Index>(own, 1)));
}

}  // namespace

std::string halo_table(const HaloMove& move, const HaloPlan& plan, const Machine& machine, const Page& page) {
    Table table({"way", ">rounds", ">messages", ">received", ">estimate"});
    for (const HaloPrice& one : plan.prices)
        table.row({std::string(name(one.way)), std::to_string(one.rounds), std::to_string(one.messages),
                   format_bytes(one.received_bytes), format_picoseconds(one.picoseconds)});
    const HaloPrice& price = chosen(plan);
    std::string text = table.text(page);
    std::string from = "in place";
    if (move.source) from = "from " + format(source_arrays(move));
    if (move.source && move.source->mesh != move.target.owned.mesh) from += " on " + format(move.source->mesh);
    text += fmt::format("fills {}, {}   received {} (lower bound {})\n", from, name(plan.way),
                        format_bytes(price.received_bytes), format_bytes(price.received_bytes));
    text += fmt::format("estimate {} on {}   {}\n", format_picoseconds(price.picoseconds), printable(machine.name),
                        why(plan));
    if (!price.exact) text += "prices of 128 devices in the middle of the mesh\n";
    return text;
}

Result<std::string> halo_picture(const HaloLayout& layout, const Page& page) {
    const Mesh& mesh = layout.owned.mesh;
    if (device_count(mesh) > devices_drawn_max)
        return fail(Code::unsupported, fmt::format("{} devices are too many to list; at most {} are",
                                                   device_count(mesh), devices_drawn_max));
    Table table({">device", "block", "with halo", "array"});
    for (Index position = 0; position < device_count(mesh); ++position) {
        const Index device = device_at(mesh, position);
        table.row({std::to_string(device), text_of(tile(layout.owned, device)), text_of(held_cells(layout, device)),
                   fmt::format("{}", fmt::join(array_shape(layout, device), " x "))});
    }
    return format(layout) + "\n" + table.text(page);
}

}  // namespace reshard::cli
