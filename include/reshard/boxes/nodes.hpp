// Moves through nodes: each node fetches once what its devices want, and shares it inside.
#pragma once

#include <optional>

#include "reshard/boxes/boxes.hpp"
#include "reshard/problem.hpp"

namespace reshard {

/// How a move goes through nodes.
struct NodeWay {
    Index node_devices = 1;  ///< devices in a node; consecutive devices form nodes
    /// Devices may give parts of their tiles to devices of their node that have less to send.
    bool relays = true;
    Index outside_price = 8;  ///< elements within a node that take as long as one between nodes; 1 to 1024
    friend bool operator==(const NodeWay&, const NodeWay&) = default;
};

/// A move in exchanges of boxes, which no sequence of layouts can express. Between them each device holds a part of the
/// elements that its node wants. Counts devices from 0 to the last of both meshes. In each table a number stands before
/// the dimensions of the array, so that one element may be moved several times. `Executor::prepare_through_nodes` runs
/// it.
struct NodeMove {
    Problem ends;   ///< the layouts of the move
    NodeWay way;    ///< how it was made
    BoxTable keep;  ///< elements that a device holds and wants; the number is the device
    /// From source tiles to the staging memory of devices in the same node. Number 0: elements that the device sends to
    /// other nodes, if there are relays. Number 1 + n: elements that it shares in its node n.
    BoxTable spread;
    BoxTable fetch;  ///< from source tiles, or from the staging memory if there are relays, to the staging memory of
                     ///< other nodes; the number is the node that receives
    BoxTable share;  ///< from the staging memory to the target tiles of the node; the number is the node
    /// For each device and each box that it owns in `fetch`: the number of the box in `spread` that it staged. Empty
    /// without relays.
    std::vector<std::vector<std::size_t>> relayed = {};
};

/// Returns the move through nodes. A node receives an element at most once, and nothing that one of its devices holds.
/// The work is divided among devices so that outside_price x the busiest device between nodes, plus the busiest one
/// within nodes, is small. Errors: as validate; mismatch (other shapes or types); usage (fewer than 1 device in a node;
/// a price out of range); unsupported (summands; more than 2^24 pairs of a device and a part of the array, or 2^17
/// choices of a device for a part).
[[nodiscard]] Result<NodeMove> through_nodes(const Problem& ends, const NodeWay& way);

/// Returns the estimated time of the move on a machine, in picoseconds, saturating: its exchanges one after another.
[[nodiscard]] Index move_picoseconds(const NodeMove& move, const Machine& machine);

/// Returns the bytes that the busiest device holds in a run: the largest tile of each end, and its staging memory.
/// Saturating.
[[nodiscard]] Index footprint_bytes(const NodeMove& move);

/// Returns the fastest move through the blocks of any level of the machine, with relays or without. Errors: as
/// through_nodes; usage if the machine has one level only.
[[nodiscard]] Result<NodeMove> through_nodes(const Problem& ends, const Machine& machine);

/// Returns the same move if it takes less time on the machine of the options than a plan of so many picoseconds.
/// Returns nothing if the options ask for anything but the least time, for collectives, for first steps, for a peak or
/// a donated source, if the footprint is over their limit, or if through_nodes fails.
[[nodiscard]] std::optional<NodeMove> faster_through_nodes(const Problem& ends, Index plan_picoseconds,
                                                           const Options& options);

/// Returns a number that differs between moves that differ, with high probability.
[[nodiscard]] std::uint64_t fingerprint(const NodeMove& move);

}  // namespace reshard
