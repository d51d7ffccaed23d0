// The elements that blocks of devices lack, against every element of the array.
#include "synth/search/device_tiles.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "reshard/text.hpp"
#include "synth/search/expand.hpp"

namespace reshard {
namespace {

using Elements = std::set<std::vector<Index>>;

// All elements of two dimensions that the devices at these positions have.
Elements elements_of(const Layout& layout, const std::vector<Index>& positions) {
    Elements elements;
    for (const Index position : positions)
        for (const Box& box : boxes_of(tile(layout, device_at(layout.mesh, position))))
            for (Index row = box[0].begin; row < box[0].end; ++row)
                for (Index column = box[1].begin; column < box[1].end; ++column) elements.insert({row, column});
    return elements;
}

// Nodes of 8 part the axes of 60 devices, so no digits describe them.
std::vector<std::vector<Index>> nodes_of_8() {
    std::vector<std::vector<Index>> blocks;
    for (Index position = 0; position < 60; ++position) {
        if (position % 8 == 0) blocks.emplace_back();
        blocks.back().push_back(position);
    }
    return blocks;
}

void expect_every_element(std::string_view source, std::string_view target, bool by_turns = false) {
    const Mesh mesh = *parse_mesh("a=2,b=3,c=2,d=5");
    const Problem problem{*parse_layout(mesh, source), *parse_layout(mesh, target)};
    const auto space = by_turns ? make_space_by_turns(problem) : make_search_space(problem, true);
    ASSERT_TRUE(space.has_value() && space->whole);
    const std::vector<std::vector<Index>> blocks = nodes_of_8();
    std::vector<State> states;
    Moves(*space, true, true, false).append_states_behind(40, states);
    states.push_back(space->source);
    const Machine machine = *make_machine("dgx-h100:nodes=8");
    DeviceTiles tiles(*space, machine);
    std::mt19937 random(3);
    Index lacking = 0;
    for (int turn = 0; turn < 12; ++turn) {
        const State& held = states[random() % states.size()];
        const State& wanted = turn == 0 ? space->target : states[random() % states.size()];
        tiles.between(held, wanted);
        for (std::size_t block = 0; block < blocks.size(); ++block) {
            const Elements has = elements_of(space->layout(held), blocks[block]);
            Index lacks = 0;
            for (const auto& element : elements_of(space->layout(wanted), blocks[block]))
                lacks += has.contains(element) ? 0 : 1;
            ASSERT_EQ(tiles.lacking(1, tiles.set_of(blocks[block])), lacks)
                << format(space->layout(held)) << " to " << format(space->layout(wanted)) << ", node " << block;
            lacking += lacks;
        }
    }
    EXPECT_GT(lacking, 0);
}

TEST(DeviceTiles, CountEveryElementThatANodeLacks) {
    expect_every_element("f32[60,60@(c,d)]", "f32[60@(b,c),60]");
    expect_every_element("f32[30@(b,a),30@(d,c)]", "f32[30,30@a]");
}

TEST(DeviceTiles, CountUnevenTiles) {
    expect_every_element("f32[23,31@(c,d)]", "f32[23@(b,c),31]");
    expect_every_element("f32[23,31@d]", "f32[23@b,31]", true);
}

}  // namespace
}  // namespace reshard
