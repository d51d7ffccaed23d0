// Texts that PyTorch, JAX and XLA print, and shards that are flattened.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/text/notations.hpp"

namespace reshard {
namespace {

// The elements of each device, by their places in the row-major array of 4 x 6: the tiles of axis t are flattened and
// dealt out in units.
TEST(PrintedUnit, FlattenedShards) {
    const Mesh grid{{"t", 2}, {"d", 3}};
    const auto held = [&](const std::vector<Index>& shape, const char* text, Index device) {
        std::vector<Index> places;
        const auto layout = parse_layout(Notation::dtensor, {grid, DType::f32, shape}, text);
        if (!layout) return places;
        const Tile held_here = tile(*layout, device);
        for (const Interval& run : held_here[0].intervals)
            for (Index place = run.begin; place < run.end; ++place) places.push_back(place);
        return places;
    };
    const std::vector<Index> shape = {4, 6};
    const char* const columns = "(Shard(1), RaggedShard((0, 1), (1, 3, 2)))";
    const std::vector<std::vector<Index>> of_columns = {{0, 1}, {2, 6, 7, 8, 12, 13},   {14, 18, 19, 20},
                                                        {3, 4}, {5, 9, 10, 11, 15, 16}, {17, 21, 22, 23}};
    const char* const rows = "(S(0), RaggedShard(dims=(0, 1), local_units=(5, 0, 1)))";
    const std::vector<std::vector<Index>> of_rows = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},           {}, {10, 11},
                                                     {12, 13, 14, 15, 16, 17, 18, 19, 20, 21}, {}, {22, 23}};
    for (Index device = 0; device < 6; ++device) {
        EXPECT_EQ(held(shape, columns, device), of_columns[static_cast<std::size_t>(device)]) << device;
        EXPECT_EQ(held(shape, rows, device), of_rows[static_cast<std::size_t>(device)]) << device;
    }
    const auto read = [&](std::vector<Index> extents, const char* text) {
        const auto layout = parse_layout(Notation::dtensor, {grid, DType::f32, std::move(extents)}, text);
        return layout ? format(*layout) : layout.error().message;
    };
    EXPECT_EQ(read(shape, columns), "f32[(4,6@t)@d[1,3,2]]");
    EXPECT_EQ(read(shape, rows), "f32[24@(t,d)[10,0,2,10,0,2]]");
    EXPECT_EQ(read({4, 6, 5}, "S(2), RaggedShard((0, 1), (1, 3, 2))"), "f32[24@d[4,12,8],5@t]");
    EXPECT_EQ(read({4, 6}, "S(1), RaggedShard((0, 1), (1, 4, 2))"), "7 units do not divide a tile of 12 elements");
    EXPECT_EQ(read({1 << 22, 6}, "S(1), RaggedShard((0, 1), (1, 1, 2))"),
              "the flattened tiles have more than 4194304 pieces");
    EXPECT_EQ(read({0, 6}, "S(1), RaggedShard((0, 1), (1, 1, 2))"), "f32[0@(t,d)]");
}

