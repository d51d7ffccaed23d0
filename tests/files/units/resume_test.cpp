// A save that is killed or fails is continued by the next one, and files that changed are found by their checksums.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include "files/base/crc32c.hpp"
#include "files/engine/checksums.hpp"
#include "models.hpp"

namespace reshard::files {
namespace {

using namespace models;  // NOLINT(google-build-using-namespace)

const char* const by_columns = "target tp=4\n*.w = [-, tp]\notherwise = -\n";

// More than five rounds.
ConvertOptions resumed_options(Form form) {
    const bool parts = form == Form::ranks || form == Form::dcp;
    ConvertOptions options = options_of(std::string(by_rows) + (parts ? by_columns : ""), form);
    options.memory = Index{100} << 10;
    options.resume = true;
    return options;
}

Model large_model() {
    return model_of({{"a.w", DType::f32, {360, 240}},
                     {"a.v", DType::bf16, {160, 500}},
                     {"a.n", DType::f32, {1100}},
                     {"b.w", DType::f64, {90, 150}},
                     {"b.v", DType::u8, {301, 700}}});
}

std::string path_of(const Folder& folder, Form form, const std::string& name) {
    const bool single = form == Form::single;
    std::filesystem::create_directories(folder / name);
    return folder / (name + (single ? "/m.safetensors" : "/m"));
}

// Every byte in a folder, by the names of its files.
std::map<std::string, std::string> contents(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        files[entry.path().lexically_relative(folder)] =
            entry.is_regular_file() ? std::string(std::istreambuf_iterator<char>(file), {}) : "";
    }
    return files;
}

std::set<std::string> names_in(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
}

// Saves in a process of its own, which is killed when this many rounds are written.
void save_and_kill(const std::string& to, const Model& model, ConvertOptions options, int rounds) {
    const pid_t child = ::fork();
    if (child == 0) {
        options.progress = [left = rounds](const ConvertProgress&) mutable {
            if (--left == 0) (void)::raise(SIGKILL);
        };
        (void)save_all(4, to, model, options);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before the kill";
}

void expect_resumed(const std::vector<Result<Saved>>& all, Index resumed) {
    for (const auto& saved : all) {
        ASSERT_TRUE(saved) << saved.error().message;
        EXPECT_EQ(saved->resumed, resumed);
        EXPECT_GT(saved->rounds, 5);
        EXPECT_FALSE(saved->finished_before);
    }
}

void expect_failed(const auto& all, Code code, const char* words) {
    for (const auto& one : all) {
        ASSERT_FALSE(one);
        EXPECT_EQ(one.error().code, code) << one.error().message;
        EXPECT_NE(one.error().message.find(words), std::string::npos) << one.error().message;
    }
}

TEST(ResumedSave, WritesTheRoundsThatAreMissing) {
    const Folder folder;
    const Model model = large_model();
    for (const Form form : {Form::index, Form::single, Form::dcp, Form::ranks}) {
        SCOPED_TRACE(name(form));
        const ConvertOptions options = resumed_options(form);
        const std::string whole = fmt::format("whole-{}", name(form));
        expect_resumed(save_all(4, path_of(folder, form, whole), model, options), 0);
        for (const int rounds : {1, 4}) {
            const std::string killed = fmt::format("killed-{}-{}", name(form), rounds);
            const std::string to = path_of(folder, form, killed);
            save_and_kill(to, model, options, rounds);
            EXPECT_TRUE(std::filesystem::exists(to + ".reshard-partial"));
            EXPECT_FALSE(std::filesystem::exists(to));
            const auto all = save_all(4, to, model, options);
            expect_resumed(all, rounds);
            EXPECT_TRUE(contents(folder / killed) == contents(folder / whole)) << rounds;
        }
    }
}

TEST(ResumedSave, IsKilledAgain) {
    const Folder folder;
    const Model model = large_model();
    const ConvertOptions options = resumed_options(Form::index);
    for (const int rounds : {2, 1, 1}) save_and_kill(folder / "m", model, options, rounds);
    expect_resumed(save_all(4, folder / "m", model, options), 4);
    expect_loads(4, folder / "m", model, options_of(""));
}

// A checkpoint of two steps would be worse than none.
TEST(ResumedSave, OfOtherValuesOrAnotherJobBeginsAnew) {
    const Folder folder;
    const Model model = large_model();
    Model next = model;
    next.bytes[1][7] ^= std::byte{1};
    const ConvertOptions options = resumed_options(Form::index);
    save_and_kill(folder / "m", model, options, 3);
    expect_resumed(save_all(4, folder / "m", next, options), 0);
    expect_loads(4, folder / "m", next, options_of(""));

    ConvertOptions other = options;
    other.granule = 512;
    save_and_kill(folder / "o", model, options, 3);
    expect_resumed(save_all(4, folder / "o", model, other), 0);
    expect_loads(4, folder / "o", model, options_of(""));

    ConvertOptions anew = options;
    anew.resume = false;
    save_and_kill(folder / "a", model, options, 3);
    expect_resumed(save_all(4, folder / "a", model, anew), 0);
    expect_loads(4, folder / "a", model, options_of(""));
    EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"a", "m", "o"}));
}

