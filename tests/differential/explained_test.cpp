// 2,000 drawn questions of all kinds have the explanations that this file records, as one number over all of them.
// RESHARD_QUESTIONS=N prints N explanations instead. Compare the texts before and after a change of the planner.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard::test {
namespace {

constexpr std::uint64_t written_down = 0x1413201329da595cu;

/// A generator of our own: the standard distributions differ from library to library.
class Draw {
public:
    std::size_t below(std::size_t bound) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>(state_ >> 33) % bound;
    }
    bool one_in(std::size_t bound) { return below(bound) == 0; }
    template <class T>
    const T& from(const std::vector<T>& all) {
        return all[below(all.size())];
    }

private:
    std::uint64_t state_ = 20261125;
};

std::string cut_of(Draw& draw, Index extent, Index shards) {
    if (extent == 0 || !draw.one_in(6)) return "";
    if (draw.one_in(2)) return fmt::format("/{}", 1 + draw.below(static_cast<std::size_t>(extent)));
    std::string shares = fmt::format("{}", extent - (shards - 1));
    for (Index shard = 1; shard < shards; ++shard) shares += ",1";
    return extent < shards ? "" : "[" + shares + "]";
}

// Each axis, or a part of it, cuts a dimension, holds summands or replicates.
std::string draw_layout(Draw& draw, const Mesh& mesh, const std::vector<Index>& extents, const std::string& reduction) {
    std::vector<std::string> axes(extents.size());
    std::vector<Index> shards(extents.size(), 1);
    std::string summands;
    for (std::size_t turn = 0, first = draw.below(mesh.axes.size()); turn < mesh.axes.size(); ++turn) {
        const Axis& axis = mesh.axes[(first + turn) % mesh.axes.size()];
        const bool half = axis.size == 4 && draw.one_in(4);
        const std::string name = axis.name + (!half ? "" : draw.one_in(2) ? ":(1)2" : ":(2)2");
        const std::size_t place = draw.below(extents.size() + 1);
        if (place == extents.size()) {
            if (!reduction.empty() && draw.one_in(2)) summands += (summands.empty() ? "" : ",") + name;
            continue;
        }
        axes[place] += (axes[place].empty() ? "" : ",") + name;
        shards[place] *= half ? 2 : axis.size;
    }
    std::string text;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : ",", extents[i]);
        if (!axes[i].empty()) text += fmt::format("@({}){}", axes[i], cut_of(draw, extents[i], shards[i]));
    }
    return fmt::format("f32[{}]{}", text, summands.empty() ? "" : fmt::format("{{{}:({})}}", reduction, summands));
}

Options draw_options(Draw& draw, const Problem& problem) {
    Options options;
    options.explain = true;
    options.objective = static_cast<Objective>(draw.below(3));
    options.vocabulary = static_cast<Vocabulary>(draw.below(2));
    options.machine = *make_machine(draw.from<std::string>({"laptop", "dgx-h100:nodes=4", "ethernet:nodes=4,per_node=4",
                                                            "tpu-v5p:4x4x1", "mi300x", "p3.8xlarge:hosts=4"}));
    options.capabilities.one_exchange = draw.one_in(5);
    options.capabilities.steps_overlap = draw.one_in(4);
    if (draw.one_in(8)) options.disabled_rules.emplace_back(draw.from(rules()).name);
    if (draw.one_in(8)) options.disabled_rules.emplace_back(draw.from(rules()).name);
    const Index least = tile_bytes(problem.source) + tile_bytes(problem.target);
    if (draw.one_in(6))
        options.limits.memory.footprint_bytes_max = least + least * static_cast<Index>(draw.below(5)) / 4;
    if (draw.one_in(8)) options.limits.peak_bytes_max = least / 2 + least * static_cast<Index>(draw.below(3)) / 4;
    options.limits.memory.donate = draw.one_in(5);
    if (draw.one_in(8)) {
        Layout whole = problem.source;
        for (Dim& dim : whole.dims) dim = Dim(dim.extent);
        options.first_steps = {{StepKind::all_gather, whole}};
    }
    return options;
}

