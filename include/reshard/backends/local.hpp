// Ranks in one process: always built, the oracle of the other backends.
#pragma once

#include <chrono>

#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/move_options.hpp"

/// Ranks of one process.
namespace reshard::local {

/// The largest number of ranks of a world.
inline constexpr Index ranks_max = Index{1} << 16;

/// Options of a world.
struct Options {
    /// If a peer does not come within this time, a wait fails with Code::backend.
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// N ranks that share this process. Each rank's backend may be driven by its own thread, or all by one thread that
/// starts every rank before it waits on any.
class World : NonCopyable {
public:
    /// A world of this many ranks. pre: at least one. If there are more than ranks_max, no rank is made, and every call
    /// fails with Code::unsupported.
    explicit World(Index ranks, const Options& options = {});
    ~World();

    [[nodiscard]] Backend& rank(Index rank);  ///< valid as long as the world
    [[nodiscard]] Index size() const;         ///< ranks

    struct Shared;  ///< what the ranks share; private to the backend

private:
    std::unique_ptr<Shared> shared_;
    std::vector<std::unique_ptr<Backend>> backends_;
};

/// As reshard::redistribute, for all ranks of the world by this one thread: in[r] and out[r] are rank r's. Errors:
/// mismatch also when `out` of one rank overlaps `in` or `out` of another.
[[nodiscard]] Result<void> redistribute(World& world, const Layout& source, const Layout& target,
                                        std::span<const ConstElements> in, std::span<const Elements> out,
                                        const MoveOptions& options = {});

/// The same from the ranks' source tiles to their target tiles, each dense and row-major.
template <class T>
requires ElementRange<std::vector<T>>
[[nodiscard]] Result<std::vector<std::vector<T>>> redistribute(World& world, const Layout& source, const Layout& target,
                                                               const std::vector<std::vector<T>>& tiles) {
    if (auto valid = validate(target); !valid) return tl::unexpected(valid.error());
    std::vector<std::vector<T>> moved;
    const std::size_t each = ElementType<T>::dtype ? 1 : static_cast<std::size_t>(size_of(target.dtype));
    for (Index rank = 0; rank < world.size(); ++rank) moved.emplace_back(each * tile_count(target, rank));
    const std::vector<ConstElements> in(tiles.begin(), tiles.end());
    const std::vector<Elements> out(moved.begin(), moved.end());
    return redistribute(world, source, target, in, out).map([&] { return std::move(moved); });
}

}  // namespace reshard::local