TEST(ResumedSave, FindsWhatAnEarlierRunFinished) {
    const Folder folder;
    const Model model = large_model();
    const ConvertOptions options = resumed_options(Form::dcp);
    expect_resumed(save_all(4, folder / "m", model, options), 0);
    const auto before = contents(folder / "m");
    for (const auto& again : save_all(4, folder / "m", model, options)) {
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_TRUE(again->finished_before);
        EXPECT_EQ(again->written_bytes, 0);
    }
    Model next = model;
    next.bytes[0][0] ^= std::byte{1};
    expect_failed(save_all(4, folder / "m", next, options), Code::io, "is there already");
    EXPECT_TRUE(contents(folder / "m") == before);
}

TEST(ResumedSave, RanksThatDifferInIt) {
    const Folder folder;
    const Bytes bytes(16);
    const std::vector<SavedTile> tiles = {{"t", DType::f32, {8}, bytes}};
    expect_failed(on_all<Result<Saved>>(2,
                                        [&](Backend& backend) {
                                            ConvertOptions options = options_of("source x=2\nt = [x]\n");
                                            (backend.rank() == 0 ? options.verify : options.resume) = true;
                                            return save(backend, folder / "m", tiles, options);
                                        }),
                  Code::mismatch, "options");
}

// Changes one byte of a file, in the middle of it.
void damage(const std::string& path, std::streamoff before_end) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out | std::ios::ate);
    ASSERT_TRUE(file.is_open()) << path;
    const std::streamoff at = static_cast<std::streamoff>(file.tellg()) - before_end;
    file.seekg(at);
    const auto byte = static_cast<char>(file.get() ^ 64);
    file.seekp(at);
    file.put(byte);
}

TEST(VerifiedSave, FindsBytesThatChangedOnTheDisk) {
    const Folder folder;
    const Model model = large_model();
    for (const Form form : {Form::index, Form::single, Form::dcp, Form::ranks}) {
        SCOPED_TRACE(name(form));
        ConvertOptions options = resumed_options(form);
        options.resume = false;
        options.verify = true;
        const std::string to = path_of(folder, form, fmt::format("v-{}", name(form)));
        for (const auto& saved : save_all(4, to, model, options)) {
            ASSERT_TRUE(saved) << saved.error().message;
            EXPECT_TRUE(saved->verified);
        }
        const std::string other = path_of(folder, form, fmt::format("w-{}", name(form)));
        options.progress = [&](const ConvertProgress& now) {
            if (now.written_bytes < now.target_bytes) return;
            const std::string files = other + ".reshard-partial/files";
            damage(files + "/" + *names_in(files).begin(), 2);
        };
        expect_failed(save_all(4, other, model, options), Code::io, "other bytes");
        EXPECT_EQ(names_in(std::filesystem::path(other).parent_path()), std::set<std::string>{});
    }
}

// Converts a model to each form, and loads it with its checksums, before and after a byte has changed.
TEST(VerifiedLoad, FindsBytesThatChanged) {
    const Folder folder;
    const Model model = model_of({{"t", DType::f32, {40, 30}}});
    ASSERT_TRUE(save_all(2, folder / "t.safetensors", model, options_of("source x=2\nt = [x, -]\n", Form::single))[0]);
    const std::string parts = "target p=2\nt = [-, p]\n";
    struct Case {
        Form form;
        const char* path;
        const char* damaged;
        std::string rules = {};
        std::vector<Index> shards = {};
        std::string codec = {};
    };
    const std::vector<Case> cases = {{Form::single, "o.safetensors", ""},
                                     {Form::npy, "o.npy", ""},
                                     {Form::index, "index", "/model-00001-of-00001.safetensors"},
                                     {Form::dcp, "dcp", "/shard-00001-model-00001-of-00001.safetensors", parts},
                                     {Form::ranks, "ranks", "/model-rank-1-part-0.safetensors", parts},
                                     {Form::zarr, "raw.zarr", "/c/1/1"},
                                     {Form::zarr, "shards.zarr", "/c/0/1", "", {20, 20}},
                                     {Form::zarr, "small.zarr", "/c/1/0", "", {}, "crc32c"},
                                     {Form::zarr, "both.zarr", "/c/1/0", "", {20, 20}, "crc32c"},
                                     {Form::zarr2, "two.zarr", "/2.1"}};
    for (const Case& one : cases) {
        SCOPED_TRACE(one.path);
        ConvertOptions options = options_of(one.rules, one.form);
        options.memory = Index{64} << 20;
        if (one.form == Form::zarr || one.form == Form::zarr2) options.chunks = {10, 20};
        options.shards = one.shards;
        options.codec = one.codec;
        const std::string path = folder / one.path;
        const auto made = convert(folder / "t.safetensors", path, options);
        ASSERT_TRUE(made) << made.error().message;
        ConvertOptions loading = options_of("");
        loading.verify = true;
        if (one.form == Form::ranks) loading.rules = "source p=2\nt = [-, p]\n";
        const auto loads = [&] {
            return on_all<Result<Loaded>>(3, [&](Backend& b) { return load(b, path, loading); });
        };
        for (const auto& loaded : loads()) {
            ASSERT_TRUE(loaded) << loaded.error().message;
            EXPECT_TRUE(loaded->verified);
        }
        damage(path + one.damaged, one.shards.empty() ? 9 : 60);
        expect_failed(loads(), Code::io, "other bytes");
    }
}

