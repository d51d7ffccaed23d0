// Rules: the moves that they make from a list, and the errors, with the line and the place.
#include <gtest/gtest.h>

#include "unit/text/said_moves.hpp"

namespace reshard {
namespace {

TEST(ModelRules, NamesAndStarsAreMatchedWhole) {
    EXPECT_EQ(said("a.0.q bf16[8,4]\na.1.q bf16[8,4]  # a comment\n\nb f32[]\n",
                   "source x=2\n*.q = [x, -]\nb = []\ntarget x=2[2,3]\na.{n}.q = [-, x]  # per layer\nb = -\n"),
              "a.0.q bf16[8@x,4] -> a.0.q bf16[8,4@x]\n"
              "a.1.q bf16[8@x,4] -> a.1.q bf16[8,4@x]\n"
              "b f32[] -> b f32[]\n");
}

TEST(ModelRules, EveryCutOfALayoutCanBeSaid) {
    EXPECT_EQ(said("a u8[8,6]\nb u8[6]\nc u8[8]\nd u8[8]\n",
                   "source x=2,y=2\na = [(x,y), -]\nb = [x[4,2]]\nc = [x/1]\nd = [x{4,4}]\n"
                   "target x=2,y=2\notherwise = -\n"),
              "a u8[8@(x,y),6] -> a u8[8,6]\n"
              "b u8[6@x/4] -> b u8[6]\n"
              "c u8[8@x/1] -> c u8[8]\n"
              "d u8[8@x/2] -> d u8[8]\n");
}

TEST(ModelRules, ARenameTakesWhatThePatternsNameStandFor) {
    EXPECT_EQ(said("model.h.7.w u8[4]\n",
                   "source x=2\notherwise = [x]\ntarget x=2\n"
                   "net.{layer}.weight = - <- model.h.{layer}.w\n"),
              "model.h.7.w u8[4@x] -> net.7.weight u8[4]\n");
    EXPECT_EQ(said("model.a.b u8[4]\n", "source x=2\n* = [x]\ntarget x=2\nnet.* = - <- model.*\n"),
              "model.a.b u8[4@x] -> net.a.b u8[4]\n");
}

TEST(ModelRules, FusedTensorsHavePartsThatAreCutByThemselves) {
    const char* const list = "q u8[4,3]\nk u8[2,3]\nv u8[2,3]\n";
    EXPECT_EQ(said(list, "source x=2\n* = -\ntarget x=2\nqkv = [x, -] <- q + k + v\n"),
              "q u8[4,3] -> qkv(0:4,0:3) u8[8@x[2:0,4:1,5:0,6:1,7:0,8:1],3]\n"
              "k u8[2,3] -> qkv(4:6,0:3) u8[8@x[2:0,4:1,5:0,6:1,7:0,8:1],3]\n"
              "v u8[2,3] -> qkv(6:8,0:3) u8[8@x[2:0,4:1,5:0,6:1,7:0,8:1],3]\n");
    EXPECT_EQ(said(list, "source x=2\n* = -\ntarget x=2\nqkv = [x, -] <- q ++ k ++ v\n"),
              "q u8[4,3] -> qkv(0:4,0:3) u8[8@x,3]\n"
              "k u8[2,3] -> qkv(4:6,0:3) u8[8@x,3]\n"
              "v u8[2,3] -> qkv(6:8,0:3) u8[8@x,3]\n");
    EXPECT_EQ(said("a u8[3,4]\nb u8[3,2]\n", "source x=2\n* = -\ntarget x=2\nc = [-, x] <- a + b along 1\n"),
              "a u8[3,4] -> c(0:3,0:4) u8[3,6@x[2:0,4:1,5:0,6:1]]\n"
              "b u8[3,2] -> c(0:3,4:6) u8[3,6@x[2:0,4:1,5:0,6:1]]\n");
}

TEST(ModelRules, HeadsAreNotCut) {
    // Two shards share a head, and the other digit of the axis cuts nothing.
    EXPECT_EQ(said("k u8[8,3]\n", "source x=4\n* = [x heads of 4, -]\ntarget x=4\n* = [-, x[3,0,0,0] heads of 3]\n"),
              "k u8[8@x:(1)2,3] -> k u8[8,3@x/3]\n");
    // Parts that share heads by the same shards have no copies.
    EXPECT_EQ(said("k u8[8,3]\nv u8[8,3]\n", "source x=4\n* = -\ntarget x=4\nkv = [x heads of 4, -] <- k + v\n"),
              "k u8[8,3] -> kv(0:8,0:3) u8[16@x:(1)2/4,3]\n"
              "v u8[8,3] -> kv(8:16,0:3) u8[16@x:(1)2/4,3]\n");
    // Each head of k stands in the tensor twice.
    EXPECT_EQ(said("q u8[4,3]\nk u8[2,3]\n", "source x=4\n* = -\ntarget x=4\nqk = [x heads of 1, -] <- q + k\n"),
              "q u8[4,3] -> qk(0:4,0:3) u8[8@x/1,3]\n"
              "k(0:1,0:3) u8[2,3] -> qk(4:5,0:3) u8[8@x/1,3]\n"
              "k(0:1,0:3) u8[2,3] -> qk(5:6,0:3) u8[8@x/1,3]\n"
              "k(1:2,0:3) u8[2,3] -> qk(6:7,0:3) u8[8@x/1,3]\n"
              "k(1:2,0:3) u8[2,3] -> qk(7:8,0:3) u8[8@x/1,3]\n");
    // A tensor that has the copies already.
    EXPECT_EQ(said("qk u8[8,3]\n", "source x=4\n* = [x{4,4} heads of 1, -]\ntarget x=4\n* = -\n"),
              "qk u8[8@x/1,3] -> qk u8[8,3]\n");
}

TEST(ModelRules, ExpertsAreStackedInTheOrderOfTheirNumbers) {
    EXPECT_EQ(
        said("e.1.up u8[2,3]\ne.0.up u8[2,3]\ne.0.gate u8[2,3]\ne.1.gate u8[2,3]\n",
             "source x=2\ne.{e:2}.{w} = [{e}@x, -, -]\ntarget x=2\ne.w13 = [x, -, -] <- e.{e:2}.gate + e.{e:2}.up\n"),
        "e.0.gate u8[1@x,2,3] -> e.w13(0:1,0:2,0:3) u8[2@x,4,3]\n"
        "e.0.up u8[1@x,2,3] -> e.w13(0:1,2:4,0:3) u8[2@x,4,3]\n"
        "e.1.gate u8[1@x[0,1],2,3] -> e.w13(1:2,0:2,0:3) u8[2@x,4,3]\n"
        "e.1.up u8[1@x[0,1],2,3] -> e.w13(1:2,2:4,0:3) u8[2@x,4,3]\n");
}

TEST(ModelRules, SplitTensorsAreSlices) {
    EXPECT_EQ(said("w u8[2,4,3]\n",
                   "source x=2\nw = [x, -, -]\ntarget x=2\n"
                   "e.{e:2}.gate = - <- w[{e}, 0:2, :]\ne.{e:2}.up = - <- w[{e}, 2:4, :]\n"),
              "w(0:1,0:2,0:3) u8[2@x,4,3] -> e.0.gate u8[2,3]\n"
              "w(1:2,0:2,0:3) u8[2@x,4,3] -> e.1.gate u8[2,3]\n"
              "w(0:1,2:4,0:3) u8[2@x,4,3] -> e.0.up u8[2,3]\n"
              "w(1:2,2:4,0:3) u8[2@x,4,3] -> e.1.up u8[2,3]\n");
    // A tied tensor, and a tensor that is left out.
    EXPECT_EQ(said("a u8[4]\nb u8[4]\n", "source x=2\n* = -\ntarget x=2\na = [x]\nalso c = - <- a\ndrop b\n"),
              "a u8[4] -> a u8[4@x]\na u8[4] -> c u8[4]\n");
}

TEST(ModelRules, ScalesAreCutAsTheirWeightsAre) {
    EXPECT_EQ(said("w f8_e4m3fn[512,384]\ns f32[4,3]\n",
                   "source x=2\nw = [x, -]\ns = blocks 128 of w\ntarget x=3\nw = [-, x]\ns = blocks 128,128 of w\n"),
              "w f8_e4m3fn[512@x,384] -> w f8_e4m3fn[512,384@x]\n"
              "s f32[4@x,3] -> s f32[4,3@x]\n");
    // The last block may be short. Both ranks hold a block that is cut, and one of them gives it.
    EXPECT_EQ(said("w u8[5]\ns f32[3]\n", "source x=2\nw = [x[4,1]]\ns = blocks 2 of w\ntarget x=2\n* = -\n"),
              "w u8[5@x/4] -> w u8[5]\ns f32[3@x] -> s f32[3]\n");
    EXPECT_EQ(said("w u8[6]\ns f32[3]\n", "source x=2\nw = [x]\ns = blocks 2 of w\ntarget x=2\n* = -\n"),
              "w u8[6@x] -> w u8[6]\ns(0:2) f32[4@x] -> s(0:2) f32[3]\ns(3:4) f32[4@x] -> s(2:3) f32[3]\n");
}

struct Refused {
    const char* list;
    const char* rules;
    const char* error;
};

TEST(ModelRules, WhatIsWrongIsSaidWithItsLine) {
    const char* const two = "a u8[4]\nb u8[4]\n";
    const Refused all[] = {
        {"a u8[4]\na u8[4]\n", "", "line 2 of the list: 'a' is on line 1, too\n  a u8[4]\n  ^"},
        {"a b8[4]\n", "", "line 1 of the list: 'b8' is not an element type\n  a b8[4]\n    ^"},
        {two, "source x=2\na = [x]\ntarget x=2\n* = -\n",
         "line 1 of the rules: no line of the source matches 'b'\n  source x=2\n  ^"},
        {two, "source x=2\n* = [x]\nb = -\ntarget x=2\n* = -\n",
         "line 3 of the rules: 'b' is matched on line 2, too\n  b = -\n  ^"},
        {two, "source x=2\n* = [x]\ntarget x=2\n* = -\nc = -\n",
         "line 5 of the rules: no tensor of the list is for this line\n  c = -\n  ^"},
        {two, "source x=2\n* = [x]\nc.* = -\ntarget x=2\n* = -\n",
         "line 3 of the rules: no tensor of the list is for this line\n  c.* = -\n  ^"},
        {two, "source x=2\n* = [x]\ntarget x=2\na = -\n",
         "line 3 of the rules: no line of the target takes 'b' (a line 'drop b' leaves it out)\n  target x=2\n  ^"},
        {two, "source x=2\n* = [x]\ntarget x=2\n* = -\nc = - <- b\n",
         "line 5 of the rules: 'b' is taken on line 4, too (a line may begin with 'also')\n  c = - <- b\n  ^"},
        {two, "source x=2\n* = [x]\ntarget x=2\nc = - <- a + b + d\n",
         "line 4 of the rules: 'c' lacks 'd'\n  c = - <- a + b + d\n                   ^"},
        {two, "source x=2\n* = [x]\ntarget x=2\n* = -\ndrop b\n",
         "line 4 of the rules: 'b' is dropped and taken\n  * = -\n  ^"},
        {two, "source x=2\n* = [z]\ntarget x=2\n* = -\n",
         "line 2 of the rules: the mesh has no axis z ('a')\n  * = [z]\n       ^"},
        {two, "source x=2\n* = [x, -]\ntarget x=2\n* = -\n",
         "line 2 of the rules: more dimensions than the tensor's 1 ('a')\n  * = [x, -]\n          ^"},
        {two, "source x=2\n* = [x] and\ntarget x=2\n",
         "line 2 of the rules: expected the end\n  * = [x] and\n          ^"},
        {two, "* = [x]\n", "line 1 of the rules: expected 'source' or 'target' and a mesh\n  * = [x]\n  ^"},
        {two, "source x=2\n* = [x]\n", "the rules have no line 'target' and a mesh"},
        {two, "source x=0\n", "line 1 of the rules: axis x has size 0, must be at least 1\n  source x=0\n         ^"},
        {"a u8[4]\nb u16[4]\n", "source x=2\n* = [x]\ntarget x=2\nc = - <- a + b\n",
         "line 4 of the rules: 'b' has another element type than the first part of 'c'\n  c = - <- a + b\n  ^"},
        {"w u8[4]\n", "source x=2\n* = [x]\ntarget x=2\nc = - <- w[0:3]\nd = - <- w[2:4]\n",
         "line 5 of the rules: 'w' is taken on line 4, too (a line may begin with 'also')\n  d = - <- w[2:4]\n  ^"},
        {"w u8[4]\n", "source x=2\n* = [x]\ntarget x=2\nc = - <- w[0:5]\n",
         "line 4 of the rules: there are no indices 0:5 in dimension 0 of 'w', which has 4\n  c = - <- w[0:5]\n        "
         "   ^"},
        {two, "source x=2\n* = [x]\ntarget x=2\nc.{n} = - <- a\n",
         "line 4 of the rules: no {n}, which the target has\n  c.{n} = - <- a\n               ^"},
    };
    for (const Refused& one : all) EXPECT_EQ(said(one.list, one.rules), one.error);
}

// The error of one line of a target, for a matrix w and a vector v.
std::string refused(const std::string& line) {
    return said("w u8[8,6]\nv u8[8]\n", "source x=2\n* = -\ntarget x=2\n" + line + "\notherwise = -\n");
}

// Expects that the first line of a text is the error of line 4.
void begins(const std::string& text, std::string_view error) {
    EXPECT_EQ(text.substr(0, text.find('\n')), fmt::format("line 4 of the rules: {}", error));
}

TEST(ModelRules, StepsGroupsAndOrdersThatDoNotFitAreErrors) {
    begins(refused("a = - <- w[::0, :]"), "a step is at least 1");
    begins(refused("a = - <- w[0:5 of 4, :]"), "a period has at least the indices of the slice");
    begins(refused("a = - <- w[0:2 of 3, :]"), "8 indices are not whole periods of 3, in dimension 0 of 'w'");
    begins(refused("a = - <- w[9::2, :]"), "there are no indices 9:8 in dimension 0 of 'w', which has 8");
    begins(refused("a = - <- w + v in 2 groups"),
           "groups mix the parts, so no part is cut by itself; ++ cuts the whole");
    begins(refused("a = - <- w ++ v in 0 groups"), "at least one group");
    begins(refused("a = - <- w in 3 groups"), "'w' has 8 indices, which 3 groups do not divide");
    begins(refused("a = - <- w permute(0,0)"), "each dimension from 0 to 1 is named once");
    begins(refused("a = - <- w permute(0,2,1)"), "an order of 3 dimensions for the 2 of 'w'");
    begins(refused("a = - <- v[:].T"), "an order of 2 dimensions for the 1 of 'v'");
    begins(said("w u8[24]\n", "source x=2\n* = -\ntarget x=2\na = - <- w[0:6 of 8] ++ w[6:8 of 8] in 2 groups\n"),
           "windows of 6 indices become windows of 9; one must divide the other ('a')");
}

TEST(ModelRules, StepsOverlapIfTheyShareAnIndex) {
    const auto both = [](const char* first, const char* second) {
        const std::string text = said("w u8[24]\n", fmt::format("source x=2\n* = -\ntarget x=2\na = - <- w[{}]\n"
                                                                "b = - <- w[{}]\n",
                                                                first, second));
        return text.find("is taken on line 4, too") == std::string::npos;
    };
    EXPECT_TRUE(both("0::2", "1::2"));
    EXPECT_FALSE(both("0::2", "1::3"));
    EXPECT_TRUE(both("0:8 of 12", "8:12 of 12"));
    EXPECT_FALSE(both("0:8 of 12", "19:21"));
    EXPECT_TRUE(both("0:8 of 12", "20:24"));
    EXPECT_FALSE(both("0:1 of 4", "12::2"));
    EXPECT_TRUE(both("0:1 of 4", "13::2"));
    EXPECT_FALSE(both("0:24:5", "0:24:7"));
    EXPECT_TRUE(both("1:24:5", "0:15:7"));
}

TEST(ModelRules, PaddingThatDoesNotFitIsAnError) {
    begins(refused("w = [x pad 0 to 7, -]"), "8 indices are padded to 7 ('w')");
    begins(refused("w = [x pad 1 to 16, -]"), "1 as padding; only 0 pads ('w')");
    begins(refused("w = [x pad 0 to multiple of y*2, -]"), "the mesh has no axis 'y' ('w')");
    begins(refused("w = [x pad 0 to multiple of 0, -]"), "a factor is at least 1 ('w')");
    begins(refused("w = [x pad 0 to multiple of 4611686018427387904*4, -]"), "more than 2^63 indices ('w')");
    const auto fused = [](const std::string& size) {
        return said("v u8[8]\nw u8[8]\n", "source x=2\n* = -\ntarget x=2\na = [x pad 0 to " + size + "] <- v + w\n");
    };
    begins(fused("7"), "8 indices are padded to 7 ('a')");
    EXPECT_NE(fused("20").find("v u8[8] -> a(0:8) u8[40@x/10]"), std::string::npos) << fused("20");
    EXPECT_NE(fused("20").find("w u8[8] -> a(20:28) u8[40@x/10]"), std::string::npos) << fused("20");
    EXPECT_EQ(said("w u8[8,6]\n", "source x=2\n* = [x pad 0 to 16, -]\ntarget x=2\n* = -\n").substr(0, 52),
              "line 2 of the rules: only a target is padded ('w')\n ");
    EXPECT_EQ(said("w u8[8,6]\n", "source x=2\n* = -\ntarget x=2\nw = [-, x pad 0 to multiple of x*5]\n"),
              "w u8[8,6] -> w(0:8,0:6) u8[8,10@x]\n");
}

TEST(ModelRules, TheNearestNameIsShown) {
    const char* const list = "model.layers.0.q_proj.weight u8[4]\nmodel.layers.1.q_proj.weight u8[4]\nhead u8[4]\n";
    const auto after = [&](const std::string& rules) {
        const std::string text = said(list, rules);
        const std::size_t begin = text.find("; "), end = text.find('\n');
        return begin < end ? text.substr(begin, end - begin) : "";
    };
    EXPECT_EQ(after("source x=2\nlayers.{n}.q_proj.weight = -\notherwise = -\ntarget x=2\notherwise = -\n"),
              "; the nearest name is 'model.layers.0.q_proj.weight'");
    EXPECT_EQ(after("source x=2\notherwise = -\ntarget x=2\nq = - <- model.layers.1.qproj.weight\notherwise = -\n"),
              "; the nearest name is 'model.layers.1.q_proj.weight'");
    EXPECT_EQ(after("source x=2\notherwise = -\ntarget x=2\nq = - <- head + haed2\notherwise = -\n"), "");
    EXPECT_EQ(after("source x=2\notherwise = -\ntarget x=2\ndrop model.layer.*.weight\notherwise = -\n"),
              "; the nearest name is 'model.layers.0.q_proj.weight'");
    EXPECT_EQ(after("source x=2\notherwise = -\ntarget x=2\nq = - <- head + heads\notherwise = -\n"),
              "; the nearest name is 'head'");
    EXPECT_EQ(after("source x=2\nvisual.*.bias = -\notherwise = -\ntarget x=2\notherwise = -\n"), "");
}

TEST(ModelRules, AHeadThatWouldBeCutIsAnError) {
    const char* const list = "q u8[24,3]\nk u8[8,3]\n";
    const auto error = [&](const std::string& line) { return said(list, "source x=4\n* = -\ntarget x=4\n" + line); };
    EXPECT_EQ(
        error("qk = [x heads of 4, -] <- q + k\n"),
        "line 4 of the rules: part 1: 6 heads of 4 for the 4 shards of x would be cut; one number must divide the "
        "other ('qk')\n  qk = [x heads of 4, -] <- q + k\n        ^");
    EXPECT_EQ(error("q = [x heads of 5, -]\nk = -\n"),
              "line 4 of the rules: 24 indices are not whole heads of 5 ('q')\n  q = [x heads of 5, -]\n       ^");
    EXPECT_EQ(error("q = [x[6,6,6,6] heads of 6, -]\nk = [x[2,2,3,1] heads of 4, -]\n"),
              "line 5 of the rules: x cuts at 2, within a head of 4 ('k')\n  k = [x[2,2,3,1] heads of 4, -]\n       ^");
    EXPECT_EQ(error("q = [x{16,8} heads of 4, -]\nk = -\n"),
              "line 4 of the rules: parts of {...} have not equally many heads for each of the 4 shards of x; a line "
              "that fuses them with + repeats heads ('q')\n  q = [x{16,8} heads of 4, -]\n       ^");
    EXPECT_EQ(error("q = [x heads of 0, -]\nk = -\n"),
              "line 4 of the rules: a head has at least one index ('q')\n  q = [x heads of 0, -]\n                  ^");
    EXPECT_EQ(error("q = [x heads 4, -]\nk = -\n"),
              "line 4 of the rules: expected 'of' ('q')\n  q = [x heads 4, -]\n               ^");
    EXPECT_EQ(error("qk = [x heads of {4,4,4}, -] <- q + k\n"),
              "line 4 of the rules: 3 sizes of heads for 2 parts ('qk')\n  qk = [x heads of {4,4,4}, -] <- q + k\n"
              "          ^");
    // The copies of k have other blocks than one scale tensor for all of qk.
    EXPECT_EQ(said("q u8[16,3]\nk u8[8,3]\ns f32[6,3]\n",
                   "source x=4\n* = -\ntarget x=4\nqk = [x heads of 4, -] <- q + k\nsc = blocks 4,1 of qk <- s\n"),
              "line 5 of the rules: 'qk' repeats heads, so its blocks must be fused of as many parts\n"
              "  sc = blocks 4,1 of qk <- s\n                     ^");
    EXPECT_EQ(said("q u8[2,3]\n", "source x=2,y=3\n* = [(y,x) heads of 1, -]\ntarget x=4\n* = -\n"),
              "line 2 of the rules: 3 shards of (y,x) share a head each, and no leading axes have 2 shards ('q')\n"
              "  * = [(y,x) heads of 1, -]\n       ^");
}

TEST(ModelRules, AnOwnerThatDoesNotExistIsAnError) {
    const auto error = [&](const std::string& entry) {
        return said("w.0 u8[4]\nw.1 u8[4]\n", "source x=4\n* = -\ntarget x=4\nw.{n:2} = [" + entry + ", -]\n");
    };
    EXPECT_EQ(error("4@x"), "line 4 of the rules: shard 4 of 4 ('w.0')\n  w.{n:2} = [4@x, -]\n             ^");
    EXPECT_EQ(error("{n}@x[1,2,0,0]"),
              "line 4 of the rules: the shares add up to 3, not 2 ('w.0')\n  w.{n:2} = [{n}@x[1,2,0,0], -]\n"
              "                   ^");
    EXPECT_EQ(error("{n}@x/0"),
              "line 4 of the rules: a block has at least one number ('w.0')\n  w.{n:2} = [{n}@x/0, -]\n"
              "                   ^");
    EXPECT_EQ(error("{m}@x"),
              "line 4 of the rules: the pattern counts no {m} ('w.0')\n  w.{n:2} = [{m}@x, -]\n             ^");
    // An owner twice.
    EXPECT_EQ(error("{n}@x, last@x"),
              "line 4 of the rules: an axis, or parts of it that overlap, is used twice ('w.0')\n"
              "  w.{n:2} = [{n}@x, last@x, -]\n                         ^");
}

TEST(ModelRules, NumbersMayBeginAnywhere) {
    const std::string list = "l.{n:13}.norm u8[4]\nother u8[4]\n";
    const auto names = [&](const std::string& lines) {
        const auto model = applied(list, "source x=2\n* = [x]\ntarget x=2\n" + lines);
        if (!model) return describe(model.error());
        std::string text;
        for (const ShardedTensor& tensor : model->targets) text += tensor.name + " ";
        return text;
    };
    EXPECT_EQ(
        names("first.{n:3} = - <- l.{n}.norm\nrest.{n:3:13} = - <- l.{n:3:13}.norm\nother = -\n"),
        "first.0 first.1 first.2 rest.3 rest.4 rest.5 rest.6 rest.7 rest.8 rest.9 rest.10 rest.11 rest.12 other ");
    EXPECT_EQ(names("stack = [-, x] <- l.{n:3:13}.norm\notherwise = -\n"), "l.0.norm l.1.norm l.2.norm stack other ");
    EXPECT_EQ(names("l.{n:3:13}.norm = -\nother = -\n").substr(0, 64),
              "line 3 of the rules: no line of the target takes 'l.0.norm' (a l");
}

TEST(ModelRules, AStackOfNumbersThatBeginLaterHasThemInOrder) {
    EXPECT_EQ(said("w.9 u8[4]\nw.10 u8[4]\nw.8 u8[4]\n", "source x=2\n* = -\ntarget x=2\nw = [-, x] <- w.{n:8:11}\n"),
              "w.8 u8[4] -> w(0:1,0:4) u8[3,4@x]\n"
              "w.9 u8[4] -> w(1:2,0:4) u8[3,4@x]\n"
              "w.10 u8[4] -> w(2:3,0:4) u8[3,4@x]\n");
    EXPECT_EQ(said("w.9 u8[4]\nw.8 u8[4]\n", "source x=2\n* = -\ntarget x=2\nw = [-, x] <- w.{n:8:11}\n"),
              "line 4 of the rules: 'w' lacks 'w.10'\n"
              "  w = [-, x] <- w.{n:8:11}\n                ^");
    // One tensor for each number, from the index of that number.
    EXPECT_EQ(said("w u8[4,2]\n", "source x=2\n* = -\ntarget x=2\nw.{n:1:3} = - <- w[{n}, :]\n"),
              "w(1:2,0:2) u8[4,2] -> w.1 u8[2]\n"
              "w(2:3,0:2) u8[4,2] -> w.2 u8[2]\n");
}

TEST(ModelRules, NumbersThatDoNotFitAreErrors) {
    const auto error = [&](const std::string& line) {
        const std::string text = said("w.0 u8[4]\nw.1 u8[4]\n", "source x=2\n* = -\ntarget x=2\n" + line + "\n");
        return text.substr(0, text.find('\n'));
    };
    EXPECT_EQ(error("w.{n:3:3} = -"), "line 4 of the rules: at least one number");
    EXPECT_EQ(error("w.{n:0} = -"), "line 4 of the rules: at least one number");
    EXPECT_EQ(error("w.{n:3:2} = -"), "line 4 of the rules: at least one number");
    EXPECT_EQ(error("w.{n:0:1048577} = -"), "line 4 of the rules: a number of more than 1048576");
    EXPECT_EQ(error("w.{n:1:} = -"), "line 4 of the rules: expected where the numbers end, a number");
    EXPECT_EQ(error("v.{n:1:2} = - <- w.{n:2}"), "line 4 of the rules: {n} has two ranges of numbers");
}

TEST(ModelRules, TheRowsOfAFusedModelAreAskedAtOnce) {
    const auto model =
        applied("q u8[4,2]\nk u8[2,2]\n", "source x=2\n* = [x, -]\ntarget x=2[2,3]\nqk = [x, -] <- q + k\n");
    ASSERT_TRUE(model) << describe(model.error());
    const auto made = RowSchedule::make(model->moves);
    ASSERT_TRUE(made) << describe(made.error());
    EXPECT_EQ(made->rows(1), (std::vector<Row>{{0, 3, 0, 0, 4, 1, 0, 0}, {1, 3, 0, 4, 2, 1, 0, 0}}));
}

}  // namespace
}  // namespace reshard
