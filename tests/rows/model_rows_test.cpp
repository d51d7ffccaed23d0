// Rows of models with equal layers: the same rows as tensor by tensor.
#include "reshard/model/model_rows.hpp"

#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

namespace reshard::test {
namespace {

// The answer of the long way, as text: all rows of all ranks and all names, or the error.
std::string by_tensor(const std::string& rules, const std::string& list) {
    const auto tensors = parse_tensors(list);
    if (!tensors) return describe(tensors.error());
    const auto mapping = apply_rules(rules, *tensors);
    if (!mapping) return describe(mapping.error());
    const auto schedule = RowSchedule::make(mapping->moves);
    if (!schedule) return describe(schedule.error());
    std::string text = fmt::format("{} ranks\n", schedule->rank_count());
    for (const auto& [source, target] : mapping->ends)
        text += fmt::format("{} {}\n", mapping->sources[source].name, mapping->targets[target].name);
    for (const RowSide side : {RowSide::send, RowSide::receive})
        for (Index rank = 0; rank < schedule->rank_count(); ++rank)
            for (const Row& row : schedule->rows(rank, side))
                text += fmt::format("{} {} {} {} {} {} {} {}\n", row.array, row.peer, row.source_offset,
                                    row.target_offset, row.run_bytes, row.runs, row.source_stride, row.target_stride);
    return text;
}

std::string by_layer(const ModelRows& model) {
    std::string text = fmt::format("{} ranks\n", model.rank_count());
    for (std::size_t array = 0; array < model.array_count(); ++array) {
        const auto [source, target] = model.names(array);
        text += fmt::format("{} {}\n", source, target);
    }
    for (const RowSide side : {RowSide::send, RowSide::receive})
        for (Index rank = 0; rank < model.rank_count(); ++rank)
            for (const Row& row : model.rows(rank, side))
                text += fmt::format("{} {} {} {} {} {} {} {}\n", row.array, row.peer, row.source_offset,
                                    row.target_offset, row.run_bytes, row.runs, row.source_stride, row.target_stride);
    return text;
}

std::string by_layer(const std::string& rules, const std::string& list) {
    const auto model = ModelRows::make(rules, list);
    return model ? by_layer(*model) : describe(model.error());
}

constexpr const char* list =
    "embed bf16[40,8]\n"
    "l.{n:2}.q bf16[8,8]\n"
    "l.{n:2}.k bf16[4,8]\n"
    "l.{n:2}.up bf16[16,8]\n"
    "l.{n:2}.norm f32[8]\n"
    "l.{n:2:12}.q bf16[8,8]\n"
    "l.{n:2:12}.k bf16[4,8]\n"
    "l.{n:2:12}.e.{e:4}.up u8[8,4]\n"
    "l.{n:2:12}.e.{e:4}.scale f32[4,2]\n"
    "l.{n:2:12}.norm f32[8]\n"
    "head bf16[40,8]\n";

constexpr const char* rules =
    "source dp=2,tp=2\n"
    "l.{n}.e.{e:4}.* = [{e}@(dp,tp), -, -]\n"
    "*.norm = -\n"
    "otherwise = [tp, -]\n"
    "target tp=2[4,5]\n"
    "*.qk = [tp, -] <- *.q + *.k\n"
    "*.w1 = [-, tp, -] <- *.e.{e:4}.up\n"
    "*.w1_scale = blocks 2 of *.w1 <- *.e.{e:4}.scale\n"
    "out.{n}.up = [-, tp] <- l.{n}.up\n"
    "otherwise = -\n";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

// The list with a line for each tensor.
std::string spelled(const std::string& patterns) {
    std::string text;
    const auto tensors = parse_tensors(patterns).value();
    for (const ListedTensor& tensor : tensors)
        text += fmt::format("{} {}[{}]\n", tensor.name, name(tensor.dtype), fmt::join(tensor.shape, ","));
    return text;
}

TEST(ModelRows, PatternsAreLayersInOrder) {
    const auto tensors =
        parse_tensors("a.{n:2}.x.{e:2}.p u8[2] # both\na.{n:2}.q f32[]\nb u8[1]\nc{m:5:7} u8[3]\n").value();
    std::string names;
    for (const ListedTensor& tensor : tensors) names += tensor.name + ' ';
    EXPECT_EQ(names, "a.0.x.0.p a.0.x.1.p a.0.q a.1.x.0.p a.1.x.1.p a.1.q b c5 c6 ");
    EXPECT_EQ(tensors.back().shape, std::vector<Index>{3});
    const auto fault = [](const char* text) { return parse_tensors(text).error().message; };
    EXPECT_EQ(fault("a.{n:2} u8[1]\na.1 u8[1]\n"), "'a.1' is listed twice");
    EXPECT_EQ(fault("a.{n} u8[1]\n"), "line 1 of the list: expected a number as {name:count} or {name:from:to}");
    EXPECT_EQ(fault("b u8[1]\na.{n:3:3} u8[1]\n"), "line 2 of the list: at least one number");
    EXPECT_EQ(fault("a.{n:9999999} u8[1]\n"), "line 1 of the list: more than 1048576 numbers");
    EXPECT_EQ(fault("a.{n:9999}.{m:9999} u8[1]\n"), "more than 1048576 tensors");
}

TEST(ModelRows, AreTheRowsOfAllTensors) {
    const std::string wanted = by_tensor(rules, list);
    ASSERT_GT(wanted.size(), 10'000U);
    for (const std::string& text : {std::string(list), spelled(list)}) {
        EXPECT_EQ(by_tensor(rules, text), wanted);
        const ModelRows model = ModelRows::make(rules, text).value();
        EXPECT_EQ(by_layer(model), wanted);
        // A dense layer, a layer of experts, and two tensors. Experts are told apart by the rules.
        EXPECT_EQ(model.understood_count(), 4U + 11U + 2U);
        EXPECT_EQ(model.array_count(), 2U * 4U + 10U * 11U + 2U);
    }
}

// Rules that look at a number, or that fail for some layer, get the answer of the long way.
TEST(ModelRows, LookAtNumbersAsRulesDo) {
    const std::string explicit_list = spelled(list);
    const std::pair<const char*, const char*> changes[] = {
        {"otherwise = [tp, -]", "l.3.q = [-, tp]\notherwise = [tp, -]"},
        {"otherwise = [tp, -]", "l.1* = [-, tp]\notherwise = [tp, -]"},
        {"*.norm = -", "l.{k:12}.norm = [tp]"},
        {"*.norm = -", "l.{k:12}.norm = [{k}@tp, -]"},
        {"*.norm = -", "l.{k:11}.norm = -"},
        {"*.norm = -", "l.{k:2}.norm = [tp]\nl.{k:2:12}.norm = -"},
        {"*.norm = -", "l.{k:1:12}.norm = -"},
        {"otherwise = -", "norms = - <- l.{k:12}.norm\notherwise = -"},
        {"otherwise = -", "drop l.7.norm\notherwise = -"},
        {"otherwise = -", "drop *.norm\notherwise = -"},
        {"out.{n}.up", "out.{n}.w1"},
        {"out.{n}.up = [-, tp] <- l.{n}.up", "l.{n}1.q = [-, tp] <- l.{n}.up"},
        {"out.{n}.up = [-, tp] <- l.{n}.up", "embed{n} = [-, tp] <- l.{n}.up\nembed0 = - <- head"},
        {"*.qk = [tp, -] <- *.q + *.k", "l.{a}{b}.qk = [tp, -] <- l.{a}{b}.q + l.{a}{b}.k"},
        {"*.qk = [tp, -] <- *.q + *.k", "**.qk = [tp, -] <- **.q + **.k"},
        {"*.qk = [tp, -]", "*.qk = [tp heads of 4, -]"},
        {"*.qk = [tp, -]", "*.qk = [tp heads of 3, -]"},
        {"*.norm = -", "l.{k:12}.norm = [{k}@tp/5, -]"},
        {"*.norm = -", "l.{k:12}.norm = [{k}@tp[7,5], -]"},
        {"*.norm = -", "*.norm = [last@tp, -]"},
        {"*.w1_scale = blocks 2", "*.w1_scale = blocks 3"},
        {"l.{n}.e.{e:4}.*", "l.{n}.e.{e:3}.*"},
        {"l.{n}.e.{e:4}.*", "*.{e:12}.*.{d}.*"},
        {"source dp=2,tp=2", "source dp=2"},
    };
    int right = 0;  // the others are errors
    for (const auto& [what, with] : changes) {
        const std::string changed = replaced(rules, what, with);
        ASSERT_NE(changed, rules) << what;
        for (const std::string& text : {std::string(list), explicit_list})
            EXPECT_EQ(by_layer(changed, text), by_tensor(changed, text)) << with;
        right += by_tensor(changed, list).size() > 10'000 ? 1 : 0;
    }
    EXPECT_GT(right, 6);
}

TEST(ModelRows, FoldAnyOrderOfLayers) {
    std::mt19937_64 random(7);
    std::vector<std::string> wholes;
    for (int i = 0; i < 40; ++i) {
        std::vector<int> layers(12);
        for (int n = 0; n < 12; ++n) layers[static_cast<std::size_t>(n)] = n;
        if (i > 0) std::ranges::shuffle(layers, random);
        if (i % 4 == 3) layers.push_back(layers[5]);  // listed twice
        std::string text = "embed bf16[40,8]\n";
        for (const int n : layers) {
            text += fmt::format("l.{}.q bf16[8,8]\nl.{}.k bf16[4,8]\n", n, n);
            if (n < 2) text += fmt::format("l.{}.up bf16[16,8]\n", n);
            if (n == 6 && i % 2 == 1) text += "l.extra.0 u8[2,2]\n";
            for (int e = 0; e < 4 && n >= 2; ++e)
                text += fmt::format("l.{}.e.{}.up u8[8,4]\nl.{}.e.{}.scale f32[4,2]\n", n, e, n, e);
            text += fmt::format("l.{}.norm f32[8]\n", n);
        }
        ASSERT_EQ(by_layer(rules, text), by_tensor(rules, text)) << text;
    }
}

}  // namespace
}  // namespace reshard::test
