// Ranks load a fused tensor with heads that several of them share.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "reshard/backends/local.hpp"
#include "reshard/files/load.hpp"

namespace reshard::files {
namespace {

using Bytes = std::vector<std::byte>;

Bytes numbered(Index count, Index first) {
    Bytes bytes;
    for (Index i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(first + i));
    return bytes;
}

ConvertOptions options_of(std::string rules, Form form) {
    ConvertOptions options;
    options.form = form;
    options.rules = std::move(rules);
    options.memory = Index{1} << 20;
    options.granule = 256;
    return options;
}

TEST(LoadHeads, EachRankHasWholeHeads) {
    const std::string path =
        (std::filesystem::temp_directory_path() / fmt::format("reshard_heads_{}.safetensors", ::getpid())).string();
    const Bytes queries = numbered(16 * 6, 0);
    const Bytes keys = numbered(8 * 6, 100);
    local::World world(4);
    std::vector<std::optional<Result<Loaded>>> loaded(4);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 4; ++rank)
        threads.emplace_back([&, rank] {
            Backend& backend = world.rank(static_cast<Index>(rank));
            const std::vector<SavedTile> tiles = {{"q", DType::u8, {16, 6}, queries}, {"k", DType::u8, {8, 6}, keys}};
            const auto saved = save(backend, path, tiles, options_of("source p=4\notherwise = -\n", Form::single));
            if (!saved) return;
            loaded[rank].emplace(
                load(backend, path, options_of("target p=4\nqk = [p heads of 4, -] <- q + k\n", Form::index)));
        });
    for (std::thread& thread : threads) thread.join();
    std::filesystem::remove(path);
    for (std::size_t rank = 0; rank < 4; ++rank) {
        ASSERT_TRUE(loaded[rank].has_value());
        ASSERT_TRUE(*loaded[rank]) << (*loaded[rank]).error().message;
        const LoadedTile& tile = (*loaded[rank])->tiles.at(0);
        Bytes wanted = numbered(24, static_cast<Index>(24 * rank));
        const Bytes shared = numbered(24, static_cast<Index>(100 + 24 * (rank / 2)));
        wanted.insert(wanted.end(), shared.begin(), shared.end());
        EXPECT_EQ(tile.shape, (std::vector<Index>{8, 6}));
        EXPECT_TRUE(std::ranges::equal(tile.bytes, wanted)) << rank;
    }
}

}  // namespace
}  // namespace reshard::files
