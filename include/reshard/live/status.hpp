// The arrays that a publisher offers, and the state of its session. Any process may ask for them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard::live {

/// An array of a publisher.
struct OfferedTensor {
    std::string name;  ///< as a subscriber asks for it
    Layout layout;     ///< over the ranks of the publisher
};

/// Returns the arrays of a publisher, in its order. Waits at most `limit` for it. Errors: backend (no publisher,
/// another protocol).
[[nodiscard]] Result<std::vector<OfferedTensor>> offered(const std::string& endpoint,
                                                         std::chrono::milliseconds limit = std::chrono::minutes(1));

/// A version in the memory of one rank of a publisher.
struct VersionStatus {
    Index version = 0;  ///< its number
    std::string state;  ///< staged, ready, active (it is read) or releasing (it is read, and a newer one is ready)
};

/// A process that is connected to one rank of a publisher.
struct ReaderStatus {
    std::string peer;               ///< `process 4711` on the same machine, its address over TCP
    Index reads = 0;                ///< the version that it reads now; 0: none
    Index last = 0;                 ///< the version of its last read that has ended; 0: none
    Index bytes = 0;                ///< of each version that it takes from this rank; 0 until its first read
    double seconds = 0;             ///< that its last read took, with the vote of its job
    std::string transport = "tcp";  ///< that carries the bytes: `memory`, `tcp` or `ucx`
};

/// The state of one rank of a publisher.
struct RankStatus {
    Index newest = 0;                     ///< the newest version; 0: none
    Index tile_bytes = 0;                 ///< of one version in its memory
    Index reads = 0;                      ///< that have ended since it opened, of all versions
    std::vector<VersionStatus> versions;  ///< that it keeps, oldest first
    std::vector<ReaderStatus> readers;    ///< by the time they came
};

/// Returns the state of each rank of a publisher, by rank. Waits at most `limit`. Errors: as offered.
[[nodiscard]] Result<std::vector<RankStatus>> status(const std::string& endpoint,
                                                     std::chrono::milliseconds limit = std::chrono::minutes(1));

}  // namespace reshard::live
