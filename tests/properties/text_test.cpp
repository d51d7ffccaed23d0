// Text: printed values parse to the same values, text that a person writes means what it says, and no bytes crash.
#include "reshard/text.hpp"
#include "src/tables/dtypes.hpp"

#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

TEST(TextProperty, MeshesAndLayoutsSurviveTheRoundTrip) {
    check_property(cases(2000), [] {
        const Spec spec = *layouts();
        const Layout layout = layout_of(spec);
        const auto mesh = parse_mesh(mesh_text(spec));
        RC_ASSERT(mesh.has_value());
        RC_ASSERT(*mesh == layout.mesh);
        RC_ASSERT(*parse_mesh(format(layout.mesh)) == layout.mesh);
        // First the text of a person, then the library's text of the same layout.
        const auto written = parse_layout(*mesh, layout_text(spec));
        if (!written) RC_LOG() << describe(written.error());
        RC_ASSERT(written.has_value());
        RC_ASSERT(*written == layout);
        const auto printed = parse_layout(*mesh, format(layout));
        RC_LOG() << format(layout);
        RC_ASSERT(printed.has_value());
        RC_ASSERT(*printed == layout);
        RC_ASSERT(format(*printed) == format(layout));
    });
}

TEST(TextProperty, EveryElementTypeIsReadAsItIsPrinted) {
    for (int i = 0; i < std::ssize(tables::dtypes); ++i) {
        const auto dtype = static_cast<DType>(i);
        const auto parsed = parse_dtype(name(dtype));
        ASSERT_TRUE(parsed.has_value()) << name(dtype);
        EXPECT_EQ(*parsed, dtype);
        const auto layout = parse_layout(Mesh{{"x", 2}}, std::string(name(dtype)) + "[4@x]");
        ASSERT_TRUE(layout.has_value()) << name(dtype);
        EXPECT_EQ(layout->dtype, dtype);
    }
}

/// One to four random edits of valid text.
std::string damaged(std::string text) {
    static const std::string alphabet = "f32[]{}(),:@=xyzwU0123456789 \n\t-+.e\"\\\0\xff\x80" + std::string(1, '\0');
    const auto edits = *between(1, 5);
    for (int i = 0; i < edits; ++i) {
        const auto where = *between<std::size_t>(0, text.size() + 1);
        const char letter = alphabet[*between<std::size_t>(0, alphabet.size())];
        switch (*between(0, 5)) {
            case 0:
                text.insert(where, 1, letter);
                break;
            case 1:
                if (where < text.size()) text.erase(where, 1);
                break;
            case 2:
                if (where < text.size()) text[where] = letter;
                break;
            case 3:
                text.insert(where, "99999999999999999999");
                break;
            default:
                text.resize(where);
        }
    }
    return text;
}

template <class T>
void assert_well_refused(const Result<T>& result) {
    if (result) return;
    const Error& error = result.error();
    RC_ASSERT(!error.message.empty());
    RC_ASSERT(error.offset <= error.text.size());
    RC_ASSERT(!describe(error).empty());
}

TEST(TextProperty, DamagedTextNeverCrashesAndPointsInsideItself) {
    int refused = 0;
    check_property(cases(5000), [&] {
        const Spec spec = *layouts({.devices_max = 64});
        const Layout layout = layout_of(spec);
        const std::string mesh = damaged(mesh_text(spec));
        RC_LOG() << mesh;
        assert_well_refused(parse_mesh(mesh));
        const std::string text = damaged(layout_text(spec));
        RC_LOG() << text;
        const auto parsed = parse_layout(layout.mesh, text);
        assert_well_refused(parsed);
        // Accepted text is a layout, which prints and reads back as itself.
        if (!parsed) {
            ++refused;
            return;
        }
        RC_ASSERT(validate(*parsed).has_value());
        const auto again = parse_layout(parsed->mesh, format(*parsed));
        RC_ASSERT(again.has_value());
        RC_ASSERT(*again == *parsed);
    });
    EXPECT_GT(refused, cases(5000) / 4);
}

TEST(TextProperty, DamagedPlansNeverCrash) {
    int refused = 0;
    check_property(cases(3000), [&] {
        const std::string text = damaged(format(plan_of(*walks())));
        RC_LOG() << text;
        const auto parsed = parse_plan(text);
        assert_well_refused(parsed);
        if (!parsed) ++refused;
        if (parsed) RC_ASSERT(parse_plan(format(*parsed)).has_value());
    });
    EXPECT_GT(refused, cases(3000) / 4);
}

TEST(TextProperty, DamagedWordsAndSizesNeverCrash) {
    check_property(cases(3000), [] {
        assert_well_refused(parse_dtype(damaged("float8_e4m3fn")));
        assert_well_refused(parse_step_kind(damaged("reduce_scatter")));
        assert_well_refused(parse_bytes(damaged("1.5GiB")));
    });
}

TEST(TextProperty, SizesForPeopleReadBackCloseEnough) {
    check_property(cases(1000), [] {
        const auto bits = *between(0, 62);
        const Index bytes = *between<Index>(0, (Index{1} << bits) + 1);
        const auto parsed = parse_bytes(std::to_string(bytes));
        RC_ASSERT(parsed.has_value());
        RC_ASSERT(*parsed == bytes);
        std::string text = format_bytes(bytes);
        std::erase(text, ' ');
        const auto shown = parse_bytes(text);
        RC_LOG() << bytes << " shown as " << text;
        RC_ASSERT(shown.has_value());
        // With one digit after the point, the error is at most a twentieth of the unit, and the number is at least 1.
        RC_ASSERT(std::abs(static_cast<double>(*shown - bytes)) <= 0.05 * static_cast<double>(bytes) + 1);
    });
}

}  // namespace
}  // namespace reshard::test