TEST(Printed, FlattenedTilesInOurNotationAndBack) {
    const Mesh grid{{"t", 2}, {"d", 3}};
    const auto written = [&](const char* text) {
        const auto layout = parse_layout(grid, text);
        if (!layout) return fmt::format("{} at {}", layout.error().message, layout.error().offset);
        const std::string back = format(*layout);
        const auto again = parse_layout(grid, back);
        EXPECT_TRUE(again && *again == *layout) << text << " is written as " << back;
        return back;
    };
    for (const char* const text :
         {"f32[(4,6@t)@d[1,3,2]]", "f32[(4,6@t)@d]", "f32[(4,6@t)@d[0,1,0],5]", "f32[8,(4,6@d)@t]"})
        EXPECT_EQ(written(text), text);
    // An extent that every device holds whole may be part of another one, and a simpler form is preferred.
    EXPECT_EQ(written("f32[(2,2,6@t,3)@d]"), "f32[(4,18@t)@d]");
    EXPECT_EQ(written("f32[(3,4@t/1)@d]"), "f32[(6,2@t)@d]");
    EXPECT_EQ(written("f32[(4@t,6)@d[1,3,2]]"), "f32[24@(t,d)[2,6,4,2,6,4]]");
    EXPECT_EQ(written("f32[(4,6)@d]"), "f32[24@d]");
    EXPECT_EQ(written("f32[(4,6@t)@d[1,3]]"), "2 units for 3 shards at 5");
    EXPECT_EQ(written("f32[(4,6@t)@d[1,4,2]]"), "7 units do not divide a tile of 12 elements at 5");
    EXPECT_EQ(written("f32[(4,6@t)@d[0,0,0]]"), "no shard has a unit at 5");
    EXPECT_EQ(written("f32[(4,6@t)]"), "expected '@' at 11");
    EXPECT_EQ(written("f32[((4,6@t)@d)]"), "expected the extent of a dimension, a number at 5");
    EXPECT_EQ(written("f32[(4,6@t)@t]"), "an axis, or parts of it that overlap, is used twice at 12");
    const auto said = [&](const char* text) {
        const auto placements = format(Notation::dtensor, *parse_layout(grid, text));
        return placements ? *placements : placements.error().message;
    };
    const std::string spec = "Spec((Shard(dim=1), RaggedShard(dims=(0, 1), local_units=(1, 3, 2))) on (4, 6))";
    EXPECT_EQ(said("f32[(4,6@t)@d[1,3,2]]"), spec);
    const auto back = parse_layout(Notation::dtensor, {grid, DType::f32, {4, 6}}, spec);
    ASSERT_TRUE(back);
    EXPECT_EQ(format(*back), "f32[(4,6@t)@d[1,3,2]]");
    EXPECT_EQ(said("f32[(4,6@d)@t]"),
              "DTensor cannot say where a dimension is cut: torch.chunk, axis by axis, cuts elsewhere");
}

// DTensorSpec prints itself so. The shape must be the array's.
TEST(PrintedUnit, PrintedSpecsOfTensors) {
    for (const char* text : {"Spec(S(0)R on (8, 16))", "Spec((Shard(dim=0), Replicate()) on torch.Size([8, 16]))",
                             "DTensorSpec(S(0), R on [8, 16])", "Spec(S(0)R on unknown shape)"})
        EXPECT_EQ(own(Notation::dtensor, text), "x=2,y=4 f32[8@x,16]");
    EXPECT_EQ(own(Notation::dtensor, "Spec(S(1)[1]S(1)[0] on (8, 16))"), "x=2,y=4 f32[8,16@(y,x)]");
    EXPECT_EQ(own(Notation::dtensor, "Spec(P(sum)_S(0, 2) on (8, 16))"), "x=2,y=4 f32[8@y/1,16]{U:x}");
    EXPECT_EQ(own(Notation::dtensor, "Spec(RS(1) on (8, 16))"), "x=2,y=4 f32[8,16@y]");
    EXPECT_EQ(own(Notation::dtensor, "Spec(RR on (8, 16))"), "x=2,y=4 f32[8,16]");
    EXPECT_EQ(own(Notation::dtensor, "Spec(RP(sum) on (8, 16))"), "x=2,y=4 f32[8,16]{U:y}");
    expect_caret(Notation::dtensor, "Spec(RQ on (8, 16))", 6, "expected a placement");
    expect_caret(Notation::dtensor, "RS(1)", 0, "expected a placement");
    expect_caret(Notation::dtensor, "Spec(S(0)R on (8, 8))", 14, "the array has (8, 16)");
    expect_caret(Notation::dtensor, "Spec(S(0)R on (8))", 14, "the array has 2");
    expect_caret(Notation::dtensor, "Spec(S(0)R)", 10, "expected 'on'");
    expect_caret(Notation::dtensor, "S(0)R", 4, "");
}

std::string printed(const char* text) {
    const auto read = parse_mesh(Notation::dtensor, text);
    return read ? format(*read) : describe(read.error());
}

