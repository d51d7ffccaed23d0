// `reshard live publish`: a checkpoint as a version for other jobs.
#include "reshard/live/publish.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "reshard/backends/local.hpp"
#include "reshard/files/load.hpp"
#include "reshard/planner/cost.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/convert.hpp"
#include "tool/commands/live/ending.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_interval{50};  // between two looks at readers, signals and the checkpoint

// A checkpoint in the memory of this process, its tensors whole.
struct Contents {
    std::unique_ptr<local::World> world;
    files::Loaded loaded;
};

Result<Contents> contents_of(const Arguments& arguments) {
    RESHARD_TRY(const auto& options, file_options(arguments));
    Contents contents{std::make_unique<local::World>(1), {}};
    RESHARD_ASSIGN(contents.loaded, files::load(contents.world->rank(0), arguments.from, options));
    return contents;
}

// Tells a checkpoint from the one that stands at the same path later.
struct Identity {
    dev_t device = 0;
    ino_t node = 0;
    Index seconds = 0;
    Index nanoseconds = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
};

std::optional<Identity> identity_of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return Identity{status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

Result<void> commit(live::Publisher& out, Index version, const Contents& contents) {
    std::vector<std::span<const std::byte>> tiles;
    for (const files::LoadedTile& tile : contents.loaded.tiles) tiles.emplace_back(tile.bytes);
    return out.commit(version, tiles);
}

void say(const Arguments& arguments, const live::Publisher& out, const files::Loaded& loaded) {
    Index bytes = 0;
    for (const files::LoadedTile& tile : loaded.tiles) bytes += std::ssize(tile.bytes);
    const Json json{{"schema", 1},
                    {"version", out.newest()},
                    {"endpoint", out.endpoint()},
                    {"tensors", loaded.tiles.size()},
                    {"bytes", bytes}};
    answer(arguments.json
               ? json.dump() + "\n"
               : fmt::format("version {}: {}, {}, at {}\n", out.newest(), plural(std::ssize(loaded.tiles), "tensor"),
                             format_bytes(bytes), out.endpoint()));
    static_cast<void>(heard());  // at once: the output may be a file that a script reads
}

// Publishes each checkpoint that takes the place of the one before, until the readers have read or a person ends it.
Result<void> serve(const Arguments& arguments, live::Publisher& out, std::optional<Identity> known) {
    const auto end = Clock::now() + std::chrono::seconds(arguments.patience);
    while (!Ending::raised()) {
        if (arguments.readers > 0 && out.status().reads >= arguments.readers) return {};
        if (arguments.readers > 0 && Clock::now() >= end)
            return fail(Code::backend, fmt::format("{} of {} readers have come in {} s", out.status().reads,
                                                   arguments.readers, arguments.patience));
        std::this_thread::sleep_for(look_interval);
        const auto now = arguments.watch ? identity_of(arguments.from) : std::nullopt;
        if (!now || now == known) continue;
        known = now;
        // A checkpoint that cannot be read may be written at this moment. Its version before is served on.
        const auto contents = contents_of(arguments);
        const auto done = contents ? commit(out, out.newest() + 1, *contents) : tl::unexpected(contents.error());
        if (done)
            say(arguments, out, contents->loaded);
        else
            complain(done.error());
    }
    return {};
}

}  // namespace

Result<int> live_publish(const Arguments& arguments) {
    const Ending ending;
    const auto known = identity_of(arguments.from);
    const auto group = live::alone();
    std::optional<live::Publisher> out;
    {
        RESHARD_TRY(const auto& contents, contents_of(arguments));
        std::vector<live::PublishedTensor> tensors;
        for (const files::LoadedTile& tile : contents.loaded.tiles) tensors.push_back({tile.name, *tile.layout});
        RESHARD_ASSIGN(out, live::Publisher::open(*group, arguments.endpoint, tensors,
                                                  {.transport = *live::transport_of(arguments.transport)}));
        RESHARD_CHECK(commit(*out, arguments.version, contents));
        say(arguments, *out, contents.loaded);
    }  // the publisher has its own copy
    RESHARD_CHECK(serve(arguments, *out, known));
    return exit_ok;
}

}  // namespace reshard::cli
