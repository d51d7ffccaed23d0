// The names in the tables, and the promise that no table forgets a field.
#include <fmt/format.h>

#include <array>

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

constexpr int capability_rows = 0
#define RESHARD_CAPABILITY(...) +1
#include "src/tables/capabilities.def"
    ;
static_assert(capability_rows == field_count<Capabilities>(), "capabilities.def lacks a field of Capabilities");

constexpr int level_rows = 0
#define RESHARD_LEVEL(...) +1
#include "src/tables/levels.def"
    ;
static_assert(level_rows == field_count<Level>(), "levels.def lacks a field of Level");

constexpr int machine_rows = 0
#define RESHARD_MACHINE(...) +1
#include "src/tables/levels.def"
    ;
static_assert(machine_rows == field_count<Machine>(), "levels.def lacks a field of Machine");

constexpr auto code_names = std::to_array<std::string_view>({
#define RESHARD_CODE(name, ...) #name,
#include "src/tables/codes.def"
});
constexpr auto objective_names = std::to_array<std::string_view>({
#define RESHARD_OBJECTIVE(value, ...) #value,
#include "src/tables/options.def"
});
constexpr auto vocabulary_names = std::to_array<std::string_view>({
#define RESHARD_VOCABULARY(value, ...) #value,
#include "src/tables/options.def"
});

// Rows stand in the order of the enumerators. The compiler warns of an enumerator without a row.
constexpr bool in_order(Code code) {
    switch (code) {
#define RESHARD_CODE(name, ...) \
    case Code::name:            \
        return code_names[static_cast<std::size_t>(code)] == #name;
#include "src/tables/codes.def"
    }
    return false;
}
constexpr bool in_order(Objective objective) {
    switch (objective) {
#define RESHARD_OBJECTIVE(value, ...) \
    case Objective::value:            \
        return objective_names[static_cast<std::size_t>(objective)] == #value;
#include "src/tables/options.def"
    }
    return false;
}
constexpr bool in_order(Vocabulary vocabulary) {
    switch (vocabulary) {
#define RESHARD_VOCABULARY(value, ...) \
    case Vocabulary::value:            \
        return vocabulary_names[static_cast<std::size_t>(vocabulary)] == #value;
#include "src/tables/options.def"
    }
    return false;
}
template <class Enum, std::size_t count>
constexpr bool all_in_order(const std::array<std::string_view, count>&) {
    for (std::size_t i = 0; i < count; ++i)
        if (!in_order(static_cast<Enum>(i))) return false;
    return true;
}
static_assert(all_in_order<Code>(code_names) && all_in_order<Objective>(objective_names) &&
              all_in_order<Vocabulary>(vocabulary_names));

// Empty for a number that no enumerator has.
template <class Enum, std::size_t count>
std::string_view name_in(const std::array<std::string_view, count>& names, Enum value) {
    const auto place = static_cast<std::size_t>(value);
    return place < count ? names[place] : "";
}

template <class Enum, std::size_t count>
Result<Enum> parse(const std::array<std::string_view, count>& names, const char* wanted, std::string_view text) {
    std::string all(names[0]);
    for (std::size_t i = 0; i < count; ++i) {
        if (names[i] == text) return static_cast<Enum>(i);
        if (i > 0) all += fmt::format("{}{}", i + 1 < count ? ", " : " or ", names[i]);
    }
    return fail(Code::syntax, fmt::format("'{}' is not {}: {}", text.substr(0, 40), wanted, all));
}

}  // namespace

std::string_view name(Code code) {
    const std::string_view known = name_in(code_names, code);
    return known.empty() ? "unknown" : known;
}
std::string_view name(Objective objective) { return name_in(objective_names, objective); }
std::string_view name(Vocabulary vocabulary) { return name_in(vocabulary_names, vocabulary); }

Result<Objective> parse_objective(std::string_view text) {
    return parse<Objective>(objective_names, "an objective", text);
}
Result<Vocabulary> parse_vocabulary(std::string_view text) {
    return parse<Vocabulary>(vocabulary_names, "a vocabulary", text);
}

}  // namespace reshard
