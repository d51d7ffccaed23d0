// The addresses of tiles, and the error if one is missing.
#pragma once

#include "reshard/model/address.hpp"

namespace reshard {

/// Errors: mismatch (no address of this array).
[[nodiscard]] Result<std::uint64_t> own_address(const OwnTiles& own, Index array);
/// Errors: mismatch (no address of this array on this rank).
[[nodiscard]] Result<std::uint64_t> peer_address(const PeerTiles& peers, Index array, Index peer);
/// The device of a peer; 0 if none is given.
[[nodiscard]] std::uint64_t peer_device(const PeerTiles& peers, Index peer);

}  // namespace reshard