std::string text_of(const Judged<Plan>& judged) {
    return fmt::format("{} {}\n{}", format(judged.execution()), judged.verdict().footprint_bytes,
                       format(judged.plan()));
}

std::string text_of(const Result<Synthesis>& made) {
    if (!made) return fmt::format("error {}: {}\n", name(made.error().code), made.error().message);
    std::string text = fmt::format("{} {} ps, {}, optimal {}, complete {}, {}, {} states, {}", made->rule,
                                   made->picoseconds, made->verdict().peak_bytes, made->optimal, made->search_complete,
                                   name(made->stop_reason), made->states, text_of(*made));
    for (const Alternative& other : made->alternatives)
        text += fmt::format("- {} {} ps, {}; {}", other.rule, other.picoseconds, other.lost, text_of(other));
    for (const RuleReport& report : made->rules)
        text += fmt::format("  {} {} {}\n", report.rule, report.candidates, report.kept);
    return text;
}

/// One question and its answer as text.
std::string asked_and_answered(Draw& draw) {
    const Mesh mesh = draw.from<Mesh>({{{"x", 2}, {"y", 3}},
                                       {{"x", 4}, {"y", 2}, {"z", 2}},
                                       {{"x", 6}, {"y", 4}},
                                       {{"a", 2}, {"b", 2}, {"c", 2}, {"d", 2}},
                                       {{"node", 4}, {"gpu", 4}},
                                       {{"x", 2}, {"y", 5}}});
    std::vector<Index> source_extents = draw.from<std::vector<Index>>({{4608},
                                                                       {960, 96},
                                                                       {96, 960},
                                                                       {98304, 960},
                                                                       {6144, 64, 240},
                                                                       {64, 24, 48},
                                                                       {36, 10},
                                                                       {10, 36},
                                                                       {360},
                                                                       {7},
                                                                       {48, 5},
                                                                       {1, 12},
                                                                       {0, 4}});
    std::vector<Index> target_extents = source_extents;
    if (draw.one_in(6) && source_extents.size() == 2) target_extents = {source_extents[0] * source_extents[1]};
    const auto reduction = [&] {
        return draw.one_in(4) ? draw.from<std::string>({"U", "U", "max", "avg", "avg/2"}) : "";
    };
    Mesh other = mesh;
    if (draw.one_in(6)) {
        std::vector<Index> devices(static_cast<std::size_t>(device_count(mesh)));
        for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = static_cast<Index>((i * 7 + 3) % devices.size());
        if (draw.one_in(2))
            for (Index& device : devices) device += 3;
        other = Mesh(mesh.axes, std::move(devices));
    }
    const std::string from = draw_layout(draw, mesh, source_extents, reduction());
    const std::string to = draw_layout(draw, other, target_extents, reduction());
    const auto source = parse_layout(mesh, from);
    const auto target = parse_layout(other, to);
    std::string text = fmt::format("{} -> {} on {}, {}\n", from, to, format(mesh), format(other));
    if (!source || !target) return text + (source ? target : source).error().message + "\n";
    const Problem problem{*source, *target};
    return text + text_of(synthesize(problem, draw_options(draw, problem)));
}

TEST(Explained, QuestionsOfAllKindsHaveTheExplanationsWrittenDown) {
    const char* printed = std::getenv("RESHARD_QUESTIONS");
    const int count = printed == nullptr ? 2000 : std::atoi(printed);
    Draw draw;
    std::uint64_t sum = 0xcbf29ce484222325u;
    for (int question = 0; question < count; ++question) {
        const std::string text = asked_and_answered(draw);
        if (printed != nullptr) std::cout << text << "\n";
        for (const char letter : text) sum = (sum ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
    }
    if (printed != nullptr) return;
    EXPECT_EQ(sum, written_down) << "the number is now 0x" << std::hex << sum;
}

}  // namespace
}  // namespace reshard::test
