// The names in the tables, and the promise that no table forgets a field.
#include <fmt/format.h>

#include <initializer_list>

#include "reshard/problem.hpp"

namespace reshard {
namespace {

// How many fields an aggregate has, as far as 16. Each is made from {}.
template <class T>
constexpr int field_count() {
    return requires { T{{}}; }
    +requires {
        T{{}, {}};
    }
    +requires {
        T{{}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    }
    +requires {
        T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
    };
}

// Rows of options.def for fields of the structure that is reached by `path`.
constexpr int options_at(std::string_view path) {
    int rows = 0;
    const auto count = [&](std::string_view member) {
        if (member.substr(0, member.rfind('.') + 1) == path) ++rows;
    };
#define RESHARD_OPTION(kind, name, member, ...) count(#member);
#define RESHARD_INNER_OPTION(member) count(#member);
#include "src/tables/options.def"
    return rows;
}
static_assert(options_at("limits.memory.") == field_count<MemoryPolicy>(), "options.def lacks a field of MemoryPolicy");
static_assert(options_at("limits.") + 1 == field_count<Limits>(), "options.def lacks a field of Limits");
static_assert(options_at("") + 1 == field_count<Options>(), "options.def lacks a field of Options");

constexpr int shown_of_verdict() {
    int rows = 1;  // moves, which are shown step by step
#define RESHARD_SHOWN(slot, c, json, python, kind, value, about) \
    rows += std::string_view(#value).starts_with("made.verdict().") ? 1 : 0;
#include "src/tables/verdict.def"
    return rows;
}
static_assert(shown_of_verdict() == field_count<Verdict>(), "verdict.def lacks a field of Verdict");

static_assert(field_count<Capabilities>() == 0
#define RESHARD_CAPABILITY(...) +1
#include "src/tables/capabilities.def"
              ,
              "capabilities.def lacks a field of Capabilities");
static_assert(field_count<Level>() == 0
#define RESHARD_LEVEL(...) +1
#include "src/tables/levels.def"
              ,
              "levels.def lacks a field of Level");
static_assert(field_count<Machine>() == 0
#define RESHARD_MACHINE(...) +1
#include "src/tables/levels.def"
              ,
              "levels.def lacks a field of Machine");

// Rows stand in the order of the enumerators, since C counts them. An enumerator without a row is a compiler warning.
template <class Enum>
constexpr bool in_order(std::initializer_list<Enum> rows) {
    int number = 0;
    for (const Enum row : rows)
        if (static_cast<int>(row) != number++) return false;
    return true;
}
static_assert(in_order({
#define RESHARD_CODE(name, ...) Code::name,
#include "src/tables/codes.def"
}));
static_assert(in_order({
#define RESHARD_OBJECTIVE(value, ...) Objective::value,
#include "src/tables/options.def"
}));
static_assert(in_order({
#define RESHARD_VOCABULARY(value, ...) Vocabulary::value,
#include "src/tables/options.def"
}));

template <class Enum>
Result<Enum> parse(const char* wanted, std::string_view text) {
    std::string all;
    for (int i = 0; !name(static_cast<Enum>(i)).empty(); ++i) {
        const std::string_view known = name(static_cast<Enum>(i));
        if (known == text) return static_cast<Enum>(i);
        const bool last = name(static_cast<Enum>(i + 1)).empty();
        all += fmt::format("{}{}", i == 0 ? "" : last ? " or " : ", ", known);
    }
    return fail(Code::syntax, fmt::format("'{}' is not {}: {}", text.substr(0, 40), wanted, all));
}

}  // namespace

std::string_view name(Code code) {
    switch (code) {
#define RESHARD_CODE(name, ...) \
    case Code::name:            \
        return #name;
#include "src/tables/codes.def"
    }
    return "unknown";
}
// Empty for a number that no enumerator has.
std::string_view name(Objective objective) {
    switch (objective) {
#define RESHARD_OBJECTIVE(value, ...) \
    case Objective::value:            \
        return #value;
#include "src/tables/options.def"
    }
    return "";
}
std::string_view name(Vocabulary vocabulary) {
    switch (vocabulary) {
#define RESHARD_VOCABULARY(value, ...) \
    case Vocabulary::value:            \
        return #value;
#include "src/tables/options.def"
    }
    return "";
}

Result<Objective> parse_objective(std::string_view text) { return parse<Objective>("an objective", text); }
Result<Vocabulary> parse_vocabulary(std::string_view text) { return parse<Vocabulary>("a vocabulary", text); }

}  // namespace reshard
