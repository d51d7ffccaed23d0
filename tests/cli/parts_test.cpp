// Parts of the tool that users see only when something is wrong. The verification finds a single wrong bit, small
// numbers are right, pieces and runs cover their boxes, and temporary names may exist already.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "files/formats/npy.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"
#include "src/schedule/box_cut.hpp"
#include "tool/data/exact_values.hpp"
#include "tool/data/verify.hpp"
#include "tool/output/new_file.hpp"
#include "tool/ranks/ranks.hpp"

namespace reshard::cli {
namespace {

using files::npy_header;
using files::parse_npy;

// Verifies the layout's tiles after `change` has modified rank 0's tiles.
Verified verified_after(const char* mesh, const char* text, const std::function<void(std::span<std::byte>)>& change) {
    const Layout layout = parse_layout(parse_mesh(mesh).value(), text).value();
    Verified result;
    auto ranks = local_ranks(device_count(layout)).value();
    ranks->each(false, [&](Rank& rank) {
        const auto values = generated(layout, summand_count(layout) > 1);
        Progress progress(false);
        const Tile held = storage_tile(layout, rank.index(), false);
        std::vector<std::byte> tile(static_cast<std::size_t>(count(held) * size_of(layout.dtype)));
        EXPECT_TRUE(fill(*values, layout, rank.index(), false, tile, progress));
        if (rank.index() == 0) change(tile);
        const Verified seen = verify(rank, *values, layout, false, tile, progress).value();
        if (rank.index() == 0) result = seen;
        return 0;
    });
    return result;
}

TEST(Verify, AcceptsWhatIsRight) {
    for (const char* text : {"f32[8@x,6]", "bool[7@(x,y)]", "c128[3,5@y]", "bf16[8]", "f32[]", "f32[0@x]"}) {
        EXPECT_EQ(verified_after("x=2,y=3", text, [](auto) {}).wrong, 0) << text;
    }
}

TEST(Verify, SeesOneBit) {
    for (const char* text : {"f32[8@x,6]", "bool[7@(x,y)]", "c128[3,5@y]", "bf16[8]", "f32[]"}) {
        const auto flip = [](std::span<std::byte> tile) { tile.back() ^= std::byte{1}; };
        EXPECT_EQ(verified_after("x=2,y=3", text, flip).wrong, 1) << text;
    }
}

TEST(Verify, SeesElementsThatChangedPlaces) {
    const auto swap = [](std::span<std::byte> tile) { std::swap_ranges(&tile[0], &tile[4], &tile[4]); };
    EXPECT_EQ(verified_after("x=2", "f32[8@x]", swap).wrong, 2);
}

TEST(Verify, AcceptsAndDoubtsSums) {
    for (const char* text : {"f32[8@x]{U:y}", "bf16[8@x]{U:y}", "i8[8]{U:(x,y)}", "c64[4]{U:x}", "f16[9]{U:y}"}) {
        const Verified right = verified_after("x=2,y=3", text, [](auto) {});
        EXPECT_EQ(right.wrong, 0) << text;
        const auto zero = [](std::span<std::byte> tile) { std::ranges::fill(tile, std::byte{0}); };
        const Verified wrong = verified_after("x=2,y=3", text, zero);
        EXPECT_GT(wrong.wrong, 0) << text;
        EXPECT_LT(wrong.wrong, right.of + 1) << text;
    }
}

TEST(NumberBits, AreExactUpToTheirLimit) {
    for (const DType dtype : {DType::boolean, DType::i8, DType::u16, DType::i64, DType::f16, DType::bf16, DType::f32,
                              DType::f64, DType::c64, DType::c128}) {
        std::vector<std::byte> element(static_cast<std::size_t>(size_of(dtype)));
        for (Index value = 0; value <= exact_max(dtype); ++value) {
            encode(dtype, value, element);
            ASSERT_EQ(decode(dtype, element), value) << name(dtype);
        }
    }
}

TEST(Pieces, CoverABoxInOrder) {
    const Box box = {{1, 4}, {2, 7}, {0, 6}};
    for (const Index most : {1, 4, 6, 7, 12, 29, 30, 31, 1000}) {
        Index next = 0;
        ASSERT_TRUE(for_each_piece(as_tile(box), most, [&](const Box& piece, Index first) -> Result<void> {
            EXPECT_EQ(first, next);
            EXPECT_LE(count(piece), most);
            next += count(piece);
            return {};
        }));
        EXPECT_EQ(next, count(box));
    }
}

TEST(Pieces, RunsAreLongAndInOrder) {
    Index runs = 0;
    const auto visit = [&](Index in_array, Index in_tile, Index elements) -> Result<void> {
        EXPECT_EQ(in_array, (1 + runs) * 30 + 12);
        EXPECT_EQ(in_tile, runs * 12);
        EXPECT_EQ(elements, 12);
        ++runs;
        return {};
    };
    ASSERT_TRUE(for_each_run({{0, 4}, {0, 5}, {0, 6}}, {{1, 4}, {2, 4}, {0, 6}}, visit));
    EXPECT_EQ(runs, 3);
}

TEST(Pieces, AScalarIsOneRun) {
    Index runs = 0;
    ASSERT_TRUE(for_each_run(Box{}, Box{}, [&](Index, Index, Index elements) -> Result<void> {
        EXPECT_EQ(elements, 1);
        ++runs;
        return {};
    }));
    EXPECT_EQ(runs, 1);
}

TEST(Npy, HeadersReadBack) {
    for (const std::vector<Index>& extents : {std::vector<Index>{}, {7}, {0, 3}, {1, 2, 3, 4, 5, 6, 7, 8}}) {
        const std::string text = npy_header("<f4", true, extents);
        EXPECT_EQ(text.size() % 64, 0U);
        Index bytes = 4;
        for (const Index extent : extents) bytes *= extent;
        const auto header = parse_npy(text, static_cast<Index>(text.size()) + bytes);
        ASSERT_TRUE(header) << header.error().message;
        EXPECT_EQ(header->shape, extents);
        EXPECT_TRUE(header->fortran_order);
    }
}

TEST(Npy, EveryByteOfAHeaderMayBeAnything) {
    const std::string good = npy_header("<f4", false, {4});
    for (std::size_t place = 0; place < good.size(); ++place) {
        for (int byte = 0; byte < 256; ++byte) {
            std::string text = good;
            text[place] = static_cast<char>(byte);
            const auto header = parse_npy(text, static_cast<Index>(text.size()) + 16);  // must not crash
            if (header) {
                EXPECT_GE(header->data_offset, 10);
            }
        }
    }
}

// A header is Python text. It has blanks and line ends, but no comments, unlike a notation.
TEST(Npy, WhatIsASpaceInANotationIsNoneInAHeader) {
    const std::string good = npy_header("<f4", false, {4});
    const auto with = [&](const std::string& words) {
        std::string text = good;
        const std::size_t blank = text.find("(4") + 2;
        text.insert(blank, words);
        text.erase(text.size() - 1 - words.size(), words.size());
        return parse_npy(text, static_cast<Index>(text.size()) + 16).has_value();
    };
    EXPECT_TRUE(with(" \n "));
    EXPECT_TRUE(with("L"));
    EXPECT_FALSE(with(" L"));
    EXPECT_FALSE(with("/**/"));
}

TEST(Table, WrapsWhatMayAndKeepsTheRest) {
    Table table({{"a"}, {"b", Table::Align::right}, {"c", Table::Align::left, true}});
    table.row({"x", "1", "some words that are too long for one line of this table"});
    const std::string text = table.text({.width = 40});
    for (const std::string_view line : {"a", "x", "some"}) EXPECT_NE(text.find(line), std::string::npos);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
        EXPECT_LE(end - begin, 40U);
        begin = end + 1;
    }
}

TEST(Numbers, TimesAsPeopleReadThem) {
    EXPECT_EQ(format_seconds(0), "0");
    EXPECT_EQ(format_seconds(3.1e-7), "310 ns");
    EXPECT_EQ(format_seconds(0.00135), "1.35 ms");
    EXPECT_EQ(format_seconds(0.9996e-3), "1.00 ms");
    EXPECT_EQ(format_seconds(12), "12.0 s");
    EXPECT_EQ(format_picoseconds(index_max), "too long");
    EXPECT_EQ(median({3, 1, 2}), 2);
    EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

// A drawn name may exist already: as a file, a link to a file, or a broken link.
TEST(Files, WhatIsThereIsNeitherFollowedNorOpened) {
    const std::filesystem::path folder = testing::TempDir() + "/reshard-files-" + std::to_string(::getpid());
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "victim") << "old";
    std::filesystem::create_symlink("victim", folder / "link");
    std::filesystem::create_symlink("nothing", folder / "dangling");
    for (const char* name : {"victim", "link", "dangling"}) {
        EXPECT_FALSE(File::create(folder / name, name)) << name;
    }
    for (const char* name : {"link", "dangling"}) EXPECT_FALSE(File::open_again(folder / name, name)) << name;
    EXPECT_FALSE(std::filesystem::exists(folder / "nothing"));
    EXPECT_EQ(std::filesystem::file_size(folder / "victim"), 3U);
    std::filesystem::remove_all(folder);
}

TEST(Files, TemporaryNamesAreDrawn) {
    std::set<std::string> names;
    for (int i = 0; i < 1000; ++i) names.insert(temporary_name("there"));
    EXPECT_EQ(names.size(), 1000U);
    EXPECT_EQ(names.begin()->size(), std::string("there/reshard-0123456789abcdef.partial").size());
}

TEST(Files, NamesOfTilesAndOfRows) {
    for (const char* name : {"rank0.json", "rank12.source.npy", "rank999.target.npy"})
        EXPECT_TRUE(belongs(Contents::tiles, name) && !belongs(Contents::rows, name)) << name;
    for (const char* name : {"rank0.rows.npy", "rank999.rows.npy", "arrays.tsv"})
        EXPECT_TRUE(belongs(Contents::rows, name) && !belongs(Contents::tiles, name)) << name;
    for (const char* name : {"", "rank", "rank.json", "rank0", "rank0.", "rank0.npy", "rank0.json~", "xrank0.json",
                             "rank0x.json", "rank-1.json", "Rank0.json", "rank0.source.npy.partial"})
        EXPECT_FALSE(belongs(Contents::tiles, name) || belongs(Contents::rows, name)) << name;
}

}  // namespace
}  // namespace reshard::cli
