// `reshard live subscribe`: versions of another job as checkpoints.
#include "reshard/live/subscribe.hpp"

#include <fmt/format.h>

#include <chrono>

#include "reshard/backends/local.hpp"
#include "reshard/files/load.hpp"
#include "reshard/live/status.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/convert.hpp"
#include "tool/commands/live/ending.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

constexpr std::string_view place_of_version = "{version}";
constexpr std::chrono::milliseconds for_ever = std::chrono::hours(24 * 365);

// The whole tensor on this process.
Layout whole(const Layout& offered) {
    Layout layout;
    layout.mesh = Mesh{{"one", 1}};
    layout.dtype = offered.dtype;
    for (const Index extent : shape(offered)) layout.dims.emplace_back(extent);
    return layout;
}

std::string path_of(std::string path, Index version) {
    const auto place = path.find(place_of_version);
    if (place != std::string::npos) path.replace(place, place_of_version.size(), fmt::format("{}", version));
    return path;
}

// The rules of the command line are about the target; the source is this one process.
Result<files::ConvertOptions> options_of(const Arguments& arguments) {
    RESHARD_TRY(auto& options, file_options(arguments));
    options.rules = "source one=1\notherwise = -\n" + options.rules;
    return std::move(options);
}

Result<void> write(const live::Subscriber& into, const std::vector<live::WantedTensor>& wanted,
                   const Arguments& arguments) {
    std::vector<files::SavedTile> tiles;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        RESHARD_TRY(const auto& bytes, into.tile(i));
        tiles.push_back({wanted[i].name, wanted[i].layout.dtype, shape(wanted[i].layout), bytes});
    }
    RESHARD_TRY(const auto& options, options_of(arguments));
    const std::string path = path_of(arguments.into, into.version());
    local::World world(1);
    RESHARD_TRY(const auto& saved, files::save(world.rank(0), path, tiles, options));
    const Json json{{"schema", 1},
                    {"version", into.version()},
                    {"path", path},
                    {"tensors", tiles.size()},
                    {"bytes", saved.target_bytes}};
    answer(arguments.json ? json.dump() + "\n"
                          : fmt::format("version {}: {}, {}, in {}\n", into.version(),
                                        plural(std::ssize(tiles), "tensor"), format_bytes(saved.target_bytes), path));
    static_cast<void>(heard());
    return {};
}

}  // namespace

Result<int> live_subscribe(const Arguments& arguments) {
    if (arguments.follow && arguments.into.find(place_of_version) == std::string::npos)
        return fail(Code::usage, fmt::format("--follow writes many checkpoints; wanted {} in the path '{}'",
                                             place_of_version, arguments.into));
    RESHARD_CHECK(options_of(arguments));  // mistakes show before the wait
    const Ending ending;
    const Interrupt ended([] { return Ending::raised(); });
    const std::chrono::milliseconds patience = std::chrono::seconds(arguments.patience);
    RESHARD_TRY(const auto& offered, live::offered(arguments.endpoint, patience));
    std::vector<live::WantedTensor> wanted;
    for (const live::OfferedTensor& one : offered) wanted.push_back({one.name, whole(one.layout)});
    const auto group = live::alone();
    RESHARD_TRY(auto& into, live::Subscriber::connect(*group, arguments.endpoint, wanted, {.connect_limit = patience}));
    do {
        const auto version = into.update(arguments.follow && into.version() > 0 ? for_ever : patience);
        if (!version && arguments.follow && Ending::raised()) break;
        if (!version) return tl::unexpected(version.error());
        RESHARD_CHECK(write(into, wanted, arguments));
    } while (arguments.follow && !Ending::raised());
    return exit_ok;
}

}  // namespace reshard::cli
