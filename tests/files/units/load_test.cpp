// The ranks of one process, each in its thread, save their tiles to files and load them again.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "models.hpp"
#include "support/time.hpp"

namespace reshard::files {
namespace {

using namespace models;  // NOLINT(google-build-using-namespace)

TEST(LoadAndSave, WhatIsSavedInOneShardingIsLoadedInAnother) {
    const Folder folder;
    const Model model = small_model();
    const std::string columns = "target p=4\n*.w = [-, p]\n*.v = [p, -]\notherwise = -\n";
    for (const Form form : {Form::single, Form::index, Form::dcp}) {
        for (const Index memory : {Index{1} << 20, Index{160} << 10}) {
            const std::string to = folder / fmt::format("{}{}", name(form), memory);
            ConvertOptions options = options_of(by_rows, form);
            options.memory = memory;
            if (form == Form::dcp) options.rules += "target tp=4\n*.w = [-, tp]\notherwise = -\n";
            for (const auto& saved : save_all(4, to, model, options)) {
                ASSERT_TRUE(saved) << saved.error().message;
                EXPECT_GT(saved->written_bytes, 0);
            }
            if (form == Form::single) std::filesystem::rename(to, to + ".safetensors");
            const std::string from = form == Form::single ? to + ".safetensors" : to;
            options = options_of(columns);
            options.memory = memory;
            expect_loads(4, from, model, options);
            expect_loads(3, from, model, options_of("target p=3\n*.w = [p, -]\notherwise = -\n"));
            expect_loads(2, from, model, options_of(""));
        }
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        EXPECT_FALSE(entry.path().string().ends_with(".reshard-partial")) << entry.path();
}

// A line for each tensor, cut over random axes of x=2,y=2.
std::string drawn_rules(const char* end, const Model& model, std::mt19937& random) {
    std::string rules = fmt::format("{} x=2,y=2\n", end);
    for (const ListedTensor& tensor : model.list) {
        std::vector<std::string> entries(tensor.shape.size(), "-");
        const auto some = [&] { return entries.empty() ? 0 : random() % entries.size(); };
        if (!entries.empty() && random() % 4 == 0) {
            entries[some()] = random() % 2 == 0 ? "(x,y)" : "(y,x)";
        } else if (!entries.empty()) {
            if (random() % 3 != 0) entries[some()] = "x";
            const std::size_t other = some();
            if (random() % 3 != 0 && entries[other] == "-") entries[other] = "y";
        }
        rules += fmt::format("{} = [{}]\n", tensor.name, fmt::join(entries, ", "));
    }
    return rules;
}

TEST(LoadAndSave, RandomModelsFormsAndLayouts) {
    const bool all = std::getenv("RESHARD_LONG") != nullptr;
    const char* const given = std::getenv("RESHARD_SEED");
    const unsigned seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                          : all            ? std::random_device()()
                                           : 20261123U;
    const Folder folder;
    for (unsigned round = 0; round < (all ? 1000U : 24U) && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE(fmt::format("RESHARD_SEED={} in place of round {}", seed + round, round));
        std::mt19937 random(seed + round);
        std::vector<ListedTensor> list;
        for (unsigned i = 0; i < 1 + random() % 5; ++i) {
            ListedTensor tensor{fmt::format("t{}", i), std::array{DType::f32, DType::u8, DType::f64}[random() % 3], {}};
            for (unsigned k = random() % 4; k > 0; --k) tensor.shape.push_back(1 + static_cast<Index>(random() % 40));
            list.push_back(std::move(tensor));
        }
        const Model model = model_of(std::move(list));
        const Form form = std::array{Form::single, Form::index, Form::dcp, Form::ranks}[random() % 4];
        const std::string files = drawn_rules("target", model, random);
        const bool parts = form == Form::dcp || form == Form::ranks;
        ConvertOptions options = options_of(drawn_rules("source", model, random) + (parts ? files : ""), form);
        options.memory = Index{140 << 10} + static_cast<Index>(random() % 4) * (8 << 10);
        options.granule = Index{1} << random() % 12;
        const std::string to = folder / fmt::format("{}{}", round, form == Form::single ? ".safetensors" : "");
        for (const auto& saved : save_all(4, to, model, options)) ASSERT_TRUE(saved) << saved.error().message;
        options.rules = drawn_rules("target", model, random);
        if (form == Form::ranks) options.rules = "source" + files.substr(6) + options.rules;
        if (form == Form::ranks) options.list = model.list;
        expect_loads(4, to, model, options);
    }
}

// The files are the same as convert makes from the same checkpoint.
TEST(LoadAndSave, FilesAreThoseOfAConversion) {
    const Folder folder;
    Model model = small_model();
    std::ranges::stable_sort(model.list, std::greater(), [](const auto& one) { return size_of(one.dtype); });
    model = model_of(model.list);  // in the order of a file
    const std::string target = "target tp=2,dp=2\n*.w = [-, tp]\n*.v = [(dp,tp), -]\notherwise = -\n";
    ASSERT_TRUE(save_all(4, folder / "one.safetensors", model, options_of(by_rows, Form::single))[0]);
    const auto entries = [](const std::filesystem::path& path) {
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
            std::ifstream file(entry.path(), std::ios::binary);
            if (entry.path().filename() != "reshard.json")
                files[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(file), {});
        }
        return files;
    };
    for (const Form form : {Form::ranks, Form::dcp}) {
        ConvertOptions options = options_of(by_rows + target, form);
        const std::string own = folder / fmt::format("own{}", name(form));
        for (const auto& saved : save_all(4, own, model, options)) ASSERT_TRUE(saved) << saved.error().message;
        options.rules = target;
        options.memory = 64 << 20;
        const std::string other = folder / fmt::format("other{}", name(form));
        const auto converted = convert(folder / "one.safetensors", other, options);
        ASSERT_TRUE(converted) << converted.error().message;
        EXPECT_TRUE(entries(own) == entries(other)) << name(form);
    }
}

TEST(LoadAndSave, FusedTensorsAndCasts) {
    const Folder folder;
    Model model = model_of({{"q", DType::f32, {16, 12}}, {"k", DType::f32, {8, 12}}});
    for (Bytes& bytes : model.bytes)
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (i % 4 != 3) bytes[i] = i % 4 == 2 ? static_cast<std::byte>(i % 7 << 4) : std::byte{0};  // exact in bf16
    ASSERT_TRUE(save_all(2, folder / "m", model, options_of("source x=2\notherwise = [x, -]\n"))[0]);
    for (const std::string along : {"", " along 1"}) {
        ConvertOptions options = options_of("target tp=2\nqk = [tp, -] <- q + k\n");
        if (!along.empty()) options.rules = "target tp=2\nqk = [tp, -] <- q[0:8, :] + k" + along + "\n";
        options.casts = {{"*", DType::bf16}};
        const auto all = on_all<Result<Loaded>>(2, [&](Backend& b) { return load(b, folder / "m", options); });
        for (std::size_t rank = 0; rank < 2; ++rank) {
            ASSERT_TRUE(all[rank]) << all[rank].error().message;
            ASSERT_EQ(all[rank]->tiles.size(), 1U);
            const LoadedTile& tile = all[rank]->tiles[0];
            EXPECT_EQ(tile.layout->dtype, DType::bf16);
            Bytes wanted;
            const auto add_row = [&](std::size_t tensor, std::size_t row) {
                for (std::size_t i = 0; i < 12; ++i)
                    for (const std::size_t byte : {2U, 3U})
                        wanted.push_back(model.bytes[tensor][(row * 12 + i) * 4 + byte]);
            };
            if (along.empty()) {
                for (std::size_t row = 0; row < 8; ++row) add_row(0, 8 * rank + row);
                for (std::size_t row = 0; row < 4; ++row) add_row(1, 4 * rank + row);
            } else {
                for (std::size_t row = 0; row < 4; ++row)
                    for (const std::size_t tensor : {0U, 1U}) add_row(tensor, 4 * rank + row);
            }
            EXPECT_TRUE(std::ranges::equal(tile.bytes, wanted)) << "rank " << rank << along;
        }
    }
}

// If one rank fails, all ranks soon get an error, and no file is left.
TEST(LoadAndSave, AFailureOfOneRankIsOneOfAll) {
    const Folder folder;
    const Model model = small_model();
    ASSERT_TRUE(save_all(2, folder / "m", model, options_of("source x=2\n*.w = [x, -]\notherwise = -\n"))[0]);
    const auto begin = std::chrono::steady_clock::now();
    const auto expect_failed = [](const auto& all, Code code, const char* words) {
        for (const auto& one : all) {
            ASSERT_FALSE(one);
            EXPECT_EQ(one.error().code, code) << one.error().message;
            EXPECT_NE(one.error().message.find(words), std::string::npos) << one.error().message;
        }
    };
    const auto load_all = [&](const std::function<ConvertOptions(Index)>& of, const std::string& other = "m") {
        return on_all<Result<Loaded>>(
            3, [&](Backend& b) { return load(b, folder / (b.rank() == 1 ? other : "m"), of(b.rank())); });
    };
    const auto same = [](Index) { return options_of("target p=3\n*.w = [p, -]\notherwise = -\n"); };
    expect_failed(load_all(same, "nowhere"), Code::io, "nowhere");
    expect_failed(load_all([&](Index rank) { return rank == 2 ? options_of("nonsense") : same(0); }), Code::syntax, "");
    expect_failed(load_all([&](Index rank) { return rank == 2 ? options_of("target p=3\notherwise = -\n") : same(0); }),
                  Code::mismatch, "rank 2");
    expect_failed(load_all([&](Index) { return options_of("target p=4\notherwise = -\n"); }), Code::mismatch,
                  "4 ranks");
    expect_failed(load_all([&](Index) {
                      ConvertOptions little = same(0);
                      little.memory = 1 << 10;
                      return little;
                  }),
                  Code::infeasible, "memory");
    // A tile of the wrong size on one rank.
    const auto saved = on_all<Result<Saved>>(2, [&](Backend& b) {
        const Bytes bytes(b.rank() == 0 ? 16 : 12);
        const std::vector<SavedTile> tiles = {{"t", DType::f32, {8}, bytes}};
        return save(b, folder / "new", tiles, options_of("source x=2\nt = [x]\n"));
    });
    expect_failed(saved, Code::mismatch, "12 are given");
    const auto unsaid =
        on_all<Result<Saved>>(2, [&](Backend& b) { return save(b, folder / "new", {}, options_of("")); });
    expect_failed(unsaid, Code::usage, "source");
    // The path exists already.
    expect_failed(save_all(2, folder / "m", model, options_of("source x=2\notherwise = -\n")), Code::io, "m'");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, test::soon);
    std::set<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        left.insert(entry.path().filename().string());
    EXPECT_EQ(left, std::set<std::string>{"m"});
}

// If the path of the checkpoint is another program's file, all ranks refuse, and the file stays unchanged.
TEST(LoadAndSave, NothingOfOthersIsWrittenOver) {
    const Folder folder;
    const std::string mine = "what I thought today\n";
    const auto write = [&](const std::string& path) { std::ofstream(path) << mine; };
    const auto expect_refused = [&](const std::string& path, Form form, const char* words, const std::string& kept) {
        const auto options = options_of("source x=2\notherwise = -\n", form);
        for (const auto& saved : save_all(2, path, small_model(), options)) {
            ASSERT_FALSE(saved);
            EXPECT_EQ(saved.error().code, Code::io);
            EXPECT_NE(saved.error().message.find(words), std::string::npos) << saved.error().message;
        }
        std::ifstream file(kept);
        EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), mine) << words;
    };
    std::filesystem::create_directories(folder / "diary/files");
    for (const char* const name : {"diary/journal", "diary/files/page"}) write(folder / name);
    std::filesystem::create_directory_symlink("diary", folder / "m.reshard-partial");
    expect_refused(folder / "m", Form::index, "is a symbolic link", folder / "diary/journal");
    std::filesystem::remove(folder / "m.reshard-partial");
    std::filesystem::rename(folder / "diary", folder / "m.reshard-partial");
    expect_refused(folder / "m", Form::index, "not made by reshard", folder / "m.reshard-partial/files/page");
    write(folder / "m.safetensors.reshard.json");
    expect_refused(folder / "m.safetensors", Form::single, "move it away", folder / "m.safetensors.reshard.json");
}

// A file that is cut while it is read: the header is right, but the tensor is gone.
TEST(LoadAndSave, AFileThatBecomesShorterIsAnErrorOfAll) {
    const Folder folder;
    const Model model = model_of({{"w", DType::f32, {1000, 64}}});
    ASSERT_TRUE(save_all(2, folder / "m", model, options_of("source x=2\notherwise = [x, -]\n"))[0]);
    const std::string file = (folder / "m") + "/model-00001-of-00001.safetensors";
    std::filesystem::resize_file(file, 100'000);
    const auto all = on_all<Result<Loaded>>(2, [&](Backend& b) { return load(b, folder / "m", options_of("")); });
    for (const auto& one : all) {
        ASSERT_FALSE(one);
        EXPECT_EQ(one.error().code, Code::io) << one.error().message;
    }
}

}  // namespace
}  // namespace reshard::files
