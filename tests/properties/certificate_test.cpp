// The text for the proved checker means the same layout. Read back with digits and mixed radix, as proofs/ defines
// them, every device holds what the oracle says.
#include <algorithm>
#include <sstream>

#include "reshard/text.hpp"
#include "src/text/certificate.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

using notation::certificate;

/// An s-expression: a word, or a list.
struct Node {
    std::string word;
    std::vector<Node> list;
};

Node read(std::istream& in) {
    Node node;
    if ((in >> std::ws).peek() != '(') {
        while (in.good() && !std::isspace(in.peek()) && in.peek() != '(' && in.peek() != ')')
            node.word += static_cast<char>(in.get());
        return node;
    }
    in.get();
    while ((in >> std::ws).peek() != ')') node.list.push_back(read(in));
    in.get();
    return node;
}

Node read(const std::string& text) {
    std::istringstream in(text);
    return read(in);
}

std::vector<Index> numbers(const Node& node, std::size_t from = 0) {
    std::vector<Index> list;
    for (std::size_t i = from; i < node.list.size(); ++i) list.push_back(std::stoll(node.list[i].word));
    return list;
}

/// `ev` of proofs/Mesh.v: the digits of the device at these positions, the first most major.
Index value(const std::vector<Index>& sizes, const std::vector<Index>& positions, Index device) {
    std::vector<Index> digits(sizes.size());
    for (std::size_t i = sizes.size(); i > 0; --i) {
        digits[i - 1] = device % sizes[i - 1];
        device /= sizes[i - 1];
    }
    Index value = 0;
    for (const Index position : positions)
        value = value * sizes[static_cast<std::size_t>(position)] + digits[static_cast<std::size_t>(position)];
    return value;
}

/// The holding of each device by the `dims` and `unreduced` of a line.
std::vector<Holding> meant(const Node& mesh, const Node& shape, const Node& dims, const Node& unreduced) {
    const auto sizes = numbers(mesh, 1);
    const auto extents = numbers(shape, 1);
    Index devices = 1;
    for (const Index size : sizes) devices *= size;
    std::vector<Holding> held;
    for (Index device = 0; device < devices; ++device) {
        Holding holding;
        for (std::size_t i = 0; i < extents.size(); ++i) {
            const auto positions = numbers(dims.list[i]);
            Index shards = 1;
            for (const Index position : positions) shards *= sizes[static_cast<std::size_t>(position)];
            const Index side = (extents[i] + shards - 1) / shards;
            const Index shard = value(sizes, positions, device);
            holding.tile.push_back({std::min(extents[i], shard * side), std::min(extents[i], (shard + 1) * side)});
        }
        holding.summand = value(sizes, numbers(unreduced), device);
        held.push_back(holding);
    }
    return held;
}

TEST(CertificateProperty, EveryLayoutOfAPlanIsWrittenDownAsItIs) {
    int met = 0;
    check_property(cases(1000), [&] {
        const Pair pair = *pairs();
        const Plan plan{layout_of(pair.source),
                        layout_of(pair.target),
                        {{StepKind::exchange, layout_of(pair.target)}, {StepKind::slice, layout_of(pair.source)}}};
        const auto text = certificate(plan, 7);
        if (!text) {
            RC_ASSERT(text.error().code == Code::unsupported);
            return;
        }
        ++met;
        RC_LOG() << repeat_line(pair) << "\n" << *text;
        const Node line = read(*text);
        RC_ASSERT(line.list.size() == 7U);
        RC_ASSERT(line.list[0].word == "check");
        RC_ASSERT(numbers(line.list[3], 1) == std::vector<Index>{7});
        const Node& mesh = line.list[1];
        const Node& shape = line.list[2];
        const Node& steps = line.list[6];
        RC_ASSERT(meant(mesh, shape, line.list[4].list[1], line.list[4].list[2]) == holdings(pair.source));
        RC_ASSERT(meant(mesh, shape, line.list[5].list[1], line.list[5].list[2]) == holdings(pair.target));
        RC_ASSERT(steps.list.size() == 3U);
        RC_ASSERT(steps.list[1].list[0].word == "exchange");
        RC_ASSERT(meant(mesh, shape, steps.list[1].list[1], steps.list[1].list[2]) == holdings(pair.target));
        RC_ASSERT(steps.list[2].list[0].word == "slice");
        RC_ASSERT(meant(mesh, shape, steps.list[2].list[1], steps.list[2].list[2]) == holdings(pair.source));
        RC_ASSERT(std::ranges::all_of(numbers(mesh, 1), [](Index size) { return size > 1; }));
    });
    EXPECT_GE(met, cases(1000) * 9 / 10);
}

