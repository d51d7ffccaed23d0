#include "files/ranks/tiles.hpp"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "files/formats/json_text.hpp"
#include "files/formats/tile_boxes.hpp"
#include "files/ranks/question.hpp"
#include "src/base/try.hpp"

namespace reshard::files {

Result<std::vector<ListedTensor>> list_of(std::span<const SavedTile> tiles) {
    std::set<std::string_view> names;
    std::vector<ListedTensor> list;
    for (const SavedTile& tile : tiles) {
        if (!names.insert(tile.name).second)
            return fail(Code::mismatch, fmt::format("{} is there twice", in_quotes(tile.name)));
        list.push_back({tile.name, tile.dtype, tile.shape});
    }
    return list;
}

std::string text_of(std::span<const SavedTile> tiles) {
    std::string list;
    for (const SavedTile& tile : tiles)
        list += fmt::format("{} {}[{}]\n", tile.name, name(tile.dtype), fmt::join(tile.shape, ","));
    return list;
}

Result<std::vector<RankTensor>> tensors_of(std::span<const SavedTile> tiles, std::span<const ShardedTensor> sources,
                                           const Backend& backend) {
    std::vector<RankTensor> tensors;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        const auto& layout = sources[i].layout;
        RESHARD_CHECK(enough_ranks(backend, *layout));
        const std::size_t bytes =
            tile_count(*layout, backend.rank()) * static_cast<std::size_t>(size_of(layout->dtype));
        if (bytes != tiles[i].bytes.size())
            return fail(Code::mismatch, fmt::format("the tile of {} has {} bytes by the rules, and {} are given",
                                                    in_quotes(tiles[i].name), bytes, tiles[i].bytes.size()));
        // The bytes are only read: a source of an exchange is.
        auto* const first = const_cast<std::byte*>(tiles[i].bytes.data());
        tensors.push_back({layout, {first, bytes}});
    }
    return tensors;
}

Result<void> place_targets(std::span<NewTensor> targets, const Backend& backend) {
    for (NewTensor& target : targets) {
        RESHARD_CHECK(enough_ranks(backend, *target.layout));
        target.layout = in_dtype(target.layout, target.dtype);
    }
    return {};
}

Result<Loaded> allocated(Backend& backend, std::span<const NewTensor> targets) {
    Loaded loaded;
    for (const NewTensor& target : targets) {
        LoadedTile tile{
            target.name, target.layout, extents(real_tile(*target.layout, target.shape, backend.rank())), nullptr, {}};
        const auto bytes = static_cast<Index>(tile_count(*target.layout, backend.rank())) * size_of(target.dtype);
        if (bytes > 0) {
            RESHARD_ASSIGN(tile.memory, backend.allocate(bytes));
            tile.bytes = tile.memory->bytes().first(static_cast<std::size_t>(bytes));
            if (target.padded) std::ranges::fill(tile.bytes, std::byte{0});
        }
        loaded.tiles.push_back(std::move(tile));
    }
    return loaded;
}

}  // namespace reshard::files
