// Where the tiles between source and target lie. One rule, for the executor that follows it and the judge that states
// the footprint before anything runs.
#pragma once

#include "reshard/backend.hpp"

namespace reshard {

/// Where a tile starts; within the target it starts where the target tile does.
struct TilePlace {
    Place place = Place::workspace;
    Index offset_bytes = 0;
    friend bool operator==(const TilePlace&, const TilePlace&) = default;
};

struct TilePlaces {
    std::vector<std::size_t> written;  ///< the numbers (from 0) of the steps that write a tile, in order
    std::vector<TilePlace> places;     ///< where each of them writes; the last one writes the target
    Index workspace_bytes = 0;         ///< the same on every rank; saturates
};

/// The rule, in bytes of full tiles. A slice that another step follows is a view of what it reads and writes nothing.
/// Of the tiles that are written the last lies in the target. Counting back from it, the first, third, ... lie at the
/// start of the workspace; the second, fourth, ... lie in the target's memory where they fit into `target_room` bytes,
/// else in a second part of the workspace. So a step never reads and writes the same memory, and
///     workspace = largest tile of the odd ones + largest of the even ones that do not fit,
///     footprint = source tile + target tile + workspace.
[[nodiscard]] TilePlaces place_tiles(const Plan& plan, Index target_room);

/// Bytes that the target tile has on every device that holds a tile between: the smallest tile's, since a trailing tile
/// may be short or empty.
[[nodiscard]] Index target_room_bytes(const Plan& plan);

}  // namespace reshard
