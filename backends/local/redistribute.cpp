#include "reshard/redistribute.hpp"

#include <fmt/format.h>

#include "reshard/local.hpp"

namespace reshard::local {

Result<void> redistribute(World& world, const Layout& source, const Layout& target, std::span<const ConstElements> in,
                          std::span<const Elements> out) {
    if (std::ssize(in) != world.size() || std::ssize(out) != world.size()) {
        return fail(Code::mismatch, fmt::format("{} ranks were given {} source and {} target tiles", world.size(),
                                                in.size(), out.size()));
    }
    const auto of = [&](std::size_t rank) -> Redistributor& {
        return Redistributor::of(world.rank(static_cast<Index>(rank)));
    };
    Result<void> moved;
    std::vector<std::unique_ptr<Ticket>> runs;
    for (std::size_t rank = 0; rank < in.size(); ++rank) {  // after an error too, so that all ranks make the same calls
        auto run = of(rank).start(source, target, in[rank], out[rank]);
        if (run) runs.push_back(std::move(*run));
        if (!run && moved) moved = tl::unexpected(run.error());
    }
    for (auto& run : runs) {
        const auto done = run->wait();
        if (!done && moved) moved = done;
    }
    runs.clear();
    for (std::size_t rank = 0; !moved && rank < in.size(); ++rank) of(rank).clear();
    return moved;
}

}  // namespace reshard::local
