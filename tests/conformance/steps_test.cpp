// Each kind of step alone, on all ranks: even and uneven sizes, sub-axes, axes of size 1, arrays without dimensions,
// empty tiles, every element type.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/text.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::conformance {
namespace {

struct Row {
    const char* mesh;
    const char* source;
    StepKind kind;
    const char* target;
};

// A row runs on every harness with enough ranks. Ranks outside the mesh take part with nothing.
void run_rows(std::span<const Row> rows, const Manner& manner = {}) {
    std::size_t ran = 0;
    for (const Row& row : rows) {
        const auto mesh = parse_mesh(row.mesh);
        ASSERT_TRUE(mesh) << mesh.error().message;
        if (device_count(*mesh) > harness().ranks()) continue;
        SCOPED_TRACE(fmt::format("{}: {} {} {}", row.mesh, row.source, name(row.kind), row.target));
        const auto plan = plan_of(row.mesh, row.source, row.kind, row.target);
        ASSERT_TRUE(plan);
        expect_moves_everywhere({{*plan}}, manner);
        ++ran;
    }
    if (ran < rows.size()) fmt::print("{} of {} rows need more ranks\n", rows.size() - ran, rows.size());
    if (ran == 0) GTEST_SKIP() << "all rows need more ranks";
}

using enum StepKind;

TEST(Steps, Slice) {
    constexpr Row rows[] = {
        {"x=1", "f32[6,4]", slice, "f32[6@x,4]"},       {"x=2", "f32[6,4]", slice, "f32[6@x,4]"},
        {"x=2", "f32[6,4]", slice, "f32[6,4@x]"},       {"x=3,y=2", "f32[6,4]", slice, "f32[6@x,4@y]"},
        {"x=2,y=2", "f32[8@x]", slice, "f32[8@(x,y)]"}, {"x=4", "f32[7]", slice, "f32[7@x]"},
        {"x=8", "f32[3]", slice, "f32[3@x]"},           {"x=4", "f32[8]", slice, "f32[8@x:(2)2]"},
        {"x=2,y=3", "u8[5,7]", slice, "u8[5@x,7@y]"},   {"x=2,y=1,z=2", "f64[4,4]", slice, "f64[4@(z,y),4@x]"},
    };
    run_rows(rows);
}

TEST(Steps, AllGather) {
    constexpr Row rows[] = {
        {"x=1", "f32[6@x,4]", all_gather, "f32[6,4]"},
        {"x=2", "f32[6@x,4]", all_gather, "f32[6,4]"},
        {"x=3", "f32[4,6@x]", all_gather, "f32[4,6]"},
        {"x=2,y=3", "f32[6@x,6@y]", all_gather, "f32[6,6]"},
        {"x=2,y=2", "f32[8@(x,y)]", all_gather, "f32[8@x]"},
        {"x=2,y=2", "f32[8@(y,x)]", all_gather, "f32[8]"},
        {"x=4", "f32[7@x]", all_gather, "f32[7]"},
        {"x=4", "f32[8@x[2:3,4:1,6:0,8:2],3]", all_gather, "f32[8,3]"},
        {"x=2,y=2", "f32[8@x[5,3],4@y]", all_gather, "f32[8@x[5,3],4]"},
        {"x=4", "f32[9@x[1,5,0,3],2]", all_gather, "f32[9,2]"},
        {"x=4", "u8[9@x/2,2]", all_gather, "u8[9,2]"},
        {"x=8", "f32[3@x]", all_gather, "f32[3]"},
        {"x=6", "u16[5@x,3]", all_gather, "u16[5,3]"},
        {"x=2,y=4", "c128[4,8@y]", all_gather, "c128[4,8]"},
        {"x=4", "f32[8@(x:(1)2,x:(2)2)]", all_gather, "f32[8]"},
        {"x=8", "f32[16@x,3]", all_gather, "f32[16,3]"},
    };
    run_rows(rows);
}

TEST(Steps, AllToAll) {
    constexpr Row rows[] = {
        {"x=2", "f32[4@x,4]", all_to_all, "f32[4,4@x]"},
        {"x=4", "f32[8@x[2:3,4:1,6:0,8:2],4]", all_to_all, "f32[8,4@x]"},
        {"x=3", "f32[9@x[2,6,1],5]", all_to_all, "f32[9,5@x[3,0,2]]"},
        {"x=2", "i8[8@x/2,8]", all_to_all, "i8[8,8@x/1]"},
        {"x=3", "i8[3@x,6]", all_to_all, "i8[3,6@x]"},
        {"x=2,y=3", "f32[12@(x,y),12]", all_to_all, "f32[12@x,12@y]"},
        {"x=2,y=2", "f32[4@x,4@y,4]", all_to_all, "f32[4,4,4@(x,y)]"},
        {"x=2,y=2", "f32[4@(x,y),8]", all_to_all, "f32[4,8@(y,x)]"},
        {"x=2,y=4", "f64[8@(x,y),8,2]", all_to_all, "f64[8,8@(y),2@x]"},
        {"x=2,y=2,z=2", "f32[8@(x,y),8@z]", all_to_all, "f32[8@x,8@(z,y)]"},
        {"x=4,y=2", "u8[4@x:(1)2,16]", all_to_all, "u8[4,16@x:(1)2]"},
    };
    run_rows(rows);
}

TEST(Steps, Permute) {
    constexpr Row rows[] = {
        {"x=2,y=2", "f32[4@x,4@y]", permute, "f32[4@y,4@x]"},
        {"x=2,y=3", "f32[6@(x,y)]", permute, "f32[6@(y,x)]"},
        {"x=2,y=2", "f32[4@x]", permute, "f32[4@y]"},
        {"x=2,y=3", "f32[5@(x,y),2]", permute, "f32[5@(y,x),2]"},
        {"x=2,y=2,z=2", "f32[8@(x,y,z)]", permute, "f32[8@(z,y,x)]"},
    };
    run_rows(rows);
}

TEST(Steps, ReduceScatter) {
    constexpr Row rows[] = {
        {"x=2", "f32[6]{U:x}", reduce_scatter, "f32[6@x]"},
        {"x=2,y=2", "i32[4,4]{U:(x,y)}", reduce_scatter, "i32[4@x,4@y]"},
        {"x=2,y=2", "f32[6@x[4,2],4]{U:y}", reduce_scatter, "f32[6@x[4,2],4@y]"},
        {"x=4", "f32[8]{U:x}", reduce_scatter, "f32[8@x[2:3,4:1,6:0,8:2]]"},
        {"x=3", "f32[8]{U:x}", reduce_scatter, "f32[8@x/1]"},
        {"x=4", "f32[7,2]{U:x}", reduce_scatter, "f32[7@x,2]"},
        {"x=2,y=3", "bf16[6@x,6]{U:y}", reduce_scatter, "bf16[6@x,6@y]"},
        {"x=2,y=3", "f64[6@x,6]{U:y}", reduce_scatter, "f64[6@(x,y),6]"},
        {"x=8", "f16[3,8]{U:x}", reduce_scatter, "f16[3,8@x]"},
        {"x=2,y=4", "c64[8]{U:(x,y)}", reduce_scatter, "c64[8@y]{U:x}"},
        {"x=2,y=3", "i16[6@x,6]{max:y}", reduce_scatter, "i16[6@x,6@y]"},
        {"x=3", "f32[7]{min:x}", reduce_scatter, "f32[7@x]"},
        {"x=2,y=2", "f64[4,4]{prod:(x,y)}", reduce_scatter, "f64[4@x,4]{prod:y}"},
        {"x=2,y=3", "bf16[6]{avg:(x,y)}", reduce_scatter, "bf16[6@y]{avg:x}"},
    };
    run_rows(rows);
}

TEST(Steps, AllReduce) {
    constexpr Row rows[] = {
        {"x=2", "f32[6]{U:x}", all_reduce, "f32[6]"},
        {"x=2,y=3", "bf16[6@x]{U:y}", all_reduce, "bf16[6@x]"},
        {"x=2,y=2", "f32[6@x[4,2],3]{U:y}", all_reduce, "f32[6@x[4,2],3]"},
        {"x=2,y=2", "f32[9@x/2,3]{U:y}", all_reduce, "f32[9@x/2,3]"},
        {"x=2,y=2", "f32[6@x/1,3]{U:y}", all_reduce, "f32[6@x/1,3]"},
        {"x=2,y=2", "bool[4,4]{U:(x,y)}", all_reduce, "bool[4,4]"},
        {"x=2,y=2", "f16[4,4]{U:(x,y)}", all_reduce, "f16[4,4]{U:x}"},
        {"x=8", "c128[5,3]{U:x}", all_reduce, "c128[5,3]"},
        {"x=4", "f32[]{U:x}", all_reduce, "f32[]"},
        {"x=2,y=4", "u8[7@y]{U:x}", all_reduce, "u8[7@y]"},
        {"x=2,y=3", "f16[6@x]{max:y}", all_reduce, "f16[6@x]"},
        {"x=2,y=2", "i64[4,3]{min:(x,y)}", all_reduce, "i64[4,3]{min:x}"},
        {"x=5", "c64[5,3]{prod:x}", all_reduce, "c64[5,3]"},
        {"x=3,y=2", "f32[5]{avg:(x,y)}", all_reduce, "f32[5]{avg:y}"},
    };
    run_rows(rows);
}

TEST(Steps, ZeroFill) {
    constexpr Row rows[] = {
        {"x=2", "f32[6]", zero_fill, "f32[6]{U:x}"},
        {"x=2", "f32[6@x]", zero_fill, "f32[6]{U:x}"},
        {"x=2,y=3", "i64[6@x,2]", zero_fill, "i64[6@x,2]{U:y}"},
        {"x=2,y=3", "f32[6@(x,y)]", zero_fill, "f32[6@x]{U:y}"},
        {"x=4", "f32[]", zero_fill, "f32[]{U:x}"},
        {"x=2,y=3", "i8[6@(x,y)]", zero_fill, "i8[6@x]{max:y}"},
        {"x=2,y=3", "u16[6@x]", zero_fill, "u16[6]{min:(x,y)}"},
        {"x=2", "bool[6@x]", zero_fill, "bool[6]{prod:x}"},
        {"x=2,y=3", "f32[6@x]{avg:y}", zero_fill, "f32[6]{avg:(x,y)}"},
    };
    run_rows(rows);
}

TEST(Steps, Exchange) {
    constexpr Row rows[] = {
        {"x=1", "f32[5,3]", exchange, "f32[5@x,3]"},
        {"x=2", "f32[7@x,5]", exchange, "f32[7,5@x]"},
        {"x=3", "f32[7@x,5]", exchange, "f32[7,5@x]"},
        {"x=2,y=3", "f32[7@x,5@y]", exchange, "f32[7@y,5@x]"},
        {"x=2,y=2", "f32[6@x]", exchange, "f32[6@y]"},
        {"x=4", "f32[9@x]", exchange, "f32[9]"},
        {"x=8", "f32[13@x,3]", exchange, "f32[13,3@x]"},
        {"x=2,y=4", "f32[10@(x,y)]", exchange, "f32[10@(y,x)]"},
        {"x=2,y=3", "u8[11@(y,x),4]", exchange, "u8[11@x,4@y]"},
        {"x=4", "f32[3@x]", exchange, "f32[3@x:(2)2]"},
        {"x=4", "c128[]", exchange, "c128[]"},
        {"x=4", "f32[0@x,3]", exchange, "f32[0,3@x]"},
        {"x=2,y=2,z=2", "f64[5@x,6@(y,z)]", exchange, "f64[5@z,6@x]"},
        {"x=6", "f32[12@x]", exchange, "f32[12@x:(1)3]"},
        {"x=2,y=2", "f32[8@x]{U:y}", exchange, "f32[8]{U:y}"},
    };
    run_rows(rows, {2, false});
}

TEST(Steps, EveryElementTypeMoves) {
    const Index ranks = harness().ranks();
    std::vector<Item> items;
    for (int type = 0; type < std::ssize(tables::dtypes); ++type) {
        const std::string dtype(name(static_cast<DType>(type)));
        const std::string mesh = fmt::format("x={}", ranks);
        const auto plan = plan_of(mesh, dtype + "[9@x,10]", exchange, dtype + "[9,10@x]");
        ASSERT_TRUE(plan);
        items.push_back({*plan, Style::padded, Style::column_major});
    }
    expect_moves_everywhere(items);
}

// Every type with each of its reductions: scattered, reduced, and made unreduced.
void expect_reductions(DType dtype, std::string_view mesh, std::vector<Item>& items) {
    for (const Reduction reduction : all_reductions) {
        if (!can_reduce(dtype, reduction)) continue;
        const auto text = [&](std::string_view shape, bool unreduced) {
            const std::string_view kind = reduction == Reduction::sum ? "U" : name(reduction);
            return fmt::format("{}{}{}", name(dtype), shape, unreduced ? fmt::format("{{{}:x}}", kind) : "");
        };
        for (const Style style : {Style::row_major, Style::column_padded}) {
            const auto scattered = plan_of(mesh, text("[9,5]", true), reduce_scatter, text("[9@x,5]", false));
            const auto reduced = plan_of(mesh, text("[9,5]", true), all_reduce, text("[9,5]", false));
            const auto spread = plan_of(mesh, text("[9@x,5]", false), zero_fill, text("[9,5]", true));
            ASSERT_TRUE(scattered && reduced && spread);
            items.push_back({*scattered, style, style});
            items.push_back({*reduced, style, Style::row_major});
            items.push_back({*reduced, Style::row_major, style});
            items.push_back({*spread, Style::row_major, style});
        }
    }
}

TEST(Steps, EveryReducibleTypeCombines) {
    const Index ranks = harness().ranks();
    if (ranks == 1) GTEST_SKIP() << "one rank has nothing to combine";
    std::vector<Item> items;
    for (int type = 0; type < std::ssize(tables::dtypes); ++type) {
        expect_reductions(static_cast<DType>(type), fmt::format("x={}", ranks), items);
    }
    expect_moves_everywhere(items);
}

}  // namespace
}  // namespace reshard::conformance