TEST(PrintedUnit, PrintedMeshes) {
    // PyTorch to 2.7, 2.8, and later.
    EXPECT_EQ(printed("DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp'))"), "dp=2,tp=2");
    EXPECT_EQ(printed("DeviceMesh('cuda', [0, 2, 1, 3])"), "d0=4[0,2,1,3]");
    EXPECT_EQ(printed("DeviceMesh((dp=2, tp=4), device: 'cuda', stride: (4, 1))"), "dp=2,tp=4");
    EXPECT_EQ(printed("DeviceMesh((2, 4), 'cuda', stride=(1, 2))"), "d0=2,d1=4[0,2,4,6,1,3,5,7]");
    EXPECT_EQ(printed("DeviceMesh((dp=2), 'cpu', stride=(1,), Mesh: [5, 3])"), "dp=2[5,3]");
    EXPECT_EQ(printed("DeviceMesh('cuda', mesh=tensor([[0], [1]]), mesh_dim_names=None)"), "d0=2,d1=1");
    // JAX of several years.
    EXPECT_EQ(printed("Mesh('x': 2, 'y': 4)"), "x=2,y=4");
    EXPECT_EQ(printed("Mesh('x': 2, 'y': 4, axis_types=(Auto, Explicit))"), "x=2,y=4");
    EXPECT_EQ(printed("jax.sharding.Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'))"), "x=2,y=4");
    EXPECT_EQ(printed("Mesh(device_ids=array([[0, 1],\n       [3, 2]]), axis_names=('x', 'y'))"), "x=2,y=2[0,1,3,2]");
    EXPECT_EQ(printed("AbstractMesh('x': 2)"), "x=2");
    const auto wrong = [](const char* text, const char* words) {
        const auto read = parse_mesh(Notation::spec, text);
        ASSERT_FALSE(read.has_value()) << text;
        EXPECT_NE(read.error().message.find(words), std::string::npos) << describe(read.error());
    };
    wrong("DeviceMesh('cuda', [[0, 1], [2]])", "a list of 1 beside one of 2");
    wrong("DeviceMesh('cuda', [[0, 1], 2])", "not nested equally deep");
    wrong("DeviceMesh('cuda', [0, 1], mesh_dim_names=('a', 'b'))", "2 names for 1 axes");
    wrong("DeviceMesh((2, 2), 'cuda', Mesh: [0, 1])", "listed as 2, but the axes have the sizes 2 x 2");
    wrong("DeviceMesh((2, 2), 'cuda', stride=(1,))", "1 strides for 2 axes");
    wrong("DeviceMesh((2, 2), 'cuda', stride=(1, 1))", "device 1");
    wrong("DeviceMesh('cuda', [0, 0])", "device 0");
    wrong("Mesh('x': 2, 'x': 4)", "x");
    wrong("Mesh('x': 2", "')'");
    wrong("DeviceMesh(cuda)", "expected '=' or ':'");
    EXPECT_FALSE(parse_mesh(Notation::spec, "DeviceMesh('cuda', " + std::string(100, '[')).has_value());
}

TEST(PrintedUnit, PrintedShardings) {
    const NotationContext bare{std::nullopt, DType::f32, {8, 16}};
    const char* const named =
        "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=PartitionSpec('x', ('y',)), memory_kind=device)";
    EXPECT_EQ(own(Notation::spec, named, bare), "x=2,y=4 f32[8@x,16@y]");
    EXPECT_EQ(own(Notation::jax, named), "x=2,y=4 f32[8@x,16@y]");
    EXPECT_EQ(own(Notation::spec, "jax.sharding.NamedSharding(Mesh('a': 2), P(None, 'a'))", bare), "a=2 f32[8,16@a]");
    expect_caret(Notation::spec, "NamedSharding(mesh=Mesh('a': 2), spec=P('a'))", 19, "the given mesh is x=2,y=4");
    expect_caret(Notation::spec, "NamedSharding(mesh=m, spec=P('x'))", 19, "expected DeviceMesh(...) or Mesh(...)");
    expect_caret(Notation::spec, "NamedSharding(Mesh('x': 2, 'y': 4), 'x')", 36, "expected P(...)");
    for (const char* text : {"sharding={devices=[2,4]<=[8]}", "mhlo.sharding = \"{devices=[2,4]<=[8]}\""})
        EXPECT_EQ(own(Notation::hlo, text), "x=2,y=4 f32[8@x,16@y]");
    expect_caret(Notation::hlo, "sharding {replicated}", 9, "expected '='");
    EXPECT_EQ(parse_array("torch.bfloat16[8, 16]")->dtype, DType::bf16);
    EXPECT_EQ(parse_array("torch.bfloat16[8, 16]")->shape, (std::vector<Index>{8, 16}));
    EXPECT_FALSE(parse_array("torch.complex32[8]").has_value());
}

}  // namespace
}  // namespace reshard
