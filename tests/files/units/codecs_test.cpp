// Codecs: their texts, there and back, and damaged bytes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "files/base/codecs.hpp"
#include "files/formats/npy.hpp"
#include "files/formats/zarr.hpp"
#include "reshard/backends/local.hpp"
#include "reshard/files/load.hpp"

namespace reshard::files {
namespace {

std::vector<std::byte> random_bytes(std::mt19937& random, std::size_t size, unsigned values) {
    std::vector<std::byte> bytes(size);
    for (std::byte& one : bytes) one = static_cast<std::byte>(random() % values);
    return bytes;
}

// A coder of every chain that this build has the libraries for.
std::vector<std::pair<std::string, Coder>> coders() {
    std::vector<std::pair<std::string, Coder>> made;
    for (const char* const text : {"zstd:3", "zstd:-5:checksum", "gzip:5", "zlib:1", "blosc:lz4:5:shuffle",
                                   "blosc:zstd:1:bitshuffle", "blosc:blosclz:9:noshuffle", "crc32c", "zstd:1,crc32c",
                                   "crc32c,gzip:1", "blosc:lz4hc:2:shuffle,zstd:1,crc32c"}) {
        auto coder = Coder::make(*parse_codecs(text), 4);
        if (coder) made.emplace_back(text, *std::move(coder));
    }
    return made;
}

TEST(Codecs, TextsAreReadAndWritten) {
    for (const char* const text : {"zstd:3", "zstd:22:checksum", "gzip:9", "zlib:-1", "crc32c",
                                   "blosc:lz4:5:shuffle,crc32c", "blosc:zstd:0:noshuffle"}) {
        const auto codecs = parse_codecs(text);
        ASSERT_TRUE(codecs) << text;
        EXPECT_EQ(format(*codecs), text);
    }
    EXPECT_EQ(format(*parse_codecs("zstd,blosc,gzip")), "zstd:3,blosc:lz4:5:shuffle,gzip:5");
    EXPECT_TRUE(parse_codecs("none")->empty());
    for (const char* const text : {"lzma", "zstd:", "zstd:23", "zstd:3:x", "zstd:3:checksum:1", "gzip:10", "crc32c:1",
                                   "blosc:xz", "blosc:lz4:5:other", "zstd,", ",", "none,zstd", "zstd:99999999999"}) {
        const auto codecs = parse_codecs(text);
        ASSERT_FALSE(codecs) << text;
        EXPECT_EQ(codecs.error().code, Code::usage);
    }
}

TEST(Codecs, DecodeWhatTheyEncode) {
    std::mt19937 random(1);
    const auto all = coders();
    ASSERT_FALSE(all.empty());
    for (auto& [text, made] : coders())
        for (const std::size_t size : {0, 1, 4, 1000, 4096, 300000})
            for (const unsigned values : {2U, 256U}) {
                Coder coder = *Coder::make(*parse_codecs(text), 4);
                const auto bytes = random_bytes(random, size, values);
                std::vector<std::byte> encoded(static_cast<std::size_t>(coder.bound(std::ssize(bytes))));
                const auto length = coder.encode(bytes, encoded);
                ASSERT_TRUE(length) << text << " " << size << " " << length.error().message;
                std::vector<std::byte> decoded(size);
                const auto done = coder.decode(std::span(encoded).first(static_cast<std::size_t>(*length)), decoded);
                ASSERT_TRUE(done) << text << " " << size << " " << done.error().message;
                EXPECT_EQ(decoded, bytes) << text;
            }
}

TEST(Codecs, RefuseMoreBytesAndFewer) {
    for (auto& [text, coder] : coders()) {
        const std::vector<std::byte> bytes(4096);
        std::vector<std::byte> encoded(static_cast<std::size_t>(coder.bound(4096)));
        const auto length = coder.encode(bytes, encoded);
        ASSERT_TRUE(length);
        for (const std::size_t size : {0, 1, 4092, 4095, 4097, 8192}) {
            std::vector<std::byte> decoded(size + 1, std::byte{42});
            EXPECT_FALSE(coder.decode(std::span(encoded).first(static_cast<std::size_t>(*length)),
                                      std::span(decoded).first(size)))
                << text << " " << size;
            EXPECT_EQ(decoded.back(), std::byte{42}) << text;  // nothing is written behind the end
        }
    }
}

TEST(Codecs, SurviveDamagedBytes) {
    std::mt19937 random(2);
    for (auto& [text, coder] : coders()) {
        const auto bytes = random_bytes(random, 2000, 5);
        std::vector<std::byte> encoded(static_cast<std::size_t>(coder.bound(2000)));
        const auto length = coder.encode(bytes, encoded);
        ASSERT_TRUE(length);
        encoded.resize(static_cast<std::size_t>(*length));
        for (int i = 0; i < 3000; ++i) {
            auto damaged = encoded;
            for (auto flips = 1 + random() % 4; flips > 0; --flips)
                damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 + random() % 255);
            if (random() % 4 == 0) damaged.resize(random() % damaged.size());
            std::vector<std::byte> decoded(2001, std::byte{42});
            const auto done = coder.decode(damaged, std::span(decoded).first(2000));
            if (!done) {
                EXPECT_FALSE(done.error().message.empty());
            }
            EXPECT_EQ(decoded.back(), std::byte{42}) << text;
        }
    }
}

TEST(Codecs, AChecksumOfBytesThatWereChangedIsFalse) {
    Coder coder = *Coder::make(*parse_codecs("crc32c"), 1);
    std::vector<std::byte> encoded(static_cast<std::size_t>(coder.bound(100)));
    ASSERT_EQ(coder.encode(std::vector<std::byte>(100), encoded), 104);
    std::vector<std::byte> decoded(100);
    EXPECT_TRUE(coder.decode(std::span(encoded).first(104), decoded));
    encoded[7] = std::byte{1};
    EXPECT_FALSE(coder.decode(std::span(encoded).first(104), decoded));
}

TEST(Zarr2, IsReadAsItIsWritten) {
    const std::string text =
        R"({"zarr_format": 2, "shape": [7, 5], "chunks": [3, 2], "dtype": ">f4", "order": "F", "filters": null,
            "compressor": null, "fill_value": "NaN", "dimension_separator": "/"})";
    const auto array = parse_zarr2(text, R"({"units": "K"})");
    ASSERT_TRUE(array) << array.error().message;
    EXPECT_TRUE(array->swapped);
    EXPECT_EQ(array->order, (std::vector<std::size_t>{1, 0}));
    const auto back = parse_zarr2(write_zarr2(*array), write_attributes2(*array));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->shape, array->shape);
    EXPECT_EQ(back->chunks, array->chunks);
    EXPECT_EQ(back->fill, array->fill);
    EXPECT_EQ(back->rest, array->rest);
    EXPECT_EQ(back->separator, '/');
}

