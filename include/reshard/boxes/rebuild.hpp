// Rebuilds arrays from the replicas that are left when devices are lost.
#pragma once

#include "reshard/backends/backend.hpp"
#include "reshard/boxes/boxes.hpp"

namespace reshard {

/// An array that is rebuilt. Both layouts name devices as before the loss. A device of the target may be new, or have
/// the number of a lost one, if another process took its place.
struct RebuildMove {
    Layout source;  ///< the tiles before the loss
    Layout target;  ///< the tiles afterwards
};

/// Returns the traffic of a rebuild by device, for devices up to the last of both meshes. A device receives what it
/// wants and does not hold, each element once; no protocol can bring fewer. The holders of a tile that are left share
/// its sends equally. Errors: as validate; mismatch (other shapes or types); unsupported (summands); infeasible if all
/// holders of some element are lost. This error names the boxes and the devices.
[[nodiscard]] Result<std::vector<BoxTraffic>> rebuild_traffic(const RebuildMove& move, std::span<const Index> lost);

/// Arrays that are rebuilt together in one round, prepared on one rank of a backend. The backend must outlive it.
class Rebuild {
public:
    /// Collective. `lost`: devices whose tiles are gone, in any order. `devices`: the device that each rank of the
    /// backend is; without it rank r is device r.
    /// Errors: as rebuild_traffic; mismatch also if a device that holds or wants a tile is no rank, if two ranks are
    /// one device, or if ranks bring different moves; backend.
    [[nodiscard]] static Result<Rebuild> prepare(std::span<const RebuildMove> moves, std::span<const Index> lost,
                                                 Backend& backend, std::span<const Index> devices = {});

    /// The traffic of this rank in a run, for all arrays together.
    [[nodiscard]] const BoxTraffic& traffic() const { return traffic_; }
    [[nodiscard]] Index staging_bytes() const;   ///< held by the backend
    [[nodiscard]] std::string describe() const;  ///< for people: the bytes of this rank, and how they move

    /// Binds memory, one entry per array: the source tile and the target tile, each dense and row-major. A rank whose
    /// tile was lost gives no source. One run is in flight at a time. After a failed run nothing starts again.
    /// Errors: mismatch if a buffer is too small or null, or if memory that is written overlaps any other.
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers);
    /// Binds, starts and waits.
    [[nodiscard]] Result<void> run(std::span<const Buffers> buffers);
    /// Says that this rank does not start a run. Ranks that wait for it are told, unless it starts within a second.
    void report_failure(const Error& why);

private:
    struct State;
    Rebuild() = default;

    BoxTraffic traffic_;
    std::shared_ptr<State> state_;
};

}  // namespace reshard