Layout at(const char* mesh, const char* layout) { return *parse_layout(*parse_mesh(mesh), layout); }

Plan plan_of(const char* mesh, const char* source, const char* target) {
    return {at(mesh, source), at(mesh, target), {{StepKind::exchange, at(mesh, target)}}};
}

TEST(CertificateProperty, LinesAreThoseOfTheGrammar) {
    EXPECT_EQ(certificate(plan_of("x=2,y=6", "f32[12@(x,y:(1)2),4]", "f32[12@y,4]{U:x}")),
              "(check (mesh 2 2 3) (shape 12 4) (source ((0 1) ()) ()) (target ((1 2) ()) (0)) "
              "(plan (exchange ((1 2) ()) (0))))");
    EXPECT_EQ(certificate(plan_of("", "f32[]", "f32[]")),
              "(check (mesh) (shape) (source () ()) (target () ()) (plan (exchange () ())))");
    const Layout there = at("c=2,d=2[2-5]", "f32[12@(d,c)]");
    EXPECT_EQ(certificate(Plan{at("a=2", "f32[12@a]"), there, {{StepKind::exchange, there}}}),
              "(check (mesh 2) (shape 12) (source ((0)) ()) (target ((1 0)) () (mesh 2 2) (devices 2 3 4 5)) "
              "(plan (exchange ((1 0)) () (mesh 2 2) (devices 2 3 4 5))))");
    const Step step{StepKind::zero_fill, at("x=2", "f32[4]{U:x}")};
    const Layout before = at("x=2", "f32[4@x]");
    EXPECT_EQ(certificate(before, step, {schedule(before, step, 0), schedule(before, step, 1)}),
              "(schedules (mesh 2) (shape 4) (before ((0)) ()) (step zero_fill (()) (0)) (ranks (rank (sends) "
              "(receives (0 (0 2))) (fills ((0 4)))) (rank (sends) (receives (1 (2 4))) (fills ((0 4))))))");
}

TEST(CertificateProperty, WhatCannotBeWrittenDownSaysWhy) {
    const auto refused = [](const Result<std::string>& text, Code code, const char* words) {
        return !text && text.error().code == code && text.error().message.find(words) != std::string::npos;
    };
    EXPECT_TRUE(refused(certificate(plan_of("x=6", "f32[12@x:(1)2]", "f32[12@x:(1)3]")), Code::unsupported,
                        "no common refinement"));
    EXPECT_TRUE(refused(certificate(plan_of("x=2", "f32[1099511627776@x]", "f32[1099511627776]")), Code::unsupported,
                        "more than the checker can count"));
    Plan plan = plan_of("x=2", "f32[4@x]", "f32[4]");
    plan.steps[0].layout = at("x=2", "f32[5]");
    EXPECT_TRUE(refused(certificate(plan), Code::mismatch, "shapes differ"));
    plan.steps[0].layout = at("x=2", "f32[4]");
    plan.steps[0].layout.dims[0].atoms = {{2, 2}};
    EXPECT_TRUE(refused(certificate(plan), Code::layout, "beyond the devices"));
    plan.steps[0].layout.dims[0].atoms = {{1, 1}};
    EXPECT_TRUE(refused(certificate(plan), Code::layout, "canonical"));
    EXPECT_TRUE(certificate(plan_of("x=2", "f32[4]{max:x}", "f32[4]")).has_value());
    EXPECT_TRUE(refused(certificate(plan_of("x=2,y=2", "f32[4]{max:x}", "f32[4]{prod:y}")), Code::unsupported,
                        "reduces by max and by prod"));
    const Layout many = at("c=4097", "f32[12]");
    EXPECT_TRUE(refused(certificate(Plan{at("a=2", "f32[12@a]"), many, {{StepKind::exchange, many}}}),
                        Code::unsupported, "at most 4096 devices"));
    const Layout other = at("x=2[1,0]", "f32[4]");
    EXPECT_TRUE(refused(certificate(at("x=2", "f32[4@x]"), {StepKind::exchange, other}, {}), Code::unsupported,
                        "schedules on one mesh"));
    const Layout before = at("x=65", "f32[65@x]");
    const Step step{StepKind::all_gather, at("x=65", "f32[65]")};
    EXPECT_TRUE(refused(certificate(before, step, {}), Code::unsupported, "at most 64 devices"));
    EXPECT_TRUE(refused(certificate(at("x=2", "f32[4@x]"), {StepKind::all_gather, at("x=2", "f32[4]")}, {}), Code::plan,
                        "0 schedules for 2 devices"));
}

}  // namespace
}  // namespace reshard::test