// Three ranks load an array whose chunks lie across their tiles.
TEST(Load, ReadsCompressedArrays) {
    const auto folder = std::filesystem::temp_directory_path() / fmt::format("reshard_codecs_{}", ::getpid());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string plain = (folder / "x.npy").string();
    const std::string packed = (folder / "x.zarr").string();
    std::vector<std::int32_t> numbers(60 * 50);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i * i);
    std::ofstream(plain, std::ios::binary)
        << npy_header("<i4", false, {60, 50})
        << std::string(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
    ConvertOptions options;
    options.form = Form::zarr;
    options.chunks = {7, 11};
    options.shards = {14, 22};
    options.codec = "gzip:1,crc32c";
    if (!available(*parse_codecs(options.codec))) GTEST_SKIP() << "this build has no zlib";
    ASSERT_TRUE(convert(plain, packed, options));
    ConvertOptions loading;
    loading.rules = "target ranks=3\nx = [ranks, -]\n";
    loading.memory = Index{4} << 20;
    local::World world(3);
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < 3; ++rank)
        threads.emplace_back([&, rank] {
            const auto loaded = load(world.rank(rank), packed, loading);
            ASSERT_TRUE(loaded) << loaded.error().message;
            ASSERT_EQ(loaded->tiles.size(), 1U);
            const auto own = std::as_bytes(std::span(numbers).subspan(static_cast<std::size_t>(rank) * 1000, 1000));
            EXPECT_TRUE(std::ranges::equal(loaded->tiles[0].bytes, own)) << rank;
        });
    for (std::thread& thread : threads) thread.join();
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace reshard::files
