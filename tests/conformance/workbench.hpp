// One array on one rank: its buffers, what they must hold before and after a run, and whose memory they lie in.
#pragma once

#include "array.hpp"

namespace reshard::conformance {

/// One array of a list: its plan, and how its tiles lie on each rank.
struct Item {
    Plan plan;
    Style source = Style::row_major;
    Style target = Style::row_major;
};

/// Buffers of one array on one rank, with what they must hold before and after.
struct Workbench {
    Workbench(const Item& item, Index rank, std::uint64_t salt, Index workspace_bytes, bool donate = false);
    [[nodiscard]] Buffers buffers();
    /// Empty when the target is right, the source untouched, of a donated one what is not the tile's, and nothing past
    /// the workspace written.
    [[nodiscard]] std::string wrong() const;
    /// Contents and what is wanted, of the same item; what is bound stays where it is.
    void refill(const Workbench& fresh);

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

/// Memory of the caller's own that is registered. It begins and ends within pages, and small memory crosses the border
/// of two. Fails the test and returns nothing where it cannot be registered.
std::unique_ptr<Memory> registered_memory(Backend& backend, Index bytes);

/// Whose memory the tiles of one array lie in: the caller's, or what peers may reach: allocated or registered. The
/// contents go from the bench before a run and back to it after.
struct Lent {
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;

    [[nodiscard]] Buffers buffers(Workbench& bench) const;
    void lend(const Workbench& bench) const;
    void take_back(Workbench& bench) const;
};

}  // namespace reshard::conformance
