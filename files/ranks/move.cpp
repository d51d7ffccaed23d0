#include <fmt/format.h>

#include "files/ranks/question.hpp"
#include "files/ranks/tiles.hpp"
#include "files/wanted.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/rule_ends.hpp"

namespace reshard::files {

namespace {

// Everything that a rank knows before anything moves.
struct Moving {
    Wanted wanted;
    std::vector<RankTensor> sources;
};

Result<Moving> prepare(const Backend& backend, std::span<const SavedTile> tiles, const ConvertOptions& options) {
    RESHARD_CHECK(host_only(backend));
    for (const char* const end : {"source", "target"})
        if (!says_end(options.rules, end))
            return fail(Code::usage, fmt::format("rules of a move need a line `{0}` and a mesh, then layouts", end));
    RESHARD_TRY(const auto& list, list_of(tiles));
    Moving moving;
    RESHARD_ASSIGN(moving.wanted, wanted_of(options.rules, list, options.casts));
    RESHARD_ASSIGN(moving.sources, tensors_of(tiles, moving.wanted.sources, backend));
    RESHARD_CHECK(place_targets(moving.wanted.targets, backend));
    return moving;
}

Result<std::vector<ArrayMove>> arrays_of(const Moving& moving, std::span<const RankTensor> targets, std::size_t first,
                                         std::size_t last, Index rank) {
    std::vector<ArrayMove> arrays;
    for (std::size_t i = first; i < last; ++i) {
        const Move& move = moving.wanted.moves[i];
        RESHARD_TRY(const auto& ends, ends_of(moving.wanted.parts[i]));
        arrays.push_back({array_of(moving.sources[move.source], move.source, ends.source, rank),
                          array_of(targets[move.target], move.target, ends.target, rank)});
    }
    return arrays;
}

}  // namespace

Result<Loaded> move_tensors(Backend& backend, std::span<const SavedTile> tiles, const ConvertOptions& options) {
    Company company(backend);
    RESHARD_TRY(const auto& moving, company.all_have(prepare(backend, tiles, options)));
    RESHARD_CHECK(
        company.agree(hash_of(options, text_of(tiles)).value(), "options, or names, types and shapes of tensors,"));
    RESHARD_TRY(auto& loaded, company.all_have(allocated(backend, moving.wanted.targets)));
    std::vector<RankTensor> targets;
    for (const LoadedTile& tile : loaded.tiles) targets.push_back({tile.layout, tile.bytes});
    Exchange exchange(backend);
    constexpr std::size_t most = 256;  // moves, as in a round of a load
    const std::size_t count = moving.wanted.moves.size();
    for (std::size_t first = 0; first < count; first += most) {
        const std::size_t last = std::min(first + most, count);
        RESHARD_TRY(const auto& arrays, company.all_have(arrays_of(moving, targets, first, last, backend.rank())));
        RESHARD_CHECK(exchange.run(arrays));
        ++loaded.rounds;
    }
    return std::move(loaded);
}

}  // namespace reshard::files
