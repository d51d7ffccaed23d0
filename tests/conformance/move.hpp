// Moves arrays through an executor on one rank and compares every byte.
#pragma once

#include "workbench.hpp"

namespace reshard::conformance {

struct Manner {
    int runs = 1;
    bool polled = false;                                 ///< drive by test() instead of wait()
    std::vector<std::vector<std::size_t>> buckets = {};  ///< buckets of the items; empty: one bucket
    bool donate = false;
    std::vector<std::vector<std::size_t>> together = {};  ///< as in ListPlan; if given, all plans run as steps
};

/// Prepares, binds and runs, and expects right results on this rank. Collective.
void expect_moves(Backend& backend, const std::vector<Item>& items, const Manner& manner = {});

/// Calls expect_moves on every rank of the harness.
void expect_moves_everywhere(const std::vector<Item>& items, const Manner& manner = {});

/// The plan of one step, from text: plan_of("x=2", "f32[4@x]", StepKind::all_gather, "f32[4]"). If the step changes
/// nothing, the plan has no step. Fails the test and returns nullopt if the text does not parse or is not typed.
std::optional<Plan> plan_of(std::string_view mesh, std::string_view source, StepKind kind, std::string_view target);

}  // namespace reshard::conformance
