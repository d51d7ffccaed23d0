// Ranks load fused tensors: with heads that several of them share, in groups, in another order of dimensions, padded.
#include <gtest/gtest.h>

#include <algorithm>
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

std::string path_of(const char* name) {
    return (std::filesystem::temp_directory_path() / fmt::format("reshard_{}_{}.safetensors", name, ::getpid()))
        .string();
}

void remove_saved(const std::string& path) {
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".reshard.json");
}

// Four ranks run `act` with their backends.
template <class Act>
void on_ranks(const Act& act) {
    local::World world(4);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 4; ++rank)
        threads.emplace_back([&, rank] { act(rank, world.rank(static_cast<Index>(rank))); });
    for (std::thread& thread : threads) thread.join();
}

// Saves tensors as they are and loads them by rules.
std::vector<Loaded> saved_and_loaded(const char* name, const std::vector<SavedTile>& tiles, const std::string& rules) {
    const std::string path = path_of(name);
    std::vector<std::optional<Result<Loaded>>> loaded(4);
    on_ranks([&](std::size_t rank, Backend& backend) {
        if (save(backend, path, tiles, options_of("source p=4\notherwise = -\n", Form::single)))
            loaded[rank].emplace(load(backend, path, options_of(rules, Form::index)));
    });
    remove_saved(path);
    std::vector<Loaded> all;
    for (auto& one : loaded) {
        if (!one || !*one) {
            ADD_FAILURE() << (one ? describe(one->error()) : "not saved");
            return {};
        }
        all.push_back(std::move(**one));
    }
    return all;
}

TEST(LoadHeads, EachRankHasWholeHeads) {
    const Bytes queries = numbered(16 * 6, 0);
    const Bytes keys = numbered(8 * 6, 100);
    const auto loaded = saved_and_loaded("heads", {{"q", DType::u8, {16, 6}, queries}, {"k", DType::u8, {8, 6}, keys}},
                                         "target p=4\nqk = [p heads of 4, -] <- q + k\n");
    for (std::size_t rank = 0; rank < loaded.size(); ++rank) {
        const LoadedTile& tile = loaded[rank].tiles.at(0);
        Bytes wanted = numbered(24, static_cast<Index>(24 * rank));
        const Bytes shared = numbered(24, static_cast<Index>(100 + 24 * (rank / 2)));
        wanted.insert(wanted.end(), shared.begin(), shared.end());
        EXPECT_EQ(tile.shape, (std::vector<Index>{8, 6}));
        EXPECT_TRUE(std::ranges::equal(tile.bytes, wanted)) << rank;
    }
}

TEST(LoadSlices, GroupsStepsOrderAndPadding) {
    const Bytes queries = numbered(16 * 2, 0);
    const Bytes keys = numbered(4 * 2, 100);
    const Bytes mixed = numbered(8 * 6, 150);
    const Bytes words = numbered(10 * 3, 200);
    const auto loaded = saved_and_loaded("slices",
                                         {{"q", DType::u8, {16, 2}, queries},
                                          {"k", DType::u8, {4, 2}, keys},
                                          {"m", DType::u8, {8, 6}, mixed},
                                          {"embed", DType::u8, {10, 3}, words}},
                                         "target p=4\nqk = [p, -] <- q ++ k in 4 groups\nodd = [-, p] <- m[:, 1::2].T\n"
                                         "even = [p, -] <- m[:, 0::2]\nembed = [p pad 0 to multiple of p, -]\n");
    for (std::size_t rank = 0; rank < loaded.size(); ++rank) {
        const auto& tiles = loaded[rank].tiles;
        const auto number = static_cast<Index>(rank);
        Bytes grouped = numbered(8, 8 * number);
        const Bytes key = numbered(2, 100 + 2 * number);
        grouped.insert(grouped.end(), key.begin(), key.end());
        Bytes odd;
        for (Index column = 1; column < 6; column += 2)
            for (Index row = 2 * number; row < 2 * number + 2; ++row)
                odd.push_back(static_cast<std::byte>(150 + 6 * row + column));
        Bytes even;
        for (Index row = 2 * number; row < 2 * number + 2; ++row)
            for (Index column = 0; column < 6; column += 2)
                even.push_back(static_cast<std::byte>(150 + 6 * row + column));
        Bytes padded = numbered(rank < 3 ? 9 : 3, 200 + 9 * number);
        padded.resize(9, std::byte{0});
        const Bytes* const wanted[] = {&grouped, &odd, &even, &padded};
        for (std::size_t i = 0; i < 4; ++i)
            EXPECT_TRUE(std::ranges::equal(tiles.at(i).bytes, *wanted[i])) << tiles[i].name << " on " << rank;
    }
}

TEST(LoadSlices, GroupsAreSavedApart) {
    const std::string path = path_of("apart");
    std::vector<Bytes> tiles;
    for (Index rank = 0; rank < 4; ++rank) tiles.push_back(numbered(5 * 2, 10 * rank));
    std::vector<std::string> faults(4);
    std::vector<Bytes> found(4);
    on_ranks([&](std::size_t rank, Backend& backend) {
        const auto options = options_of(
            "source p=4\nqk = [p, -]\ntarget file=1\nq = - <- qk[0:4 of 5, :]\n"
            "k = - <- qk[4:5 of 5, :] permute(1,0)\n",
            Form::single);
        const auto saved =
            save(backend, path, std::vector<SavedTile>{{"qk", DType::u8, {20, 2}, tiles[rank]}}, options);
        if (!saved) faults[rank] = describe(saved.error());
        const auto loaded = load(backend, path, options_of("target p=4\notherwise = -\n", Form::index));
        if (!loaded) return;
        for (const char* const name : {"q", "k"}) {
            const LoadedTile& tile = *std::ranges::find(loaded->tiles, name, &LoadedTile::name);
            found[rank].insert(found[rank].end(), tile.bytes.begin(), tile.bytes.end());
        }
    });
    remove_saved(path);
    Bytes wanted;
    for (Index group = 0; group < 4; ++group)
        for (Index i = 0; i < 8; ++i) wanted.push_back(static_cast<std::byte>(10 * group + i));
    for (Index column = 0; column < 2; ++column)
        for (Index group = 0; group < 4; ++group) wanted.push_back(static_cast<std::byte>(10 * group + 8 + column));
    for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(faults[rank], "");
        EXPECT_EQ(found[rank], wanted) << rank;
    }
}

}  // namespace
}  // namespace reshard::files
