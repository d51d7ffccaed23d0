// Casts, shapes, blocks and ranges of slices in rules: the moves, and a table of mistakes.
#include <gtest/gtest.h>

#include "reshard/model/model_rows.hpp"
#include "unit/text/said_moves.hpp"

namespace reshard {
namespace {

// The error of line 4, which is a line of the target on tp=4.
std::string refused(const std::string& list, const std::string& line) {
    const std::string text =
        said(list + "spare u8[1]\n", "source fsdp=2\n* = -\ntarget tp=4\n" + line + "\notherwise = -\n");
    return text.substr(0, text.find('\n'));
}

TEST(RuleCasts, MoveTheNarrowerType) {
    // A trainer's f32 becomes bf16, and bf16 becomes f32. Types of one size move as the source has them.
    const char* const list = "a f32[4]\nb bf16[4]\nc f16[4]\nd f32[4]\n";
    const char* const rules = "source x=2\n* = [x]\ntarget x=2\na = - as bf16\nb = - as f32\nc = [x] as bf16\nd = -\n";
    const auto model = applied(list, rules);
    ASSERT_TRUE(model) << describe(model.error());
    std::string types;
    for (std::size_t i = 0; i < model->moves.size(); ++i)
        types += fmt::format("{}: {} {} moves {} {}\n", model->targets[i].name, name(model->sources[i].layout->dtype),
                             name(model->targets[i].layout->dtype), name(model->moves[i].source.layout->dtype),
                             name(model->moves[i].target.layout->dtype));
    EXPECT_EQ(types,
              "a: f32 bf16 moves bf16 bf16\nb: bf16 f32 moves bf16 bf16\nc: f16 bf16 moves f16 f16\n"
              "d: f32 f32 moves f32 f32\n");
}

TEST(RuleCasts, HaveTheRowsOfTheNarrowerType) {
    const auto moves_of = [](const char* list, const char* cast) {
        const auto model =
            applied(list, fmt::format("source x=2\n* = [x, -]\ntarget x=4\nqk = [x heads of 2, -]{} <- q + k\n", cast));
        return model ? model->moves : std::vector<PartProblem>{};
    };
    const auto plain = moves_of("q bf16[16,3]\nk bf16[4,3]\n", "");
    ASSERT_EQ(plain.size(), 5U);
    EXPECT_EQ(moves_of("q f32[16,3]\nk bf16[4,3]\n", " as bf16"), plain);  // parts of two types
    EXPECT_EQ(moves_of("q bf16[16,3]\nk bf16[4,3]\n", " as f32"), plain);
}

TEST(RuleCasts, AreKnownForEachMoveOfAModel) {
    const auto rows = ModelRows::make("source x=2\n* = [x]\ntarget x=2\nl.{n}.a = - as bf16\notherwise = -\n",
                                      "l.{n:3}.a f32[4]\nl.{n:3}.b f32[4]\n");
    ASSERT_TRUE(rows) << describe(rows.error());
    ASSERT_EQ(rows->array_count(), 6U);
    EXPECT_EQ(rows->understood_count(), 2U);
    for (std::size_t i = 0; i < 6; ++i)
        EXPECT_EQ(rows->dtypes(i), std::pair(DType::f32, i % 2 == 0 ? DType::bf16 : DType::f32)) << i;
}

TEST(RuleShapes, SplitAndMergeDimensions) {
    EXPECT_EQ(said("w u8[8,6]\n",
                   "source x=2\n* = [x, -]\ntarget x=2\n"
                   "a = - <- w shape(2,4,6)[0, :, :]\nb = - <- w shape(-1,4,:)[1, :, :]\n"),
              // `:` is in the place of dimension 2, which w does not have.
              "line 5 of the rules: ':' in the shape (-1,4,:) is dimension 2 of 'w', which has 2 dimensions\n"
              "  b = - <- w shape(-1,4,:)[1, :, :]\n           ^");
    EXPECT_EQ(said("w u8[8,6]\n",
                   "source x=2\n* = [x, -]\ntarget x=2\n"
                   "a = - <- w shape(2,4,6)[0, :, :]\nb = - <- w shape(-1,4,6)[1, :, :]\n"),
              "w(0:1,0:4,0:6) u8[8@x,6] -> a u8[4,6]\nw(1:2,0:4,0:6) u8[8@x,6] -> b u8[4,6]\n");
    EXPECT_EQ(said("w u8[4,3,2]\n", "source x=2\n* = [-, -, x]\ntarget x=2\na = [-, x] <- w shape(:,-1)\n"),
              "w(0:4,0:6) u8[4,3,2@x] -> a u8[4,6@x]\n");
    // The owner of a tensor stays.
    EXPECT_EQ(said("w.1 u8[4,6]\n", "source x=2\nw.{n:2} = [{n}@x, -, -]\ntarget x=2\na = - <- w.1 shape(24)\n"),
              "w.1(0:1,0:24) u8[1@x[0,1],4,6] -> a u8[24]\n");
}

TEST(RuleBlocks, AreCutBetweenBlocks) {
    const auto cut = [](const std::string& entry) {
        return said("w u8[240]\n", "source x=1\n* = -\ntarget tp=4\nw = [" + entry + "]\n");
    };
    EXPECT_EQ(cut("tp blocks of 16"), "w u8[240] -> w u8[240@tp/64]\n");
    EXPECT_EQ(cut("tp blocks of 60"), "w u8[240] -> w u8[240@tp]\n");
    EXPECT_EQ(cut("tp[120,0,60,60] blocks of 60"), "w u8[240] -> w u8[240@tp[120,0,60,60]]\n");
    // Each part has blocks of its own. A shard may have none.
    EXPECT_EQ(said("a u8[6]\nb u8[4]\n", "source x=1\n* = -\ntarget tp=2\nc = [tp blocks of {2,4}] <- a + b\n"),
              "a u8[6] -> c(0:6) u8[10@tp[4:0,6:1,10:0]]\nb u8[4] -> c(6:10) u8[10@tp[4:0,6:1,10:0]]\n");
}

TEST(RuleRanges, TakeOneCopyOfEachHead) {
    EXPECT_EQ(said("kv u8[24]\n",
                   "source x=2\n* = -\ntarget x=2\nk = - <- kv[0:2 of 4 in 8:16]\n"
                   "also v = - <- kv[1:2 of 4 in 16:]\n"),
              "kv(2:4,0:2) u8[24] -> k(0:2,0:2) u8[4]\nkv(4:6,1:2) u8[24] -> v(0:2,0:1) u8[2]\n");
}

struct Mistake {
    const char* list;
    const char* line;  // of the target, on tp=4
    const char* error;
};

TEST(RuleMistakes, NameTheTensorTheAxisAndTheLine) {
    const char* const qk = "q u8[24,3]\nk u8[8,3]\n";
    const char* const experts = "e.0.w u8[8,4]\ne.1.w u8[8,4]\n";
    const Mistake all[] = {
        // A head or a block that would be cut.
        {qk, "qk = [tp heads of 4, -] <- q + k",
         "part 1: 6 heads of 4 for the 4 shards of tp would be cut; one number must divide the other ('qk')"},
        {qk, "q = [tp[12,12,0,0] heads of 8, -]", "tp cuts at 12, within a head of 8 ('q')"},
        {qk, "q = [tp[6,6,6,6] heads of 8, -]", "tp cuts at 6, within a head of 8 ('q')"},
        {qk, "q = [tp[6,6,6,6] blocks of 4, -]", "tp cuts at 6, within a block of 4 ('q')"},
        {qk, "q = [tp blocks of 16, -]", "24 indices are not whole blocks of 16 ('q')"},
        {"w u8[8]\ns f32[2]\n", "w = [tp/1]\ns = blocks 5 of w",
         "line 5 of the rules: dimension 0, f32[8@tp/1], is cut at 4, within a block of 5 that one shard would hold "
         "twice "
         "('s')"},
        // A part that is missing.
        {qk, "qkv = [tp heads of 2, -] <- q + k + v", "'qkv' lacks 'v'"},
        {experts, "w = [tp, -, -] <- e.{e:3}.w", "'w' lacks 'e.2.w'; the nearest name is 'e.0.w'"},
        // An owner twice.
        {experts, "e.{e:2}.w = [{e}@tp, first@tp, -, -]",
         "an axis, or parts of it that overlap, is used twice ('e.0.w')"},
        {experts, "e.0.w = [first@tp, -, -]\ne.{e:2}.w = [{e}@tp, -, -]",
         "line 5 of the rules: 'e.0.w' is made on line 4, too"},
        // An element that is taken twice.
        {qk, "a = - <- q[0:2, :]\nb = - <- q[1:3, :]",
         "line 5 of the rules: 'q' is taken on line 4, too (a line may begin with 'also')"},
        {qk, "a = - <- q shape(2,12,3)[0, :, :]\nb = - <- q shape(72)[35:72]",
         "line 5 of the rules: 'q' is taken on line 4 in another shape, too (a line may begin with 'also')"},
        // A shape that does not fit.
        {qk, "a = - <- q shape(5,-1)", "'q' has shape (24,3), and its elements do not fill the shape (5,-1)"},
        {qk, "a = - <- q shape(24,4)", "'q' has shape (24,3), and its elements do not fill the shape (24,4)"},
        {qk, "a = - <- q shape(-1,-1)", "one extent is -1 at most"},
        {qk, "a = - <- q shape(-2,3)", "an extent is a number, : or -1"},
        {qk, "a = [tp, -] <- q[:, 0:2] ++ k", "'k' has another shape than the first part of 'a'"},
        {qk, "q = [tp, -, -]", "more dimensions than the tensor's 2 ('q')"},
        {qk, "q = [tp]", "1 dimensions for a tensor of 2 ('q')"},
        {qk, "q = [pp, -]", "the mesh has no axis pp ('q')"},
        // Ranges and casts that do not fit.
        {qk, "a = - <- q[0:2 of 4 in 8:30, :]", "there are no indices 8:30 among 24, in dimension 0 of 'q'"},
        {qk, "a = - <- q[0:2 of 4 in 8:18, :]", "10 indices are not whole periods of 4, in dimension 0 of 'q'"},
        {"q f32[4]\nk i64[4]\n", "k = - as bf16",
         "'k' is i64, which cannot be cast to bf16; a cast is from a floating type to another, or from an integer to a "
         "wider one ('k')"},
        {qk, "q = - as bf17", "'bf17' is not an element type"},
    };
    for (const Mistake& one : all) {
        const std::string said = refused(one.list, one.line);
        const bool has_line = std::string_view(one.error).starts_with("line ");
        EXPECT_EQ(said, has_line ? one.error : fmt::format("line 4 of the rules: {}", one.error)) << one.line;
    }
}

TEST(RuleMistakes, ACastAtTheSourceIsAnError) {
    EXPECT_EQ(said("q f32[4]\n", "source x=2\nq = [x] as bf16\ntarget x=2\n* = -\n"),
              "line 2 of the rules: only a target is cast\n  q = [x] as bf16\n          ^");
}

TEST(RuleMistakes, AShapeThatACutDoesNotFitShowsTheCut) {
    const std::string text = said("w u8[8,6]\n", "source x=3\n* = [x, -]\ntarget x=2\na = - <- w shape(4,12)\n");
    EXPECT_EQ(text.substr(0, text.find('\n')),
              "line 4 of the rules: 'w' is u8[8@x,6], which is no layout in the shape (4,12) ('a')");
}

}  // namespace
}  // namespace reshard
