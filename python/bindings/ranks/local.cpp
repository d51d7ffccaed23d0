// Ranks in this process.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>

#include "python/bindings/arrays.hpp"
#include "python/bindings/core.hpp"
#include "python/bindings/programs/runner.hpp"
#include "python/bindings/waiting.hpp"
#include "reshard/backends/local.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

struct LocalRanks : NonCopyable {
    LocalRanks(Index ranks, const local::Options& options)
        : made(std::make_unique<local::World>(ranks, options)), world(*made) {}
    ~LocalRanks() {
        if (!home.here()) static_cast<void>(made.release());  // its locks may be held for ever
    }

    std::unique_ptr<local::World> made;
    local::World& world;
    std::timed_mutex moving;  // a world is driven by one thread at a time
    Home home;
};

constexpr double seconds_max = 1e9;

std::unique_ptr<LocalRanks> make_ranks(Index ranks, double timeout) {
    if (ranks < 1) raise({Code::usage, fmt::format("{} ranks are too few", ranks)});
    if (ranks > local::ranks_max)
        raise({Code::usage,
               fmt::format("{} ranks are too many for one process; at most {} are", ranks, local::ranks_max)});
    if (!(timeout >= 0))
        raise({Code::usage, fmt::format("a timeout of {} s is no length of time; 0 or more is wanted", timeout)});
    timeout = std::min(timeout, seconds_max);
    const local::Options options{.timeout = std::chrono::milliseconds(static_cast<Index>(timeout * 1e3))};
    return std::make_unique<LocalRanks>(ranks, options);
}

void move(LocalRanks& ranks, const std::vector<nb::object>& tiles, const Layout& source, const Layout& target,
          const std::vector<nb::object>& out, bool cast, const std::vector<Index>& permute, nb::handle fill) {
    expect_home(ranks.home, "local ranks");
    if (std::ssize(tiles) != ranks.world.size() || std::ssize(out) != ranks.world.size())
        raise({Code::mismatch, fmt::format("{} ranks were given {} source and {} target tiles", ranks.world.size(),
                                           tiles.size(), out.size())});
    unwrap(validate(source));
    unwrap(validate(target));
    std::vector<DenseTile> from;
    std::vector<DenseTile> to;
    std::vector<NamedArray> arrays;
    std::vector<ConstElements> in;
    std::vector<Elements> written;
    from.reserve(tiles.size());
    to.reserve(out.size());
    for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
        const std::string number = fmt::format("[{}]", rank);
        from.emplace_back(tiles[rank], ("tiles" + number).c_str(), Access::read, source, static_cast<Index>(rank));
        to.emplace_back(out[rank], ("out" + number).c_str(), Access::write, target, static_cast<Index>(rank));
        arrays.push_back({&from.back().original(), "tiles" + number, false});
        arrays.push_back({&to.back().original(), "out" + number, true});
        in.push_back(from.back().read());
        written.push_back(to.back().write());
    }
    expect_apart(arrays);
    const MoveOptions options = changes_of(cast, permute, fill);
    unwrap(waiting([&]() -> Result<void> {
        std::unique_lock alone(ranks.moving, std::defer_lock);
        while (!alone.try_lock_for(Interrupt::interval)) {
            if (Interrupt::raised()) return fail(Code::backend, Interrupt::words);
        }
        return local::redistribute(ranks.world, source, target, in, written, options);
    }));
    for (DenseTile& tile : to) tile.finish();
}

std::unique_ptr<PythonRunner> runner_of(const nb::object& ranks, const Scheduled& scheduled) {
    auto& own = nb::cast<LocalRanks&>(ranks);
    expect_home(own.home, "local ranks");
    std::vector<Backend*> backends;
    for (Index rank = 0; rank < own.world.size(); ++rank) backends.push_back(&own.world.rank(rank));
    const std::shared_ptr<void> keeper(new nb::object(ranks), [](void* one) { delete static_cast<nb::object*>(one); });
    return std::make_unique<PythonRunner>(scheduled, keeper, backends);
}

}  // namespace

void add_local(nb::module_& module) {
    nb::class_<LocalRanks>(module, "LocalRanks", "Ranks of this process. reshard.local(n) makes them.")
        .def(nb::new_(&make_ranks), "ranks"_a, "timeout"_a = 60.0)
        .def_prop_ro(
            "size", [](LocalRanks& ranks) { return ranks.world.size(); }, "Ranks.")
        .def("move", move, "tiles"_a, "source"_a, "target"_a, "out"_a, "cast"_a, "permute"_a, "fill"_a.none());
    module.def("local_runner", runner_of, "ranks"_a, "schedule"_a);
}

}  // namespace reshard::python
