// One array on one rank: its buffers, their expected contents before and after a run, and the owner of their memory.
#pragma once

#include "array.hpp"

namespace reshard::conformance {

/// One array of a list: its plan, and the storages of its tiles on each rank.
struct Item {
    Plan plan;
    Style source = Style::row_major;
    Style target = Style::row_major;
};

/// Buffers of one array on one rank, with their expected contents before and after.
struct Workbench {
    Workbench(const Item& item, Index rank, std::uint64_t salt, Index workspace_bytes, bool donate = false);
    [[nodiscard]] Buffers buffers();
    /// Empty if the target is right, the source is unchanged (if donated, outside its tile), and nothing past the
    /// workspace is written.
    [[nodiscard]] std::string wrong() const;
    /// Takes contents and expected results from a fresh bench of the same item. Bound memory stays in place.
    void refill(const Workbench& fresh);

    Image source;
    Image target;
    std::vector<std::byte> workspace;
    Image source_wanted;
    Image target_wanted;
    Index workspace_bytes = 0;

private:
    [[nodiscard]] Image outside(const Image& image) const;  ///< the part of a source that a run must not change
    Layout layout_;                                         // layout of the source
    Style style_;
    Index rank_;
    bool donate_;
};

/// Storages of an item on a rank.
Storages storages_of(const Item& item, Index rank);

/// The caller's own memory, registered. It begins and ends within pages, and even small memory crosses a page border.
/// Fails the test and returns nothing if it cannot be registered.
std::unique_ptr<Memory> registered_memory(Backend& backend, Index bytes);

/// The memory of the tiles of one array: the caller's, allocated by the backend, or registered. The contents are copied
/// from the bench before a run and back to it after.
struct Lent {
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;

    [[nodiscard]] Buffers buffers(Workbench& bench) const;
    void lend(const Workbench& bench) const;
    void take_back(Workbench& bench) const;
};

}  // namespace reshard::conformance
