// The small parts of `reshard convert`: checksums in any order, granules, dimensions of moves, and the library's own
// call.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "files/base/crc32c.hpp"
#include "files/base/parallel.hpp"
#include "files/engine/geometry.hpp"
#include "reshard/files/convert.hpp"

namespace reshard::files {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Formats, AreOneTable) {
    const std::string words = forms_in_words();
    for (const char* const text : {"single", "index", "ranks", "npy", "zarr", "dcp"}) {
        const auto form = parse_form(text);
        ASSERT_TRUE(form.has_value()) << text;
        EXPECT_EQ(name(*form), text);
        EXPECT_NE(words.find(text), std::string::npos);
    }
    EXPECT_EQ(parse_form("pickle").error().code, Code::usage);
    EXPECT_EQ(form_of_path("a/b.safetensors"), Form::single);
    EXPECT_EQ(form_of_path("b.npy"), Form::npy);
    EXPECT_EQ(form_of_path("b.zarr"), Form::zarr);
    EXPECT_EQ(form_of_path("b.npy.folder"), Form::index);
    EXPECT_TRUE(is_one_file(Form::single) && is_one_file(Form::npy) && !is_one_file(Form::zarr));
    EXPECT_NE(paths_in_words().find("an .npy file, a .safetensors file"), std::string::npos);
}

TEST(Crc32c, OthersPrintTheSame) {
    const std::string digits = "123456789";  // the check value of the catalogue of CRCs
    EXPECT_EQ(crc32c_of(crc32c_raw(bytes_of(digits)), std::ssize(digits)), 0xe3069283U);
    EXPECT_EQ(crc32c_of(crc32c_raw({}), 0), 0U);
    const std::string zeros(32, '\0');  // RFC 3720, B.4
    EXPECT_EQ(crc32c_of(crc32c_raw(bytes_of(zeros)), 32), 0x8a9136aaU);
}

TEST(Crc32c, PartsAddUpInAnyOrder) {
    std::mt19937 random(1);
    for (const std::size_t size : {1U, 7U, 8U, 100U, 24575U, 24576U, 24577U, 200003U}) {
        std::string text(size, '\0');
        for (char& byte : text) byte = static_cast<char>(random());
        const auto all = bytes_of(text);
        const std::uint32_t whole = crc32c_raw(all);
        const std::size_t cut = random() % (size + 1);
        const auto after = static_cast<Index>(size - cut);
        EXPECT_EQ(crc32c_raw(all.subspan(cut)) ^ crc32c_shifted(crc32c_raw(all.first(cut)), after), whole);
        EXPECT_EQ(crc32c_raw(all.subspan(cut), crc32c_raw(all.first(cut))), whole);
        std::uint32_t slow = 0;  // bit by bit
        for (const std::byte byte : all) {
            slow ^= static_cast<std::uint32_t>(byte);
            for (int bit = 0; bit < 8; ++bit) slow = (slow >> 1) ^ ((slow & 1U) != 0 ? 0x82f63b78U : 0U);
        }
        EXPECT_EQ(slow, whole);
    }
}

TEST(Crc32c, MoreThan32BitsOfZeros) {
    const Index half = Index{1} << 40;
    EXPECT_EQ(crc32c_shifted(crc32c_shifted(1, half), half), crc32c_shifted(1, 2 * half));
}

TEST(Granules, ASharedOneCountsOnce) {
    GranuleCount count(10);
    count.add(0, 0, 10);
    EXPECT_EQ(count.count(), 1);
    count.add(0, 10, 11);
    EXPECT_EQ(count.count(), 2);
    count.add(0, 15, 25);  // one more; 1 was counted before
    EXPECT_EQ(count.count(), 3);
    count.add(0, 22, 24);
    EXPECT_EQ(count.count(), 3);
    count.add(1, 22, 24);  // another file
    EXPECT_EQ(count.count(), 4);
    count.add(1, 30, 30);
    EXPECT_EQ(count.count(), 4);
    count.add(2, index_max - 5, index_max);
    EXPECT_EQ(count.count(), 5);
}