TEST(VerifiedLoad, NeedsTheChecksumsOfTheseFiles) {
    const Folder folder;
    const Model model = small_model();
    ASSERT_TRUE(save_all(2, folder / "m", model, options_of("source x=2\notherwise = -\n"))[0]);
    ConvertOptions loading = options_of("");
    loading.verify = true;
    const std::string manifest = folder / "m/reshard.json";
    std::ifstream file(manifest);
    const std::string good(std::istreambuf_iterator<char>(file), {});
    const auto expect_lies = [&](const std::string& text, const char* words) {
        std::ofstream(manifest) << text;
        expect_failed(on_all<Result<Loaded>>(2, [&](Backend& b) { return load(b, folder / "m", loading); }), Code::io,
                      words);
    };
    const auto with = [&](const std::string& old, const std::string& now) {
        const std::size_t at = good.find(old);
        EXPECT_NE(at, std::string::npos) << old;
        return good.substr(0, at) + now + good.substr(at + old.size());
    };
    expect_lies(good.substr(0, good.size() / 2), "JSON");
    expect_lies("{}", "no list of files");
    expect_lies(R"({"files": 3})", "no list of files");
    expect_lies(with("model-00001", "model-00002"), "no checksum of 'model-00001");
    expect_lies(with("\"a.w\"", "\"a.x\""), "'a.x', which is not in its file");
    expect_lies(with("\"crc32c\": \"", "\"crc32c\": \"0"), "no checksum of 'b.w'");
    expect_lies(with("\"bytes\": ", "\"bytes\": 9"), "bytes, and it has");
    expect_lies(with("\"tensors\"", "\"others\""), "does not describe");
    std::filesystem::remove(manifest);
    expect_failed(on_all<Result<Loaded>>(2, [&](Backend& b) { return load(b, folder / "m", loading); }), Code::io,
                  "reshard.json' is missing");
    loading.verify = false;
    expect_loads(2, folder / "m", model, loading);
}

// The parts of ranks, and of workers within a large tensor, add up to the checksum of the whole.
TEST(Checksums, OfPartsAddUp) {
    const Folder folder;
    const std::string path = folder / "large";
    constexpr Index bytes = (Index{150} << 20) + 7;
    std::ofstream(path) << "begin";
    std::filesystem::resize_file(path, bytes);
    for (const Index at : {Index{5}, Index{64} << 20, (Index{128} << 20) + 100, bytes - 9}) damage(path, bytes - at);
    const std::vector<StoredFile> files = {{path, bytes}};
    const std::vector<SummedBytes> summed = {{0, 0, 3, "head"}, {0, 3, bytes, "t"}};
    const SummedFiles what{files, &File::open_to_read, summed};
    std::uint32_t wanted = 0;
    {
        const auto file = File::open_to_read(path);
        ASSERT_TRUE(file);
        std::vector<std::byte> some(1 << 20);
        for (Index at = 3; at < bytes; at += std::ssize(some)) {
            const auto part = std::span(some).first(static_cast<std::size_t>(std::min(bytes - at, std::ssize(some))));
            ASSERT_TRUE(file->read(part, at));
            wanted = crc32c_raw(part, wanted);
        }
    }
    for (const Index ranks : {1, 3}) {
        std::array<std::uint32_t, 2> sums{};
        for (Index rank = 0; rank < ranks; ++rank) {
            const auto own = read_sums(what, {rank, ranks}, 2, 1 << 16);
            ASSERT_TRUE(own) << own.error().message;
            for (std::size_t i = 0; i < 2; ++i) sums[i] ^= (*own)[i];
        }
        EXPECT_EQ(sums[0], crc32c_raw(std::as_bytes(std::span("beg", 3))));
        EXPECT_EQ(sums[1], wanted) << ranks;
    }
    EXPECT_TRUE(compare_sums(what, std::array{1U, 2U}, std::array{1U, 2U}));
    expect_failed(std::array{compare_sums(what, std::array{1U, 2U}, std::array{1U, 3U})}, Code::io, "'t' in '");
}

}  // namespace
}  // namespace reshard::files
