// Ranks in this process.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "python/bindings/arrays.hpp"
#include "python/bindings/core.hpp"
#include "reshard/local.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

struct LocalRanks {
    local::World world;
    std::mutex moving;  // a world is driven by one thread at a time
};

std::unique_ptr<LocalRanks> make_ranks(Index ranks, double timeout) {
    if (ranks < 1) raise({Code::usage, fmt::format("{} ranks are too few", ranks)});
    if (ranks > local::ranks_max)
        raise({Code::usage, fmt::format("{} ranks in one process; at most {} are made", ranks, local::ranks_max)});
    const local::Options options{.timeout = std::chrono::milliseconds(static_cast<Index>(timeout * 1e3))};
    return std::unique_ptr<LocalRanks>(new LocalRanks{local::World(ranks, options), {}});
}

void move(LocalRanks& ranks, const std::vector<nb::object>& tiles, const Layout& source, const Layout& target,
          const std::vector<nb::object>& out) {
    if (std::ssize(tiles) != ranks.world.size() || std::ssize(out) != ranks.world.size())
        raise({Code::mismatch, fmt::format("{} ranks were given {} source and {} target tiles", ranks.world.size(),
                                           tiles.size(), out.size())});
    unwrap(validate(source));
    unwrap(validate(target));
    std::vector<DenseTile> from;
    std::vector<DenseTile> to;
    std::vector<ConstElements> in;
    std::vector<Elements> written;
    for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
        const std::string number = fmt::format("[{}]", rank);
        from.emplace_back(tiles[rank], ("tiles" + number).c_str(), Access::read, source, static_cast<Index>(rank));
        to.emplace_back(out[rank], ("out" + number).c_str(), Access::write, target, static_cast<Index>(rank));
        in.push_back(from.back().read());
        written.push_back(to.back().write());
    }
    auto moved = [&] {
        const nb::gil_scoped_release unlocked;
        const std::lock_guard alone(ranks.moving);
        return local::redistribute(ranks.world, source, target, in, written);
    }();
    unwrap(std::move(moved));
    for (DenseTile& tile : to) tile.finish();
}

}  // namespace

void add_local(nb::module_& module) {
    nb::class_<LocalRanks>(module, "LocalRanks", "Ranks of this process. reshard.local(n) makes them.")
        .def(nb::new_(&make_ranks), "ranks"_a, "timeout"_a = 60.0)
        .def_prop_ro(
            "size", [](LocalRanks& ranks) { return ranks.world.size(); }, "Ranks.")
        .def("move", move);
}

}  // namespace reshard::python
