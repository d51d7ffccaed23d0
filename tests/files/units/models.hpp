// Models on the ranks of one process, each in its thread: tiles computed element by element, saved and loaded.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "reshard/backends/local.hpp"
#include "reshard/files/load.hpp"

namespace reshard::files::models {

using Bytes = std::vector<std::byte>;

class Folder {
public:
    Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("reshard_files_{}", ::getpid())) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// The answer of every rank, each from its own thread.
template <class Answer>
std::vector<Answer> on_all(Index ranks, const std::function<Answer(Backend&)>& work) {
    local::World world(ranks);
    std::vector<std::optional<Answer>> answers(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] { answers[static_cast<std::size_t>(rank)].emplace(work(world.rank(rank))); });
    for (std::thread& thread : threads) thread.join();
    std::vector<Answer> all;
    for (auto& answer : answers) all.push_back(*std::move(answer));
    return all;
}

struct Model {
    std::vector<ListedTensor> list;
    std::vector<Bytes> bytes;  // each whole tensor
};

inline Model model_of(std::vector<ListedTensor> list) {
    Model model{std::move(list), {}};
    std::mt19937 random(7);
    for (const ListedTensor& tensor : model.list) {
        Index bytes = size_of(tensor.dtype);
        for (const Index extent : tensor.shape) bytes *= extent;
        Bytes& all = model.bytes.emplace_back(static_cast<std::size_t>(bytes));
        for (std::byte& one : all) one = static_cast<std::byte>(random() % 120);  // never a NaN
    }
    return model;
}

// The rank's tile, computed element by element.
inline Bytes tile_of(const Bytes& whole, const Layout& layout, Index rank) {
    const auto size = static_cast<std::size_t>(size_of(layout.dtype));
    const Tile own = tile(layout, rank);
    Bytes bytes(tile_count(layout, rank) * size);
    for (std::size_t i = 0; i * size < bytes.size(); ++i) {
        auto rest = static_cast<Index>(i);
        Index place = 0;
        Index stride = 1;
        for (std::size_t k = own.size(); k-- > 0;) {
            place += own[k].at(rest % own[k].size()) * stride;
            rest /= own[k].size();
            stride *= layout.dims[k].extent;
        }
        std::memcpy(bytes.data() + i * size, whole.data() + static_cast<std::size_t>(place) * size, size);
    }
    return bytes;
}

inline ConvertOptions options_of(std::string rules, Form form = Form::index) {
    ConvertOptions options;
    options.form = form;
    options.rules = std::move(rules);
    options.memory = 1 << 20;
    options.granule = 256;
    options.jobs = 1;
    return options;
}

inline std::vector<Result<Saved>> save_all(Index ranks, const std::string& to, const Model& model,
                                           const ConvertOptions& options) {
    const bool whole = options.rules.find("target") == std::string::npos;
    const auto placed = place_sources(options.rules + (whole ? "target file=1\notherwise = -\n" : ""), model.list);
    if (!placed) throw std::runtime_error(placed.error().message);
    return on_all<Result<Saved>>(ranks, [&](Backend& backend) {
        std::vector<Bytes> tiles;
        std::vector<SavedTile> saved;
        for (std::size_t i = 0; i < model.list.size(); ++i)
            tiles.push_back(tile_of(model.bytes[i], *(*placed)[i].layout, backend.rank()));
        for (std::size_t i = 0; i < model.list.size(); ++i)
            saved.push_back({model.list[i].name, model.list[i].dtype, model.list[i].shape, tiles[i]});
        return save(backend, to, saved, options);
    });
}

inline void expect_loads(Index ranks, const std::string& from, const Model& model, const ConvertOptions& options) {
    const auto all = on_all<Result<Loaded>>(ranks, [&](Backend& b) { return load(b, from, options); });
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        ASSERT_TRUE(all[rank]) << all[rank].error().message;
        ASSERT_EQ(all[rank]->tiles.size(), model.list.size());
        for (std::size_t i = 0; i < model.list.size(); ++i) {
            const LoadedTile& tile = all[rank]->tiles[i];
            const auto which = static_cast<std::size_t>(std::ranges::find(model.list, tile.name, &ListedTensor::name) -
                                                        model.list.begin());
            ASSERT_LT(which, model.list.size());
            const Bytes wanted = tile_of(model.bytes[which], *tile.layout, static_cast<Index>(rank));
            EXPECT_TRUE(std::ranges::equal(tile.bytes, wanted)) << tile.name << " on rank " << rank;
            EXPECT_EQ(tile.shape, tile_shape(*tile.layout, static_cast<Index>(rank))) << tile.name;
        }
    }
    Index read = 0;
    Index bytes = 0;
    for (const auto& one : all) read += one->read_bytes;
    for (const Bytes& one : model.bytes) bytes += std::ssize(one);
    EXPECT_EQ(read, bytes) << "each byte once";
}

inline const char* const by_rows = "source x=2,y=2\n*.w = [(x,y), -]\n*.v = [y, x]\notherwise = -\n";

inline Model small_model() {
    return model_of({{"a.w", DType::f32, {37, 24}},
                     {"a.v", DType::bf16, {16, 50}},
                     {"a.n", DType::f32, {11}},
                     {"b.w", DType::f64, {9, 15}},
                     {"b.t", DType::f16, {8, 3, 5}},
                     {"b.v", DType::u8, {301, 7}},
                     {"b.n", DType::i64, {}},
                     {"b.e", DType::f32, {0, 4}},
                     {"c.w", DType::f32, {1, 17}}});
}

}  // namespace reshard::files::models
