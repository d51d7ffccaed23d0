#include "reshard/notations/hlo.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "unit/text/notations.hpp"

namespace reshard {
namespace {

std::string written(Notation notation, const char* text, const Mesh& on = mesh) {
    const auto layout = parse_layout(on, text);
    if (!layout) return describe(layout.error());
    const auto made = format(notation, *layout);
    return made ? *made : made.error().message;
}

TEST(NotationUnit, NamesAreReadAsTheyArePrinted) {
    for (const Notation notation : all_notations) EXPECT_EQ(*parse_notation(name(notation)), notation);
    EXPECT_EQ(*parse_notation("shardy"), Notation::sdy);
    EXPECT_EQ(*parse_notation("placements"), Notation::dtensor);
    EXPECT_FALSE(parse_notation("latin").has_value());
}

TEST(NotationUnit, PartitionSpecs) {
    EXPECT_EQ(own(Notation::spec, "P('x', ('y',))"), "x=2,y=4 f32[8@x,16@y]");
    EXPECT_EQ(own(Notation::jax, "PartitionSpec(None, (\"y\", 'x'))"), "x=2,y=4 f32[8,16@(y,x)]");
    EXPECT_EQ(own(Notation::spec, "P('x', unreduced={'y'})"), "x=2,y=4 f32[8@x,16]{U:y}");
    EXPECT_EQ(own(Notation::jax, "f32[8@x]{max:y}"), "x=2,y=4 f32[8@x]{max:y}");
    EXPECT_EQ(written(Notation::spec, "f32[8@(y,x),16]"), "P(('y', 'x'), None)");
    EXPECT_EQ(written(Notation::spec, "f32[8]{max:y}"),
              "a PartitionSpec cannot say a max: its unreduced axes are sums");
    EXPECT_EQ(written(Notation::spec, "f32[8@y:(2)2]"), "a PartitionSpec cannot say a part of an axis, y:(2)2");
    expect_caret(Notation::spec, "P('x', 'x')", 7, "twice");
    expect_caret(Notation::spec, "P('x', 'z')", 7, "no axis z");
    expect_caret(Notation::spec, "P(P.UNCONSTRAINED)", 2, "unconstrained");
    expect_caret(Notation::spec, "P('x', UNCONSTRAINED)", 7, "left to the compiler");
    expect_caret(Notation::spec, "P('x', jax.sharding.PartitionSpec.UNCONSTRAINED)", 7, "unconstrained");
    expect_caret(Notation::spec, "P('x', P.None)", 7, "expected None, an axis or a tuple");
    expect_caret(Notation::spec, "P(x)", 2, "expected");
    expect_caret(Notation::spec, "P('x'", 5, "')'");
}

TEST(NotationUnit, Shardy) {
    EXPECT_EQ(own(Notation::sdy, "#sdy.sharding<@mesh, [{\"x\"}, {\"y\":(2)2, ?}p1], replicated={\"y\":(1)2}>"),
              "x=2,y=4 f32[8@x,16@y:(2)2]");
    EXPECT_EQ(
        own(Notation::sdy, "<mesh<[\"a\"=2, \"b\"=2], device_ids=[3, 2, 1, 0]>, [{}, {?}], unreduced=max{\"a\"}>"),
        "a=2,b=2[3,2,1,0] f32[8,16]{max:a}");
    EXPECT_EQ(written(Notation::sdy, "f32[8@y:(1)2,16]{min:x}"),
              "#sdy.sharding<mesh<[\"x\"=2, \"y\"=4]>, [{\"y\":(1)2}, {}], unreduced=min{\"x\"}>");
    EXPECT_EQ(written(Notation::sdy, "f32[8]{prod:x}"), "sdy cannot say a prod: it has sum, max and min");
    EXPECT_EQ(format(*parse_mesh(Notation::sdy, "sdy.mesh @m = <[\"x\"=2], device_ids=[1,0]>")), "x=2[1,0]");
    // The list of an operation's results, with a single result.
    EXPECT_EQ(own(Notation::sdy, "#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {?}]>]>"), "x=2,y=4 f32[8@x,16]");
    EXPECT_EQ(own(Notation::sdy, "#sdy.sharding_per_value<[<mesh<[\"a\"=2]>, [{}, {\"a\"}]>]>"), "a=2 f32[8,16@a]");
    expect_caret(Notation::sdy, "#sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>]>", 44,
                 "of several values");
    expect_caret(Notation::sdy, "#sdy.sharding_per_value<[]>", 25, "of no value");
    expect_caret(Notation::sdy, "#sdy.sharding_per_value<[<@mesh, [{}, {}]>>", 42, "expected");
    expect_caret(Notation::sdy, "#sdy.sharding_per_values<[]>", 1, "expected #sdy.sharding");
    expect_caret(Notation::sdy, "<@mesh, [{\"x\"}, {\"x\"}]>", 17, "twice");
    expect_caret(Notation::sdy, "<@mesh, [{\"x\"}]>", 8, "1 dimensions, the array 2");
    expect_caret(Notation::sdy, "<@mesh, [{\"y\":(1)2, \"y\":(2)2}, {}]>", 20, "write \"y\":(1)4");
    expect_caret(Notation::sdy, "<mesh<[\"x\"=2], device_ids=[0, 1]>, [{}, {}]>", 27, "in order");
    expect_caret(Notation::sdy, "<@mesh, [{}, {}], open={}>", 18, "expected replicated");
    expect_caret(Notation::sdy, "<@mesh, [{\"y\":(3)2}, {}]>", 10, "");
}

TEST(NotationUnit, HloShardings) {
    EXPECT_EQ(own(Notation::hlo, "{devices=[2,4]<=[8]}"), "x=2,y=4 f32[8@x,16@y]");
    EXPECT_EQ(own(Notation::hlo, "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"), "x=2,y=4 f32[8@y,16]");
    EXPECT_EQ(own(Notation::hlo, "{devices=[1,1,2,4]<=[8] last_tile_dims={replicated, unreduced}}"),
              "x=2,y=4 f32[8,16]{U:y}");
    EXPECT_EQ(own(Notation::hlo, "{replicated}"), "x=2,y=4 f32[8,16]");
    EXPECT_EQ(own(Notation::hlo, "{maximal device=3}"), "[3] f32[8,16]");
    EXPECT_EQ(own(Notation::hlo, "{devices=[2,4]7,6,5,4,3,2,1,0 /* back */ metadata={op_name=\"a{b}\"}}"),
              "x=2,y=4[7,6,5,4,3,2,1,0] f32[8@x,16@y]");
    EXPECT_EQ(own(Notation::hlo, "{mesh['a'=2,'b'=4], [{'b':(1)2}, {'a', ?}], unreduced=max{'b':(2)2}}"),
              "a=2,b=4 f32[8@b:(1)2,16@a]{max:b:(2)2}");
    EXPECT_EQ(own(Notation::hlo, "{mesh[a=2,b=4], device_ids=([4,2]T(1,0)), [{a}, {}]}"),
              "a=2,b=4[0,2,4,6,1,3,5,7] f32[8@a,16]");
    // 2 x 3 transposed is cut into 3 x 2 inside an axis: only a list of devices can say this.
    EXPECT_EQ(own(Notation::hlo, "{devices=[2,3]<=[2,3]T(1,0)}", {std::nullopt, DType::f32, {6, 6}}),
              "x=2,y=3[0,3,1,4,2,5] f32[6@x,6@y]");
    EXPECT_EQ(written(Notation::hlo, "f32[8@y,16]"), "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
    EXPECT_EQ(written(Notation::hlo, "f32[8@x,16@y:(1)2]{U:y:(2)2}"),
              "{devices=[2,2,2]<=[8] last_tile_dims={unreduced}}");
    EXPECT_EQ(written(Notation::hlo, "f32[8,16]"), "{replicated}");
    EXPECT_EQ(written(Notation::hlo, "f32[8]{max:x}"),
              "an HloSharding cannot say a max: its unreduced devices hold sums");
}

TEST(NotationUnit, AReductionOverNothingIsNone) {
    const auto read = parse_hlo("{mesh['x'=1,'y'=2], [{'y'}], unreduced=max{'x'}}");
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(parse_hlo(format(*read)), *read);
}

TEST(NotationUnit, WhatXlaForgetsToCheck) {
    expect_caret(Notation::hlo, "{devices=[2,4]<=[4]}", 14, "8 tiles [2,4] on 4 devices");
    expect_caret(Notation::hlo, "{devices=[2,4]<=[2,4]T(0,0)}", 21, "no permutation");
    expect_caret(Notation::hlo, "{devices=[2,4]0,1,2,3,4,5,6,6}", 14, "twice");
    expect_caret(Notation::hlo, "{devices=[2,4]0,1,2,3,4,5,6,8}", 14, "device 8 of 8");
    expect_caret(Notation::hlo, "{devices=[2,2]<=[4] last_tile_dim_replicate last_tile_dims={replicated}}", 1,
                 "exclude");
    expect_caret(Notation::hlo, "{devices=[2,4]<=[8] devices=[2,4]<=[8]}", 20, "twice");
    expect_caret(Notation::hlo, "{devices=[2]<=[2]}", 0, "1 dimensions, the array 2");
    expect_caret(Notation::hlo, "{devices=[4,4]<=[16]}", 0, "over 16 devices, there are 8");
    expect_caret(Notation::hlo, "{manual}", 0, "manual");
    expect_caret(Notation::hlo, "{{replicated}, {replicated}}", 0, "several arrays");
    expect_caret(Notation::hlo, "{devices=[2,4]<=[2,4]}", 21, "T(");
}

TEST(NotationUnit, TuplesAndSubgroupsReadBack) {
    for (const char* text : {"{{replicated}, {maximal device=1}}", "{}", "{manual}", "{unknown}",
                             "{devices=[1,1,2,2]<=[4] last_tile_dims={replicated, manual}}",
                             "{devices=[2,4]<=[4,2]T(1,0) last_tile_dims={manual}}"}) {
        const auto read = parse_hlo(text);
        ASSERT_TRUE(read.has_value()) << describe(read.error());
        EXPECT_EQ(format(*read), text);
    }
}

TEST(NotationUnit, Placements) {
    EXPECT_EQ(own(Notation::dtensor, "(Shard(dim=0), Replicate())"), "x=2,y=4 f32[8@x,16]");
    EXPECT_EQ(own(Notation::dtensor, "[S(1), S(1)]"), "x=2,y=4 f32[8,16@(x,y)]");
    EXPECT_EQ(own(Notation::dtensor, "S(-1)[1], S(1)[0]"), "x=2,y=4 f32[8,16@(y,x)]");
    EXPECT_EQ(own(Notation::dtensor, "(_StridedShard(dim=0, sf=4), Shard(dim=0))"), "x=2,y=4 f32[8@(y,x),16]");
    EXPECT_EQ(own(Notation::dtensor, "P(avg), P(avg)"), "x=2,y=4 f32[8,16]{avg:(x,y)}");
    EXPECT_EQ(own(Notation::dtensor, "Partial(), R"), "x=2,y=4 f32[8,16]{U:x}");
    EXPECT_EQ(own(Notation::dtensor, "(Partial(reduce_op=avg), Partial(reduce_op='sum'))"),
              "x=2,y=4 f32[8,16]{avg/2:(x,y)}");
    EXPECT_EQ(written(Notation::dtensor, "f32[8@(y,x),16]"), "(_StridedShard(dim=0, sf=4), Shard(dim=0))");
    EXPECT_EQ(written(Notation::dtensor, "f32[8,16]{prod:y}"), "(Replicate(), Partial(product))");
    EXPECT_EQ(written(Notation::dtensor, "f32[8@y:(1)2]"), "DTensor cannot say a part of an axis, y:(1)2");
    EXPECT_EQ(written(Notation::dtensor, "f32[10@(x,y)]"),
              "DTensor cannot say where a dimension is cut: torch.chunk, axis by axis, cuts elsewhere");
    // torch.chunk axis by axis: 5 rows on 2 x 2 are 2, 1, 1, 1.
    const NotationContext five{Mesh{{"a", 2}, {"b", 2}}, DType::f32, {5}};
    EXPECT_EQ(own(Notation::dtensor, "S(0), S(0)", five), "a=2,b=2 f32[5@(a,b)[balanced]]");
    // From right to left: axis b cuts before axis a.
    const NotationContext six{Mesh{{"a", 2}, {"b", 2}}, DType::f32, {6}};
    EXPECT_EQ(own(Notation::dtensor, "(_StridedShard(dim=0, sf=2), Shard(dim=0))", six),
              "a=2,b=2 f32[6@(b,a)[2,1,2,1]]");
    // A split that is not a product of later axes states no order: 2 parts of 3 rows, each in two.
    EXPECT_EQ(own(Notation::dtensor, "(_StridedShard(dim=0, sf=2), R)", six), "a=2,b=2 f32[6@a[2:0,3:1,5:0,6:1]]");
    expect_caret(Notation::dtensor, "S(2), R", 2, "2 dimensions");
    expect_caret(Notation::dtensor, "P(sum), P(max)", 8, "two ways");
    expect_caret(Notation::dtensor, "P(avg), P(min)", 8, "two ways");
    expect_caret(Notation::dtensor, "P(product), P(avg)", 12, "two ways");
    expect_caret(Notation::dtensor, "R", 0, "1 placements for a mesh of 2 axes");
    expect_caret(Notation::dtensor, "R, R, R", 6, "2 axes");
    expect_caret(Notation::dtensor, "R, Q", 3, "expected a placement");
}

// Both are a sum, and the averaged axes divide it.
// The placements of veScale and of PhysicsNeMo.
TEST(NotationUnit, ShardsOfAnySizeInPlacements) {
    const auto ragged = [](const char* dims, const char* mesh_text, const char* text) {
        NotationContext setting = *parse_array(dims);
        setting.mesh = parse_mesh(mesh_text).value();
        const auto layout = parse_layout(Notation::dtensor, setting, text);
        return layout ? format(*layout) : layout.error().message;
    };
    EXPECT_EQ(ragged("f32[10]", "a=4", "(RaggedShard(dims=(0,), local_units=(1, 2, 1, 1)),)"), "f32[10@a[2,4,2,2]]");
    EXPECT_EQ(ragged("f32[10,3]", "a=2,b=3", "RaggedShard((0,), (2, 0)), S(1)"), "f32[10@a/10,3@b]");
    EXPECT_EQ(ragged("f32[6,4,8]", "a=2", "(RaggedShard(dims=(0, 1), local_units=(1, 2)),)"), "f32[6@a[2,4],4,8]");
    EXPECT_EQ(ragged("f32[6,4,8]", "a=2", "(RaggedShard(dims=(0, 1), local_units=(1, 3)),)"), "f32[24@a[6,18],8]");
    EXPECT_EQ(ragged("f32[6,4,8]", "a=2,b=2", "[RaggedShard((0, 1), (1, 3)), Shard(2)]"), "f32[24@a[6,18],8@b]");
    EXPECT_EQ(ragged("f32[8,8]", "a=2", "(Shard(1),), sharding_shapes={0: ((8, 3), (8, 5))}"), "f32[8,8@a[3,5]]");
    EXPECT_EQ(ragged("f32[8,8]", "a=2", "S(0), sharding_shapes={0: [torch.Size([2, 8]), torch.Size([6, 8])]}"),
              "f32[8@a[2,6],8]");
    EXPECT_EQ(ragged("f32[10]", "a=2", "RaggedShard((0,), (1, 2))"), "3 units do not divide 10");
    EXPECT_EQ(ragged("f32[10]", "a=2", "RaggedShard((0,), (1, 2, 2))"), "not as many units as the axis has devices");
    EXPECT_EQ(ragged("f32[10]", "a=2", "RaggedShard((0,), (0, 0))"), "no rank has a unit");
    EXPECT_EQ(ragged("f32[6,4]", "a=2", "RaggedShard((1,), (1, 1))"), "the dimensions of a ragged shard are 0, 1, ...");
    EXPECT_EQ(
        ragged("f32[6,4]", "a=2,b=2", "RaggedShard((0, 1), (1, 1)), S(1)"),
        "a ragged shard flattens the tiles of the axes before it; no axis behind it and no second ragged shard cut "
        "the same dimensions");
    EXPECT_EQ(ragged("f32[8]", "a=2", "S(0), sharding_shapes={0: ((3,), (4,))}"),
              "the shapes add up to 7 in dimension 0, not 8");
    EXPECT_EQ(ragged("f32[8]", "a=2", "R, sharding_shapes={0: ((3,), (5,))}"), "axis 0 has shapes and is no Shard");
    EXPECT_EQ(ragged("f32[8]", "a=2", "S(0), sharding_shapes={0: ((8,),)}"),
              "shapes of 1 ranks for an axis of 2 devices");
    const auto said = [](const char* mesh_text, const char* text) {
        return *format(Notation::dtensor, *parse_layout(*parse_mesh(mesh_text), text));
    };
    EXPECT_EQ(said("a=4", "f32[10@a[2,4,2,2]]"), "(RaggedShard(dims=(0,), local_units=(1, 2, 1, 1)),)");
    EXPECT_EQ(said("a=2,b=2", "f32[10@b[4,6],3]"), "(Replicate(), RaggedShard(dims=(0,), local_units=(2, 3)))");
    EXPECT_EQ(said("a=2,b=2", "f32[4,8@b[3,5]]"), "(Replicate(), Shard(dim=1)), sharding_shapes={1: ((4, 3), (4, 5))}");
    EXPECT_EQ(said("a=2,b=2", "f32[5@b[1,4],8@a]"),
              "(Shard(dim=1), Shard(dim=0)), sharding_shapes={1: ((1, 4), (4, 4))}");
}

TEST(NotationUnit, PartialSumsGoWithPartialAverages) {
    EXPECT_EQ(own(Notation::dtensor, "P(sum), P(avg)"), "x=2,y=4 f32[8,16]{avg/4:(x,y)}");
    EXPECT_EQ(own(Notation::dtensor, "P(avg), P(sum)"), "x=2,y=4 f32[8,16]{avg/2:(x,y)}");
    EXPECT_EQ(own(Notation::jax, "f32[8,16]{avg/8:(x,y)}"), "x=2,y=4 f32[8,16]{avg:(x,y)}");
    EXPECT_EQ(own(Notation::jax, "f32[8,16]{avg/1:(x,y)}"), "x=2,y=4 f32[8,16]{U:(x,y)}");
    EXPECT_EQ(written(Notation::dtensor, "f32[8,16]{avg/4:(x,y)}"), "(Partial(sum), Partial(avg))");
    EXPECT_EQ(written(Notation::dtensor, "f32[8,16]{avg/2:(x,y)}"), "(Partial(avg), Partial(sum))");
    EXPECT_EQ(written(Notation::dtensor, "f32[8]{avg/2:y}"), "DTensor cannot say a sum over 2: no axes have so many");
    expect_caret(Notation::jax, "f32[8,16]{avg/3:(x,y)}", 13, "8 summands are not divided by 3");
    expect_caret(Notation::jax, "f32[8,16]{avg/0:(x,y)}", 13, "at least 1");
}

// Found by fuzzers: short texts that would fill the memory, or take minutes.
TEST(NotationUnit, FewWordsForTooMuchAreRefused) {
    EXPECT_EQ(parse_mesh("x=922337203685,y=2[2,2-847718380]").error().code, Code::unsupported);
    EXPECT_EQ(parse_layout(Mesh{{"x", 3}}, "f64[1044444440@x/86]").error().code, Code::unsupported);
    const NotationContext large{mesh, DType::f32, {Index{1} << 40}};
    EXPECT_EQ(parse_layout(Notation::dtensor, large, "SS(0,1000000), SS(0,1000000)").error().code, Code::unsupported);
}

// The largest number, alone and at the end of a range. A count up to it would never end.
TEST(NotationUnit, TheLargestDeviceNumberIsRefused) {
    for (const char* text : {"x=2[0,9223372036854775807]", "x=2[9223372036854775806-9223372036854775807]"})
        EXPECT_EQ(parse_mesh(text).error().code, Code::overflow) << text;
    const auto next = parse_mesh("x=2[0,9223372036854775806]");
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(format(*next), "x=2[0,9223372036854775806]");
    EXPECT_EQ(parse_mesh(Notation::sdy, "<[\"x\"=2], device_ids=[0,9223372036854775807]>").error().code,
              Code::overflow);
    EXPECT_EQ(parse_layout(Notation::hlo, {std::nullopt, DType::f32, {4}}, "{maximal device=9223372036854775807}")
                  .error()
                  .code,
              Code::overflow);
}

std::string listed(Index count, const std::function<std::string(Index)>& one) {
    std::string text;
    for (Index i = 0; i < count; ++i) text += (i > 0 ? "," : "") + one(i);
    return text;
}

// These texts are long but valid, and reading may take no more than linear time. The bound leaves room for a busy
// machine; 4,000 axes once took 11 seconds.
TEST(NotationUnit, LongTextsAreReadAtOnce) {
    const std::clock_t begin = std::clock();  // CPU time of this process: others may be busy
    const Mesh ones = parse_mesh(listed(4000, [](Index i) { return fmt::format("a{}=1", i); })).value();
    EXPECT_EQ(parse_mesh(listed(4000, [](Index i) { return fmt::format("a{}=1", i % 3999); })).error().code,
              Code::mesh);
    EXPECT_TRUE(parse_layout(ones, "f32[4@(" + listed(4000, [](Index i) { return fmt::format("a{}", i); }) + ")]"));
    const NotationContext setting{ones, DType::f32, {4}};
    EXPECT_TRUE(parse_layout(Notation::dtensor, setting, listed(4000, [](Index) { return "S(0)"; })));
    EXPECT_TRUE(parse_layout(Notation::dtensor, setting, listed(4000, [](Index) { return "P"; })));
    constexpr Index many = 700'000;
    const std::string devices = listed(many, [](Index i) { return std::to_string(many - 1 - i); });
    EXPECT_TRUE(parse_mesh(fmt::format("x={}[{}]", many, devices)));
    EXPECT_TRUE(parse_hlo(fmt::format("{{devices=[{}]{}}}", many, devices)));
    // Nested chunks of so many shards that a scan of all shards for each one would take too long.
    const NotationContext uneven{Mesh{{"x", 512}, {"y", 512}}, DType::f32, {Index{512} * 512 + 1}};
    const auto nested = parse_layout(Notation::dtensor, uneven, "S(0), S(0)");
    ASSERT_TRUE(nested.has_value());
    EXPECT_TRUE(parse_layout(uneven.mesh.value(), format(*nested)) == *nested);
    // Two pieces and a huge number of shards: the text must not list a share for each.
    const Mesh vast{{"x", Index{1} << 40}};
    const auto pieces = parse_layout(vast, "f32[8@x[1:0,8:1]]");
    ASSERT_TRUE(pieces.has_value());
    EXPECT_EQ(format(*pieces), "f32[8@x[1:0,8:1]]");
    EXPECT_EQ(tile_extent(pieces->dims[0]), 7);
    EXPECT_EQ(tile_extent_min(pieces->dims[0]), 0);
    EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

TEST(NotationUnit, MeshesAndArrays) {
    EXPECT_EQ(format(*parse_mesh(Notation::dtensor, "(4, 2)")), "d0=4,d1=2");
    EXPECT_EQ(format(*parse_mesh(Notation::hlo, "8")), "d0=8");
    EXPECT_EQ(format(*parse_mesh(Notation::jax, "x=2")), "x=2");
    EXPECT_FALSE(parse_mesh(Notation::dtensor, "(4, 0)").has_value());
    EXPECT_EQ(parse_array("bf16[8,4]")->shape, (std::vector<Index>{8, 4}));
    EXPECT_FALSE(parse_array("bf16[8@x]").has_value());
}

}  // namespace
}  // namespace reshard
