#include "reshard/boxes/rebuild.hpp"

#include <fmt/format.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/boxes/boxes.hpp"
#include "python/bindings/convert.hpp"
#include "python/bindings/door.hpp"
#include "python/bindings/files.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

std::vector<RebuildMove> moves_of(const nb::list& sources, const nb::list& targets) {
    std::vector<RebuildMove> moves;
    for (std::size_t i = 0; i < sources.size(); ++i)
        moves.push_back({instance_of<Layout>(sources[i], "a source is a Layout"),
                         instance_of<Layout>(targets[i], "a target is a Layout")});
    return moves;
}

// Collective, within a Call. `tiles`: the source tiles, or None on a device whose tiles are lost or that had none.
// `devices`: the device of each rank.
void rebuild(std::uintptr_t address, const nb::list& sources, const nb::list& targets, const std::vector<Index>& lost,
             const std::vector<Index>& devices, const nb::list& tiles, const nb::list& outs) {
    const std::shared_ptr<Backend> backend = backend_at(address);
    const std::vector<RebuildMove> moves = moves_of(sources, targets);
    const Index rank = backend->rank();
    const Index device = devices[static_cast<std::size_t>(rank)];
    DenseArrays all;
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto& [source, target] = moves[i];
        Buffers& own = all.buffers.emplace_back();
        if (!tiles[i].is_none())
            own.source = all.add(tiles[i], named("tile", moves.size(), i), Access::read, source.dtype,
                                 tile_shape(source, device), rank);
        own.target = all.add(outs[i], named("out", moves.size(), i), Access::write, target.dtype,
                             tile_shape(target, device), rank);
    }
    Call::vote(*backend);
    unwrap(waiting([&]() -> Result<void> {
        auto prepared = Rebuild::prepare(moves, lost, *backend, devices);
        if (!prepared) return tl::unexpected(prepared.error());
        return prepared->run(all.buffers);
    }));
}

}  // namespace

void add_rebuilds(nb::module_& module) {
    module.def("rebuild", rebuild, "address"_a, "sources"_a, "targets"_a, "lost"_a, "devices"_a, "tiles"_a, "outs"_a);
}

}  // namespace reshard::python