TEST(Moves, DimensionsOfOneAreFoundOrPutIn) {
    using Dims = std::vector<std::optional<std::size_t>>;
    const auto none = std::nullopt;
    EXPECT_EQ(match_dims({{0, 5}, {2, 4}}, {{0, 5}, {7, 9}}), (Dims{0, 1}));
    EXPECT_EQ(match_dims({{0, 5}}, {{3, 4}, {0, 5}}), (Dims{none, 0}));
    EXPECT_EQ(match_dims({{3, 4}, {0, 5}}, {{0, 5}}), (Dims{1}));
    EXPECT_EQ(match_dims({}, {{3, 4}}), (Dims{none}));
    EXPECT_EQ(match_dims({{0, 5}}, {{0, 4}}), std::nullopt);
    EXPECT_EQ(match_dims({{0, 5}, {0, 2}}, {{0, 5}}), std::nullopt);
}

TEST(Parallel, TheFirstErrorEndsIt) {
    std::atomic<Index> sum{0};
    EXPECT_TRUE(for_each_number(1000, 4, [&](Index number, Index) {
                    sum += number;
                    return Result<void>();
                }).has_value());
    EXPECT_EQ(sum, 499500);
    const auto failed = for_each_number(1000, 4, [&](Index number, Index) -> Result<void> {
        if (number == 17) return fail(Code::io, "seventeen");
        return {};
    });
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().message, "seventeen");
}

TEST(Coverage, HolesAndOverlaps) {
    StoredTensor tensor{"t", DType::f32, {4, 6}, {}};
    EXPECT_EQ(coverage(tensor), (Coverage{24, false}));
    tensor.boxes = {{{{0, 4}, {0, 3}}, 0, 0, {}}, {{{0, 2}, {3, 6}}, 0, 0, {}}};
    EXPECT_EQ(coverage(tensor), (Coverage{6, false}));
    tensor.boxes.push_back({{{2, 4}, {3, 6}}, 0, 0, {}});
    EXPECT_EQ(coverage(tensor), (Coverage{0, false}));
    tensor.boxes.push_back({{{1, 3}, {5, 6}}, 0, 0, {}});
    EXPECT_EQ(coverage(tensor), (Coverage{0, true}));
    const StoredTensor scalar{"s", DType::f32, {}, {{{}, 0, 0, {}}}};
    EXPECT_EQ(coverage(scalar), Coverage{});
}

TEST(Convert, FromAProgram) {
    const std::string folder = ::testing::TempDir() + "/reshard-convert";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const std::string header = R"({"a":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}})";
    std::ofstream(folder + "/in.safetensors", std::ios::binary)
        << static_cast<char>(header.size()) << std::string(7, '\0') << header << "abcdef";
    ConvertOptions options;
    options.form = Form::ranks;
    options.rules = "target x=3\na = [-, x]\n";
    options.memory = Index{16} << 20;
    options.verify = true;
    const auto done = convert(folder + "/in.safetensors", folder + "/out", options);
    ASSERT_TRUE(done.has_value()) << describe(done.error());
    EXPECT_EQ(done->files, 3);
    EXPECT_EQ(done->source_bytes, 6);
    EXPECT_TRUE(done->verified);
    const auto made = open_checkpoint(folder + "/out");
    ASSERT_TRUE(made.has_value()) << describe(made.error());
    EXPECT_EQ(made->ranks, 3);
    const auto whole = joined(*made, "source x=3\na = [-, x]\ntarget y=1\na = -\n", {});
    ASSERT_TRUE(whole.has_value()) << describe(whole.error());
    ASSERT_EQ(whole->tensors.size(), 1U);
    EXPECT_EQ(whole->tensors[0].shape, (std::vector<Index>{2, 3}));
    EXPECT_EQ(coverage(whole->tensors[0]), Coverage{});
    options.memory = 1000;
    const auto little = convert(folder + "/in.safetensors", folder + "/other", options);
    ASSERT_FALSE(little.has_value());
    EXPECT_EQ(little.error().code, Code::infeasible);
    EXPECT_FALSE(std::filesystem::exists(folder + "/other"));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace reshard::files
