// A small model by rules: fused, stacked, split, renamed and in blocks. Carries out its rows and compares every byte
// with the byte that should have arrived.
#include <gtest/gtest.h>

#include <map>

#include "reshard/model/rules.hpp"
#include "rows/memory.hpp"

namespace reshard::test {
namespace {

constexpr const char* list =
    "q u16[8,6]\nk u16[4,6]\nv u16[4,6]\nnorm f32[6]\nhead u8[10,3]\nboth u8[2,4,3]\n"
    "e.0.gate u8[4,6]\ne.1.gate u8[4,6]\ne.2.gate u8[4,6]\ne.3.gate u8[4,6]\n"
    "e.0.up u8[4,6]\ne.1.up u8[4,6]\ne.2.up u8[4,6]\ne.3.up u8[4,6]\n"
    "e.0.gate_scale f32[2,3]\ne.1.gate_scale f32[2,3]\ne.2.gate_scale f32[2,3]\ne.3.gate_scale f32[2,3]\n"
    "e.0.up_scale f32[2,3]\ne.1.up_scale f32[2,3]\ne.2.up_scale f32[2,3]\ne.3.up_scale f32[2,3]\n";

constexpr const char* rules =
    "source dp=2,tp=2\n"
    "e.{n:4}.{which} = [{n}@(dp,tp), -, -]\n"
    "head = [tp[7,3], -]\n"
    "both = [-, tp, -]\n"
    "norm = -\n"
    "otherwise = [tp, -]\n"
    "target ep=2,tp=2[2,3,5,4]\n"
    "qkv = [tp, -] <- q + k + v\n"
    "e.w13 = [ep, tp, -] <- e.{n:4}.gate + e.{n:4}.up\n"
    "e.w13_scale = blocks 2 of e.w13 <- e.{n:4}.gate_scale + e.{n:4}.up_scale\n"
    "part.{i:2} = [-, tp] <- both[{i}, 0:3, :]\n"
    "rest = - <- both[:, 3, :]\n"
    "out.head = [(ep,tp), -] <- head\n"
    "otherwise = -\n";

struct Origin {
    std::string name;
    Index element = 0;
};

// The source of an element of a target tensor, computed by hand.
Origin origin_of(const std::string& target, Index element) {
    if (target == "norm") return {"norm", element};
    if (target == "out.head") return {"head", element};
    if (target == "qkv") {
        const Index row = element / 6;
        const std::string name = row < 8 ? "q" : row < 12 ? "k" : "v";
        return {name, element - (row < 8 ? 0 : row < 12 ? 8 : 12) * 6};
    }
    if (target == "rest") return {"both", element / 3 * 12 + 9 + element % 3};
    if (target.starts_with("part.")) return {"both", (target.back() - '0') * 12 + element};
    const bool scale = target == "e.w13_scale";
    const Index half = scale ? 6 : 24;  // elements of gate and of up
    const Index expert = element / (2 * half);
    const Index inner = element % (2 * half);
    return {fmt::format("e.{}.{}{}", expert, inner < half ? "gate" : "up", scale ? "_scale" : ""), inner % half};
}

std::byte value(const std::string& name, Index element, Index byte) {
    return value_of_byte(element + 1000 * static_cast<Index>(std::hash<std::string>()(name) % 1000), byte);
}

TEST(RowModel, EveryByteComesFromWhereTheRulesSay) {
    const auto tensors = parse_tensors(list);
    ASSERT_TRUE(tensors) << describe(tensors.error());
    const auto model = apply_rules(rules, *tensors);
    ASSERT_TRUE(model) << describe(model.error());
    ASSERT_EQ(model->targets.size(), 8U);
    const auto schedule = RowSchedule::make(model->moves);
    ASSERT_TRUE(schedule) << describe(schedule.error());
    constexpr Index ranks = 6;
    ASSERT_EQ(schedule->rank_count(), ranks);
    std::vector<Memory> sources, targets, expected;
    for (const ShardedTensor& tensor : model->sources)
        sources.push_back(tiles_of(*tensor.layout, ranks,
                                   [&](Index element, Index byte) { return value(tensor.name, element, byte); }));
    for (const ShardedTensor& tensor : model->targets) {
        expected.push_back(tiles_of(*tensor.layout, ranks, [&](Index element, Index byte) {
            const Origin origin = origin_of(tensor.name, element);
            return value(origin.name, origin.element, byte);
        }));
        targets.push_back(blank_of(expected.back()));
    }
    const auto sends = all_rows(*schedule, ranks, RowSide::send);
    EXPECT_EQ(mirror_fault(sends, all_rows(*schedule, ranks, RowSide::receive)), "");
    for (std::size_t rank = 0; rank < sends.size(); ++rank)
        for (const Row& row : sends[rank]) {
            const auto& [source, target] = model->ends[static_cast<std::size_t>(row.array)];
            const std::vector<std::byte>& from = sources[source][rank];
            std::vector<std::byte>& to = targets[target][static_cast<std::size_t>(row.peer)];
            for (Index i = 0; i < row.runs; ++i) {
                ASSERT_LE(row.source_offset + i * row.source_stride + row.run_bytes, std::ssize(from));
                ASSERT_LE(row.target_offset + i * row.target_stride + row.run_bytes, std::ssize(to));
                std::memcpy(to.data() + row.target_offset + i * row.target_stride,
                            from.data() + row.source_offset + i * row.source_stride,
                            static_cast<std::size_t>(row.run_bytes));
            }
        }
    for (std::size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(targets[i], expected[i]) << model->targets[i].name;
}

}  // namespace
}  // namespace reshard::test
