#include "reshard/layout.hpp"
#include "reshard/text.hpp"
#include "src/tables/dtypes.hpp"

#include <gtest/gtest.h>

namespace reshard {
namespace {

const Mesh mesh{{"x", 2}, {"y", 3}};

TEST(LayoutUnit, NamesMakeTheLayoutThatTheySay) {
    const auto layout = make_layout(mesh, DType::bf16, {12, 4, 5}, P{"x", {"y"}});
    ASSERT_TRUE(layout.has_value());
    EXPECT_EQ(shape(*layout), (std::vector<Index>{12, 4, 5}));
    EXPECT_EQ(layout->dims[0].atoms, (AtomList{{2, 3}}));
    EXPECT_EQ(layout->dims[2].atoms, AtomList{});
    EXPECT_EQ(as_box(tile(*layout, 4)), (Box{{6, 12}, {2, 4}, {0, 5}}));
    EXPECT_EQ(tile(*layout, 6), nothing(3));
    EXPECT_EQ(tile_elements(*layout), 6 * 2 * 5);
    EXPECT_EQ(tile_bytes(*layout), 2 * 60);
    EXPECT_EQ(global_bytes(*layout), 2 * 240);
    EXPECT_EQ(device_count(*layout), 6);
}

TEST(LayoutUnit, TheTileOfADevice) {
    const auto layout = *make_layout(mesh, DType::f32, {5, 4}, P{"y", "x"});
    EXPECT_EQ(tile_shape(layout, 4), (std::vector<Index>{2, 2}));
    EXPECT_EQ(tile_offset(layout, 4), (std::vector<Index>{2, 2}));
    EXPECT_EQ(tile_count(layout, 4), 4U);
    EXPECT_EQ(tile_shape(layout, 5), (std::vector<Index>{1, 2}));
    for (const Index outside : {6, 100}) {
        EXPECT_EQ(tile_count(layout, outside), 0U);
        EXPECT_EQ(tile_offset(layout, outside), (std::vector<Index>{0, 0}));
    }
    const auto scalar = *make_layout(mesh, DType::f32, {}, {});
    EXPECT_EQ(tile_shape(scalar, 1), std::vector<Index>{});
    EXPECT_EQ(tile_offset(scalar, 1), std::vector<Index>{});
    EXPECT_EQ(tile_offset(scalar, 6), std::vector<Index>{});
    EXPECT_EQ(tile_count(scalar, 1), 1U);
    EXPECT_EQ(tile_count(scalar, 6), 0U);
    const auto cyclic = *parse_layout(mesh, "f32[12@x/2,1]");
    EXPECT_EQ(tile_offset(cyclic, 3), (std::vector<Index>{2, 0}));
    EXPECT_EQ(tile_shape(cyclic, 3), (std::vector<Index>{6, 1}));
}

// A view like std::mdspan.
struct View {
    std::size_t strides[2];
    [[nodiscard]] static constexpr std::size_t rank() { return 2; }
    [[nodiscard]] std::size_t stride(std::size_t k) const { return strides[k]; }
};

TEST(LayoutUnit, TheStorageOfAView) { EXPECT_EQ(storage_of(View{{1, 7}}), (Storage{0, {1, 7}})); }

TEST(LayoutUnit, TrailingTilesAreShortOrEmpty) {
    const Dim dim{5, {{4, 1}}};
    EXPECT_EQ(tile_extent(dim), 2);
    EXPECT_FALSE(divides(dim));
    const std::vector<Side> wanted{{{{0, 2}}}, {{{2, 4}}}, {{{4, 5}}}, {}};
    for (Index shard = 0; shard < 4; ++shard) EXPECT_EQ(side(dim, shard), wanted[static_cast<std::size_t>(shard)]);
    EXPECT_EQ(sides(dim), wanted);
    EXPECT_EQ(tile_extent_min(dim), 0);
}

TEST(LayoutUnit, BadNamesAreRefusedWithTheirCode) {
    const auto code = [](const Result<Layout>& result) {
        return result ? "accepted" : std::string(name(result.error().code));
    };
    EXPECT_EQ(code(make_layout(mesh, DType::f32, {4}, P{"q"})), "layout");
    EXPECT_EQ(code(make_layout(mesh, DType::f32, {4, 4}, P{"x", "x"})), "layout");
    EXPECT_EQ(code(make_layout(mesh, DType::f32, {4}, P{"x"}, {"x"})), "layout");
    EXPECT_EQ(code(make_layout(mesh, DType::f32, {4}, P{"x:(1"})), "syntax");
    EXPECT_EQ(code(make_layout(mesh, DType::f32, {4}, P{"x", "y"})), "layout");
    EXPECT_EQ(code(make_layout(mesh, DType::f32, {index_max, 2}, P{})), "overflow");
    EXPECT_EQ(code(make_layout(Mesh{{"x", 0}}, DType::f32, {4}, P{})), "mesh");
    EXPECT_EQ(code(make_layout(mesh, DType::f8_e4m3fn, {4}, P{}, {"x"})), "unsupported");
}

TEST(LayoutUnit, UnreducedAxesNumberTheSummands) {
    const auto layout = make_layout(mesh, DType::f32, {4}, P{}, {"y"});
    ASSERT_TRUE(layout.has_value());
    EXPECT_EQ(summand_count(*layout), 3);
    EXPECT_EQ(summand(*layout, 5), 2);
    EXPECT_EQ(used_atoms(*layout), (AtomList{{3, 1}}));
}

TEST(LayoutUnit, SameTilesLooksThroughNames) {
    const auto a = make_layout(mesh, DType::f32, {12}, P{{"x", "y"}});
    const auto b = make_layout(Mesh{{"all", 6}}, DType::f32, {12}, P{"all"});
    EXPECT_TRUE(equivalent(*a, *b));
    EXPECT_NE(*a, *b);
    EXPECT_FALSE(equivalent(*a, *make_layout(mesh, DType::f32, {12}, P{{"y", "x"}})));
}

TEST(LayoutUnit, SameArraySaysWhatDiffers) {
    const auto a = *make_layout(mesh, DType::f32, {12}, P{});
    EXPECT_TRUE(same_array(a, a).has_value());
    for (const Layout& other : {*make_layout(mesh, DType::f64, {12}, P{}), *make_layout(mesh, DType::f32, {13}, P{}),
                                *make_layout(mesh, DType::f32, {12, 1}, P{})}) {
        const auto same = same_array(a, other);
        ASSERT_FALSE(same.has_value());
        EXPECT_EQ(same.error().code, Code::mismatch);
    }
    // On other devices the array is still the same, in another layout.
    const auto elsewhere = *make_layout(Mesh{}, DType::f32, {12}, P{});
    EXPECT_TRUE(same_array(a, elsewhere).has_value());
    EXPECT_FALSE(equivalent(a, elsewhere));
}

TEST(LayoutUnit, BoxesIntersect) {
    EXPECT_EQ(intersect(Box{{0, 4}, {2, 6}}, Box{{2, 8}, {0, 3}}), (Box{{2, 4}, {2, 3}}));
    EXPECT_EQ(count(intersect(Box{{0, 2}}, Box{{5, 6}})), 0);
    EXPECT_EQ(count(Box{}), 1);
}

// Fewer shards than pieces, equally many, and more.
TEST(LayoutUnit, TilesOfPiecesAreAsLongAsTheirSides) {
    for (const Index shards : {2, 3, 7, 64, 1000})
        for (const Index extent : {1, 7, 64, 100, 999})
            for (const Index block : {1, 3, 10}) {
                const Dim dim = block_cyclic(extent, {{shards, 1}}, block);
                std::vector<Index> sizes;
                for (Index shard = 0; shard < shards; ++shard) sizes.push_back(side(dim, shard).size());
                EXPECT_EQ(tile_extent(dim), std::ranges::max(sizes)) << extent << " " << shards << " " << block;
                EXPECT_EQ(tile_extent_min(dim), std::ranges::min(sizes)) << extent << " " << shards << " " << block;
                const std::vector<Side> all = sides(dim);
                ASSERT_EQ(std::ssize(all), shards);
                for (Index shard = 0; shard < shards; ++shard)
                    EXPECT_EQ(all[static_cast<std::size_t>(shard)], side(dim, shard));
                Dim finer = dim;
                finer.pieces.clear();
                for (const Dim::Piece& piece : pieces_of(dim)) {
                    finer.pieces.push_back({piece.end, piece.shard});
                    finer.pieces.push_back({piece.end, piece.shard});  // an empty piece
                }
                make_canonical(finer);
                EXPECT_EQ(finer, dim);
                EXPECT_EQ(coarsened(dim, dim.atoms, 1), dim);
            }
}

TEST(LayoutUnit, PlacementsReadTheirAxesInMeshOrder) {
    const auto made = from_placements(mesh, DType::f32, {12, 4}, {Shard(0), Shard(0)});
    EXPECT_EQ(*made, *make_layout(mesh, DType::f32, {12, 4}, P{{"x", "y"}}));
    EXPECT_EQ(*from_placements(mesh, DType::f32, {12}, {Partial(), Replicate()}),
              *make_layout(mesh, DType::f32, {12}, P{}, {"x"}));
    EXPECT_FALSE(from_placements(mesh, DType::f32, {12}, {Shard(1), Replicate()}).has_value());
    EXPECT_FALSE(from_placements(mesh, DType::f32, {12}, {Shard(0)}).has_value());
    // Chunks that do not divide are listed as pieces, unless a single axis makes them all.
    const Mesh large{{"a", Index{1} << 20}, {"b", Index{1} << 20}};
    EXPECT_EQ(from_placements(large, DType::f32, {10}, {Shard(0), Shard(0)}).error().code, Code::unsupported);
    EXPECT_EQ(from_placements(large, DType::f32, {10}, {Shard(0), Replicate()}),
              make_layout(large, DType::f32, {10}, {"a"}));
    // 7 rows: x=2 first gives 4 and 3, then y=3 gives 2, 2, 0 and 1, 1, 1. One ceil-div would give 2, 2, 2, 1, 0, 0.
    EXPECT_EQ(format(*from_placements(mesh, DType::f32, {7}, {Shard(0), Shard(0)})), "f32[7@(x,y)[2,2,0,1,1,1]]");
}

TEST(LayoutUnit, StorageReachesAsFarAsItsLastElement) {
    const Tile box = as_tile({{4, 6}, {0, 3}});
    EXPECT_EQ(row_major(box).strides, (std::vector<Index>{3, 1}));
    EXPECT_EQ(column_major(box).strides, (std::vector<Index>{1, 2}));
    EXPECT_EQ(*extent_of(row_major(box), box), 6);
    EXPECT_EQ(*extent_of({10, {100, 7}}, box), 10 + 100 + 14 + 1);
    EXPECT_EQ(*extent_of({10, {100, 7}}, as_tile({{4, 4}, {0, 3}})), 0);
    EXPECT_EQ(extent_of({0, {1}}, box).error().code, Code::mismatch);
    EXPECT_EQ(extent_of({0, {-1, 1}}, box).error().code, Code::mismatch);
    EXPECT_EQ(extent_of({index_max, {1, 1}}, box).error().code, Code::overflow);
}

TEST(LayoutUnit, ElementTypesKnowTheirSize) {
    EXPECT_EQ(size_of(DType::f8_e5m2), 1);
    EXPECT_EQ(size_of(DType::c128), 16);
    EXPECT_FALSE(reducible(DType::f8_e4m3fn));
    EXPECT_TRUE(reducible(DType::bf16));
    EXPECT_EQ(*parse_dtype("float32"), DType::f32);
    EXPECT_FALSE(parse_dtype("f33").has_value());
}

TEST(LayoutUnit, EachNameBelongsToOneElementType) {
    using Row = tables::DTypeRow;
    for (const Row& row : tables::dtypes) {
        for (const auto column :
             {&Row::name, &Row::long_name, &Row::numpy, &Row::safetensors, &Row::zarr, &Row::stablehlo}) {
            if ((row.*column).empty()) continue;
            EXPECT_EQ(tables::find_dtype(column, row.*column), row.dtype) << row.*column;
        }
        EXPECT_EQ(*parse_dtype(row.name), row.dtype);
        EXPECT_EQ(*parse_dtype(row.long_name), row.dtype);
        for (const Row& other : tables::dtypes)
            EXPECT_FALSE(row.dtype != other.dtype && row.dlpack == other.dlpack && row.bytes == other.bytes)
                << row.name;
    }
    EXPECT_EQ(tables::find_dtype(&Row::zarr, ""), std::nullopt);
}

TEST(LayoutUnit, BalancedCuts) {
    const Mesh four{{"x", 4}};
    const auto at = [&](const char* text) { return parse_layout(four, text); };
    const Layout ten = at("f64[10@x[balanced]]").value();
    EXPECT_EQ(format(ten), "f64[10@x[balanced]]");
    EXPECT_TRUE(has_pieces(ten));
    EXPECT_FALSE(divides(ten));
    EXPECT_EQ(tile_offset(ten, 3), (std::vector<Index>{8}));
    EXPECT_EQ(tile_shape(ten, 3), (std::vector<Index>{2}));
    EXPECT_EQ(*at("f64[10@x[3,3,2,2]]"), ten);
    // The cut is not balanced if ceil-div cuts the same: sizes divide, one shard is short, or shards are empty.
    for (const char* text : {"f64[12@x[balanced]]", "f64[11@x[balanced]]", "f64[2@x[balanced]]", "f64[0@x[balanced]]"})
        EXPECT_EQ(format(*at(text)).rfind('['), 3U) << text;
    EXPECT_EQ(format(*at("f64[12@x[balanced]]")), "f64[12@x]");
    EXPECT_EQ(at("f64[10@x[balance]]").error().code, Code::syntax);
    EXPECT_EQ(at("f64[10@x[balanced,1]]").error().code, Code::syntax);
    EXPECT_EQ(why_uneven(ten), "dimension 0 of f64[10@x[balanced]] is balanced: 10 indices for 4 shards");
    Layout wrong = ten;
    wrong.dims[0].extent = 11;
    EXPECT_EQ(validate(wrong).error().code, Code::layout);
    wrong.dims[0] = Dim(10, wrong.dims[0].atoms, {{4, 0}, {10, 1}});
    wrong.dims[0].balanced = true;
    EXPECT_EQ(validate(wrong).error().message, "a balanced dimension has pieces");
}

// No list of the shards is ever made: 2^40 of them would not fit the memory.
TEST(LayoutUnit, BalancedCutsHaveAClosedForm) {
    const Index shards = Index{1} << 40;
    const Mesh wide{{"x", shards}};
    const Layout layout = parse_layout(wide, "u8[3298534883330@x[balanced]]").value();  // 3 * 2^40 + 2
    EXPECT_EQ(format(layout), "u8[3298534883330@x[balanced]]");
    EXPECT_EQ(tile_extent(layout.dims[0]), 4);
    EXPECT_EQ(tile_extent_min(layout.dims[0]), 3);
    EXPECT_EQ(tile(layout, 1), as_tile({{4, 8}}));
    EXPECT_EQ(tile(layout, shards - 1), as_tile({{3298534883327, 3298534883330}}));
}

}  // namespace
}  // namespace reshard
