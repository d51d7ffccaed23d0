// Limits on texts and first bytes from outside: depth, size and number, and how they are shown.
#include <gtest/gtest.h>

#include <time.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "files/formats/folder.hpp"
#include "files/formats/json_text.hpp"
#include "files/formats/other_formats.hpp"
#include "reshard/files/convert.hpp"

namespace reshard::files {
namespace {

using namespace std::string_literals;

std::string repeated(const std::string& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

std::string refusal(const std::string& text) {
    const auto read = parse_object(text, "it");
    return read ? "" : read.error().message;
}

TEST(JsonText, DepthIsBounded) {
    for (const auto& [open, close] : {std::pair("["s, "]"s), std::pair("{\"a\":"s, "}"s)}) {
        const auto nested = [&, open = open, close = close](std::size_t depth) {
            return "{\"a\":" + repeated(open, depth - 1) + "1" + repeated(close, depth - 1) + "}";
        };
        EXPECT_EQ(refusal(nested(json_depth_max)), "");
        EXPECT_NE(refusal(nested(json_depth_max + 1)).find("more than 64 deep"), std::string::npos);
        EXPECT_NE(refusal(nested(1000000)).find("more than 64 deep"), std::string::npos);
        EXPECT_NE(refusal("{\"a\":" + repeated(open, 1000000)).find("more than 64 deep"), std::string::npos);
    }
    EXPECT_NE(refusal(repeated("[", 1000000)).find("is no JSON object"), std::string::npos);
}

TEST(JsonText, MemoryIsBounded) {
    // The least bytes that each value takes in memory.
    for (const auto& [one, bytes] : {std::pair("0,", 16), std::pair("[],", 48), std::pair("{\"a\":0},", 144)}) {
        const std::string text = "{\"a\":[" + repeated(one, json_bytes_max / static_cast<std::size_t>(bytes)) + "0]}";
        EXPECT_NE(refusal(text).find("more than 256 MiB"), std::string::npos) << one;
    }
    // Read one member at a time, the text may be longer than the memory limit.
    const bool as_text = std::getenv("RESHARD_LONG") != nullptr;  // a text takes long to read
    const std::string member = as_text ? "\"" + std::string(json_bytes_max / 2, 'x') + "\""
                                       : "[" + repeated("[],", json_bytes_max / 256) + "0]";
    std::string text = "{";
    for (int i = 0; i < 3; ++i) text += fmt::format("\"{}\":{},", i, member);
    text += "\"last\":0}";
    EXPECT_NE(refusal(text).find("more than 256 MiB"), std::string::npos);
    int met = 0;
    ASSERT_TRUE(read_members(text, "it", "", [&](const JsonMember&) -> Result<void> { return ++met, Result<void>(); }));
    EXPECT_EQ(met, 4);
}

TEST(JsonText, NothingStandsBeforeOrBehindTheValue) {
    EXPECT_EQ(refusal("{}"), "");
    EXPECT_EQ(refusal(" {} \n\t "), "");
    EXPECT_NE(refusal("\xef\xbb\xbf{}").find("a byte order mark"), std::string::npos);
    EXPECT_NE(refusal("{}\0"s).find("at byte 3 is a NUL"), std::string::npos);
    EXPECT_NE(refusal("{}\0garbage"s).find("at byte 3 is a NUL"), std::string::npos);
    EXPECT_NE(refusal("{\0}"s).find("a NUL"), std::string::npos);
    for (const char* const text :
         {"", "{} x", "{}{}", "[]", "1", "\"a\"", "null", "{", "{\"a\":}", "{\"a\":1,}", "{\"\xff\":1}"})
        EXPECT_NE(refusal(text).find("is no JSON object"), std::string::npos) << text;
    EXPECT_NE(refusal("{\"a\":{\"b\":1,\"b\":2}}").find("has 'b' twice"), std::string::npos);
    EXPECT_NE(refusal("{\"a\":1,\"c\":{\"a\":1},\"a\":2}").find("has 'a' twice"), std::string::npos);
    EXPECT_EQ(refusal("{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]}}"), "");
}

TEST(JsonText, MembersWithinOneComeOneByOne) {
    const std::string text = "{\"m\":{\"a\":1,\"b\":[2,{\"c\":3}]},\"n\":{\"m\":{\"d\":4}},\"e\":5}";
    std::vector<std::string> met;
    ASSERT_TRUE(read_members(text, "it", "m", [&](const JsonMember& member) -> Result<void> {
        met.push_back(fmt::format("{}.{}={}", member.within, member.name, member.value.dump()));
        return {};
    }));
    EXPECT_EQ(met, (std::vector<std::string>{"m.a=1", "m.b=[2,{\"c\":3}]", ".m={}", ".n={\"m\":{\"d\":4}}", ".e=5"}));
    EXPECT_FALSE(
        read_members("{\"m\":{\"a\":1,\"a\":2}}", "it", "m", [](const JsonMember&) -> Result<void> { return {}; }));
    const auto stopped =
        read_members(text, "it", "m", [](const JsonMember&) -> Result<void> { return fail(Code::mismatch, "stop"); });
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().message, "stop");
}

Json drawn(std::mt19937& random, int depth) {
    switch (random() % (depth > 0 ? 8 : 6)) {
        case 0:
            return nullptr;
        case 1:
            return random() % 2 == 0;
        case 2:
            return static_cast<std::int64_t>(random()) - (std::int64_t{1} << 31);
        case 3:
            return static_cast<double>(random()) / 7;
        case 4:
        case 5:
            return fmt::format("{}\n\"\\\u00e9", random() % 100);
        case 6: {
            Json list = Json::array();
            for (auto i = random() % 4; i > 0; --i) list.push_back(drawn(random, depth - 1));
            return list;
        }
        default: {
            Json object = Json::object();
            for (auto i = random() % 4; i > 0; --i) object[fmt::format("{}", random() % 50)] = drawn(random, depth - 1);
            return object;
        }
    }
}

TEST(JsonText, WhatIsReadIsWhatWasWritten) {
    std::mt19937 random(5);
    for (int i = 0; i < 500; ++i) {
        const Json json = {{"a", drawn(random, 5)}, {"b", drawn(random, 5)}};
        const auto read = parse_object(json.dump(i % 3 - 1), "it");
        ASSERT_TRUE(read.has_value()) << json;
        EXPECT_EQ(read->dump(), json.dump());
    }
}

TEST(Printable, HidesNothingAndActsOnNothing) {
    const auto same = [](std::string_view text) { EXPECT_EQ(printable(text), text); };
    for (const char* const text :
         {"", "model.layers.0.w", "poids.\u00e9", "\u4e2d\u6587", "\\x1b", "a b", "'~", "\U0001f600"})
        same(text);
    const std::pair<std::string, std::string> shown[] = {{"\x1b[31mred", "\\x1b[31mred"},
                                                         {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
                                                         {"a\0b"s, "a\\x00b"},
                                                         {"\x7f", "\\x7f"},
                                                         {"\u009b1m", "\\u009b1m"},
                                                         {"\u202egnp", "\\u202egnp"},
                                                         {"\u2066", "\\u2066"},
                                                         {"\u200b", "\\u200b"},
                                                         {"\ufeff", "\\ufeff"},
                                                         {"\u2028", "\\u2028"},
                                                         {"\xff", "\\xff"},
                                                         {"\xc3", "\\xc3"},
                                                         {"\xc0\xaf", "\\xc0\\xaf"},
                                                         {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                                                         {"\xe4\xb8", "\\xe4\\xb8"},
                                                         {"\U000e0041", "\\ue0041"},
                                                         {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}};
    for (const auto& [text, expected] : shown) EXPECT_EQ(printable(text), expected);
    std::mt19937 random(11);
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (auto size = random() % 8; size > 0; --size) text += static_cast<char>(random());
        const std::string once = printable(text);
        EXPECT_EQ(printable(once), once);
        EXPECT_NO_THROW(static_cast<void>(nlohmann::json(once).dump())) << "not UTF-8";
    }
}

TEST(Printable, LongTextsAreCutBetweenCharacters) {
    EXPECT_EQ(shortened("abc", 3), "abc");
    EXPECT_EQ(shortened("abcd", 3), "abc...");
    EXPECT_EQ(shortened("ab\u4e2d\u6587", 3), "ab...");
    EXPECT_EQ(shortened("ab\u4e2d\u6587", 5), "ab\u4e2d...");
    EXPECT_EQ(in_quotes("a\nb"), "'a\\x0ab'");
    EXPECT_LE(in_quotes(std::string(1 << 20, 'x')).size(), 210U);
}

TEST(Errors, AreShownOnOneLineWithTheirCaret) {
    const Error error{Code::syntax, "no '\x1b[2J'\n",
                      "ab\x1b"
                      "c\ndef",
                      5};
    EXPECT_EQ(describe(error), "no '\\x1b[2J'\\x0a\n  ab\\x1bc\\x0adef\n  " + std::string(11, ' ') + "^");
}

TEST(OtherFormats, AreToldByTheirFirstBytes) {
    const auto told = [](const std::string& start) { return other_format(start).value_or("nothing"); };
    const std::string zip = "PK\x03\x04" + std::string(22, '\0');
    const std::pair<std::string, std::string> known[] = {
        {zip + "\x10\0\0\0archive/data.pkl"s, "torch.save"},
        {zip + "\x09\0\0\0arr_0.npy"s, ".npz"},
        {zip + "\x09\0\0\0zarr.json"s, "a zip archive"},
        {"PK\x03\x04", "a zip archive"},
        {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19", "before version 1.6"},
        {"\x80\x04\x95", "a pickle"},
        {"GGUF\x03", "GGUF"},
        {"\x89HDF\r\n\x1a\n", "HDF5"},
        {"\x93NUMPY", "ends in .npy"},
        {"\x1f\x8b\x08", "gzip"},
        {"version https://git-lfs.github.com/spec/v1", "Git LFS"},
        {"{\"a\": 1}", "JSON"},
        {"", "an empty file"}};
    for (const auto& [start, expected] : known) EXPECT_NE(told(start).find(expected), std::string::npos) << told(start);
    EXPECT_EQ(told("\x80\x02\0\0\0\0\0\0{}"s), "nothing");  // a header of 640 bytes
    EXPECT_EQ(told("\x40\0\0\0\0\0\0\0{}"s), "nothing");
    const std::vector<std::string> names = {".metadata", "__0_0.distcp"};
    EXPECT_NE(other_folder(names).value_or("").find("to_safetensors"), std::string::npos);
    EXPECT_FALSE(other_folder(std::vector<std::string>{"a.txt", ".git"}));
}

// This thread's seconds for the work, the least of three runs, because other work only adds time.
double seconds_of(const std::function<void()>& work) {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
        std::array<timespec, 2> at{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at[0]);
        work();
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at[1]);
        least = std::min(least, static_cast<double>(at[1].tv_sec - at[0].tv_sec) +
                                    1e-9 * static_cast<double>(at[1].tv_nsec - at[0].tv_nsec));
    }
    return least;
}

// Eight times the size takes about eight times as long. A quadratic reader would take 64 times as long.
template <class Make>
void grows_as(const char* what, std::size_t few, const Make& make) {
#ifdef __SANITIZE_ADDRESS__
    few /= 8;
#endif
    const auto small = make(few);
    const auto large = make(8 * few);
    const double ratio = seconds_of(large) / seconds_of(small);
    EXPECT_LT(ratio, 24) << what << " grows with the square of its length";
}

std::string tensor_name(std::size_t i) { return fmt::format("model.layers.{}.mlp.experts.{}.weight", i / 64, i % 64); }

std::vector<SafetensorsEntry> entries(std::size_t count) {
    std::vector<SafetensorsEntry> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back({tensor_name(i), DType::f32, {1}});
    return all;
}

using Work = std::function<void()>;

TEST(Growth, HeadersAreReadAndWrittenInLinearTime) {
    grows_as("writing a header", 4000, [](std::size_t count) -> Work {
        return [all = entries(count)]() mutable { ASSERT_TRUE(write_safetensors(all, {}).has_value()); };
    });
    grows_as("reading a header", 4000, [](std::size_t count) -> Work {
        auto all = entries(count);
        SavedOffsets offsets;
        for (const SafetensorsEntry& entry : all) offsets.emplace(entry.name, std::vector<Index>{0});
        const auto head = write_safetensors(all, dcp_metadata(offsets));
        const Index bytes = all.back().end;
        return [text = head->substr(8), bytes, count] {
            const auto header = parse_safetensors(text, bytes);
            ASSERT_TRUE(header.has_value()) << header.error().message;
            ASSERT_EQ(header->tensors.size(), count);
            const auto said = saved_offsets(*header);
            ASSERT_TRUE(said.has_value() && *said && (*said)->size() == count);
        };
    });
}

TEST(Growth, IndicesAreReadInLinearTime) {
    grows_as("reading an index", 4000, [](std::size_t count) -> Work {
        std::string text = "{\"metadata\":{},\"weight_map\":{";
        for (std::size_t i = 0; i < count; ++i)
            text += fmt::format("{}\"{}\":\"model-{}.safetensors\"", i > 0 ? "," : "", tensor_name(i), i / 100);
        return [text = text + "}}", count] {
            const auto index = parse_index(text);
            ASSERT_TRUE(index && index->size() == count);
        };
    });
}

TEST(Growth, RulesOfEachTensorAreAppliedInLinearTime) {
    grows_as("applying rules", 1000, [](std::size_t count) -> Work {
        std::string source = "source x=2\n";
        std::string target = "target file=1\n";
        std::vector<ListedTensor> list;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string name = tensor_name(i);
            source += name + " = [x]\n";
            target += i % 3 == 0   ? name + " = -\n"
                      : i % 3 == 1 ? "new." + name + " = - <- " + name + "\n"
                                   : "drop " + name + "\n";
            list.push_back({name, DType::f32, {4}});
        }
        return [rules = source + target, list, count] {
            const auto model = apply_rules(rules, list);
            ASSERT_TRUE(model.has_value()) << model.error().message;
            ASSERT_EQ(model->targets.size(), count - count / 3);
        };
    });
}

TEST(Growth, BoxesOfAGridAreHeldAgainstEachOtherInLinearTime) {
    // In six dimensions most boxes begin at the same index of one dimension.
    grows_as("looking for overlaps", 4096, [](std::size_t count) -> Work {
        StoredTensor tensor{"a", DType::f32, std::vector<Index>(6, 1), {}};
        for (std::size_t k = 0, all = 1; all < count; all *= 2) tensor.shape[k++ % tensor.shape.size()] *= 2;
        Box box = whole_box(std::vector<Index>(6, 1));
        for (std::size_t i = 0; i < count; ++i) {
            tensor.boxes.push_back({box, 0, 0, {}});
            for (std::size_t k = 0; k < box.size(); ++k) {
                box[k] = {box[k].begin + 1, box[k].end + 1};
                if (box[k].end <= tensor.shape[k]) break;
                box[k] = {0, 1};
            }
        }
        return [tensor] {
            const Coverage found = coverage(tensor);
            ASSERT_FALSE(found.twice);
            ASSERT_EQ(found.missing, 0);
        };
    });
}

TEST(CoverageOfBoxes, IsThatOfEachPair) {
    std::mt19937 random(3);
    int apart = 0;
    for (int round = 0; round < 3000; ++round) {
        const std::size_t rank = 1 + random() % 3;
        StoredTensor tensor{"a", DType::f32, std::vector<Index>(rank, 6), {}};
        for (auto count = random() % 7; count > 0; --count) {
            Box box;
            for (std::size_t k = 0; k < rank; ++k) {
                const auto begin = static_cast<Index>(random() % 5);
                box.push_back({begin, begin + 1 + static_cast<Index>(random() % 2)});
            }
            tensor.boxes.push_back({std::move(box), 0, 0, {}});
        }
        bool twice = false;
        for (std::size_t i = 0; i < tensor.boxes.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                twice = twice || count(intersect(tensor.boxes[i].box, tensor.boxes[j].box)) > 0;
        ASSERT_EQ(coverage(tensor).twice, twice) << round;
        if (!twice && tensor.boxes.size() > 2) ++apart;
    }
    EXPECT_GT(apart, 100);
}

}  // namespace
}  // namespace reshard::files
