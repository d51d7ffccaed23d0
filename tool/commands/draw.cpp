// `reshard draw`: which device holds what after each step.
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/report/picture.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

// Beyond this many devices a list of all tiles is no answer to read or to write.
constexpr Index devices_listed_max = 1 << 16;

Json tile_json(const Layout& layout, Index device) {
    Json intervals = Json::array();
    for (const Side& side : tile(layout, device)) {
        // One interval as a pair, more of them as a list of pairs; none as an empty pair.
        if (side.intervals.size() < 2) {
            const Interval only = side.intervals.empty() ? Interval{} : side.intervals.front();
            intervals.push_back({only.begin, only.end});
            continue;
        }
        Json list = Json::array();
        for (const Interval& interval : side.intervals) list.push_back({interval.begin, interval.end});
        intervals.push_back(std::move(list));
    }
    return {{"device", device}, {"tile", intervals}, {"summand", summand(layout, device)}};
}

Result<Json> picture_json(const Plan& plan, Json json) {
    const Index devices = world_size(plan);
    if (devices > devices_listed_max) return fail(Code::unsupported, "too many devices to list all their tiles");
    json["stages"] = Json::array();
    for (const Stage& stage : stages(plan)) {
        Json tiles = Json::array();
        for (Index device = 0; device < devices; ++device) tiles.push_back(tile_json(*stage.layout, device));
        json["stages"].push_back({{"stage", stage.title}, {"tiles", tiles}});
    }
    return json;
}

}  // namespace

int draw(const Arguments& arguments) {
    const auto asked = request_for(arguments);
    if (!asked) return refuse(arguments.json, asked.error());
    const auto made = synthesize(asked->problem, asked->options);
    if (!made) return refuse(arguments.json, made.error());
    if (arguments.json) {
        Json json = plan_json(nullptr, *asked, *made, 0);
        json.erase("synthesis_us");
        const auto listed = picture_json(made->plan(), std::move(json));
        if (!listed) return refuse(arguments.json, listed.error());
        answer(line(*listed));
        return exit_ok;
    }
    const auto picture =
        arguments.svg ? svg_picture(made->plan()) : Result<std::string>(text_picture(made->plan(), line_width()));
    if (!picture) return refuse(arguments.json, picture.error());
    answer(*picture);
    return exit_ok;
}

}  // namespace reshard::cli
