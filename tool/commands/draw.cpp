// `reshard draw`: which device holds what after each step.
#include "report/picture.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/halo_request.hpp"
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
        intervals.push_back(intervals_json(side));
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

Result<int> draw(const Arguments& arguments) {
    if (asks_for_halos(arguments.question)) return draw_halos(arguments);
    RESHARD_TRY(const auto& asked, request_for(arguments));
    RESHARD_TRY(const auto& made, synthesize(asked.problem, asked.options));
    if (arguments.json) {
        RESHARD_TRY(const auto& listed, picture_json(made.plan(), plan_json(nullptr, asked, made)));
        answer(line(listed));
    } else if (arguments.svg) {
        RESHARD_TRY(const auto& picture, svg_picture(made.plan(), asked.options.machine));
        answer(picture);
    } else {
        answer(text_picture(made.plan(), page()));
    }
    return exit_ok;
}

}  // namespace reshard::cli
