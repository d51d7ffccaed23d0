// What each kind of step does, from step_kinds.def. A kind without a row does not compile.
#pragma once

#include "reshard/planner/step.hpp"

namespace reshard {

struct StepTraits {
    std::string_view name;
    bool local = false;
    bool alias = false;
    bool reduces = false;
    bool fills = false;
    bool crosses = false;
    Index rounds = 1;
};

[[nodiscard]] constexpr StepTraits traits_of(StepKind kind) {
    switch (kind) {  // no default, so the compiler names a kind that has no row
#define RESHARD_STEP_KIND(name, local, alias, reduces, fills, crosses, rounds) \
    case StepKind::name:                                                       \
        return {#name, local, alias, reduces, fills, crosses, rounds};
#include "src/tables/step_kinds.def"
    }
    return {};
}

/// The public list holds every row in order, and the public is_local agrees with the rows.
consteval bool rows_are_public() {
    std::size_t row = 0;
#define RESHARD_STEP_KIND(name, local, alias, reduces, fills, crosses, rounds)                 \
    if (row >= all_step_kinds.size() || all_step_kinds[row++] != StepKind::name) return false; \
    if (is_local(StepKind::name) != (local)) return false;
#include "src/tables/step_kinds.def"
    return row == all_step_kinds.size();
}
static_assert(rows_are_public());

[[nodiscard]] constexpr bool is_alias(StepKind kind) { return traits_of(kind).alias; }
[[nodiscard]] constexpr bool reduces(StepKind kind) { return traits_of(kind).reduces; }
[[nodiscard]] constexpr bool fills(StepKind kind) { return traits_of(kind).fills; }
[[nodiscard]] constexpr bool changes_summands(StepKind kind) { return reduces(kind) || fills(kind); }
[[nodiscard]] constexpr bool crosses_groups(StepKind kind) { return traits_of(kind).crosses; }
[[nodiscard]] constexpr Index rounds_of(StepKind kind) { return traits_of(kind).rounds; }

}  // namespace reshard
