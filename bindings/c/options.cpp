// Options of the caller's, read field by field as the table of options names them.
#include <algorithm>
#include <cstddef>

#include "bindings/c/answer.hpp"

namespace reshard::c {
namespace {

std::vector<std::string> names_in(std::string_view text) {
    std::vector<std::string> names;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        names.emplace_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return names;
}

// Reads a field of the caller's structure into a field of Options, by its type.
template <class Enum>
requires std::is_enum_v<Enum> Result<void> read(std::int32_t given, const char* field, Enum& into) {
    int last = 0;
    while (last < given && !name(static_cast<Enum>(last + 1)).empty()) ++last;
    if (given < 0 || given > last)
        return fail(Code::usage, std::string("`") + field + "` is " + std::to_string(given) + ", it is 0 to " +
                                     std::to_string(last));
    into = static_cast<Enum>(given);
    return {};
}
Result<void> read(std::int32_t given, const char*, bool& into) {
    into = given != 0;
    return {};
}
Result<void> read(std::int64_t given, const char*, std::optional<Index>& into) {
    if (given >= 0) into = given;
    return {};
}
Result<void> read(std::int64_t given, const char* field, Index& into) {
    RESHARD_CHECK(need_count(given, 0, field));
    into = given;
    return {};
}
Result<void> read(const reshard_machine* given, const char*, Machine& into) {
    RESHARD_TRY(const auto* const machine, may_have(given));
    if (machine != nullptr) into = machine->machine;
    return {};
}
Result<void> read(const char* given, const char*, std::vector<std::string>& into) {
    if (given != nullptr) into = names_in(given);
    return {};
}

// Given is reshard_options. A template may leave out rows that C does not have.
template <class Given>
Result<void> read_options(const Given& given, Options& options) {
#define RESHARD_OPTION(kind, field, member, ...) \
    if constexpr (requires { given.field; }) RESHARD_CHECK(read(given.field, #field, options.member));
#include "src/tables/options.def"
    return {};
}

Result<Capabilities> capabilities_of(const reshard_options& given) {
    RESHARD_TRY(const auto* const backend, may_have(given.backend));
    if (backend != nullptr) return backend->backend.capabilities();
    RESHARD_CHECK(need_count(given.ranks_per_node, 1, "ranks_per_node"));
    Capabilities capabilities;
#define RESHARD_CAPABILITY(kind, name, ...) capabilities.name = static_cast<decltype(capabilities.name)>(given.name);
#include "src/tables/capabilities.def"
    return capabilities;
}

}  // namespace

Result<Options> options_of(const reshard_options* given) {
    constexpr std::size_t of_version_0_2 =
        offsetof(reshard_options, disabled_rules) + sizeof(reshard_options::disabled_rules);
    RESHARD_TRY(const auto& asked,
                structure<reshard_options>(given, RESHARD_OPTIONS_INITIALIZER, "reshard_options", of_version_0_2));
    Options options;
    RESHARD_CHECK(read_options(asked, options));
    RESHARD_ASSIGN(options.capabilities, capabilities_of(asked));
    return options;
}

}  // namespace reshard::c
