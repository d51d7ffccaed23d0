// Moves arrays through an executor on one rank and compares every byte.
#pragma once

#include "array.hpp"

namespace reshard::conformance {

/// One array of a list: its plan, and how its tiles lie on each rank.
struct Item {
    Plan plan;
    Style source = Style::row_major;
    Style target = Style::row_major;
};

struct Manner {
    int runs = 1;
    bool polled = false;                                 ///< drive by test() instead of wait()
    std::vector<std::vector<std::size_t>> buckets = {};  ///< of the items; all in one when not given
    bool donate = false;
};

/// Prepares, binds and runs; expects right results on this rank. Collective.
void expect_moves(Backend& backend, const std::vector<Item>& items, const Manner& manner = {});

/// On every rank of the harness.
void expect_moves_everywhere(const std::vector<Item>& items, const Manner& manner = {});

/// The plan of one step, from text: plan_of("x=2", "f32[4@x]", StepKind::all_gather, "f32[4]"). Without
/// the step where it changes nothing. Fails the test and returns nothing when it does not parse or is not typed.
std::optional<Plan> plan_of(std::string_view mesh, std::string_view source, StepKind kind, std::string_view target);

/// Buffers of one array on one rank, with what they must hold before and after.
struct Workbench {
    Workbench(const Item& item, Index rank, std::uint64_t salt, Index workspace_bytes, bool donate = false);
    [[nodiscard]] Buffers buffers();
    /// Empty when the target is right, the source untouched, of a donated one what is not the tile's, and nothing past
    /// the workspace written.
    [[nodiscard]] std::string wrong() const;

    Image source;
    Image target;
    std::vector<std::byte> workspace;
    Image source_wanted;
    Image target_wanted;
    Index workspace_bytes = 0;

private:
    [[nodiscard]] Image outside(const Image& image) const;  ///< of a source what a run must leave as it was
    Layout layout_;                                         // of the source
    Style style_;
    Index rank_;
    bool donate_;
};

/// Storages of an item on a rank.
Storages storages_of(const Item& item, Index rank);

}  // namespace reshard::conformance
