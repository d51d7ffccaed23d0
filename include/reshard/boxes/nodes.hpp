// Moves through nodes: each node fetches once what its devices want, and shares it inside.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/boxes/boxes.hpp"
#include "reshard/elements.hpp"

namespace reshard {

/// A move in exchanges of boxes, which no sequence of layouts can express. Between them each device holds a part of the
/// elements that its node wants. Counts devices from 0 to the last of both meshes. Consecutive devices form nodes.
/// In each table a number stands before the dimensions of the array, so that one element may be moved several times.
struct NodeMove {
    Index node_devices = 1;  ///< devices in a node
    bool relays = false;     ///< devices send elements that another device of their node holds
    BoxTable keep;           ///< elements that a device holds and wants; the number is the device
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

/// Returns the move through nodes of so many devices. A node receives an element at most once, and nothing that one of
/// its devices holds. Its devices receive equal parts, as far as elements can be divided. With `relays` a device first
/// gives parts of its tile to devices of its node that have less to send. This makes sends between nodes equal and
/// costs traffic within the node. Errors: as validate; mismatch (other shapes or types); usage (fewer than 1 device in
/// a node); unsupported (summands; more than 2^24 pairs of a device and a part of the array).
[[nodiscard]] Result<NodeMove> through_nodes(const Layout& source, const Layout& target, Index node_devices,
                                             bool relays = false);

/// Returns the estimated time of the move on a machine, in picoseconds, saturating: its exchanges one after another.
[[nodiscard]] Index move_picoseconds(const NodeMove& move, const Machine& machine);

/// Returns the fastest move through the blocks of any level of the machine, with relays or without. Compare its time
/// with Synthesis::picoseconds. Errors: as through_nodes; usage if the machine has one level only.
[[nodiscard]] Result<NodeMove> through_nodes(const Layout& source, const Layout& target, const Machine& machine);

/// A move through nodes, prepared on one rank of a backend. Rank r is device r. The backend must outlive it.
class NodeExchange {
public:
    /// Collective. Errors: as through_nodes; mismatch if the backend has too few ranks or if ranks bring other moves;
    /// backend (also if the staging does not fit in memory).
    [[nodiscard]] static Result<NodeExchange> prepare(const Layout& source, const Layout& target, Index node_devices,
                                                      bool relays, Backend& backend);

    /// The traffic of a run for this rank, in all exchanges together.
    [[nodiscard]] const BoxTraffic& traffic() const { return traffic_; }
    [[nodiscard]] Index staging_bytes() const;   ///< held by this object and by the backend
    [[nodiscard]] std::string describe() const;  ///< for people: the bytes of this rank, and how they move

    /// Binds memory: the source tile and the target tile, each dense and row-major. One run is in flight at a time.
    /// After a failed run nothing starts again. Errors: mismatch if a buffer is too small or null, or if both overlap.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(const Buffers& buffers);
    /// Binds, starts and waits. Errors also: mismatch if the elements are of another type.
    [[nodiscard]] Result<void> run(ConstElements in, Elements out);
    /// Says that this rank does not start a run. Ranks that wait for it are told, unless it starts within a second.
    void report_failure(const Error& why);

private:
    struct State;
    NodeExchange() = default;

    BoxTraffic traffic_;
    std::shared_ptr<State> state_;
};

}  // namespace reshard
