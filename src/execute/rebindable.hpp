// Runs without new objects. A small move takes about as long as the allocation of its objects, so an executor keeps
// these objects from run to run, or makes none.
#pragma once

#include "reshard/backends/backend.hpp"

namespace reshard {

/// A Bound that takes other buffers in place. If no buffer is registered or new to the backend, this allocates nothing.
class Rebindable : public Bound {
public:
    /// Drops what it keeps of its buffers, such as registered memory. If it keeps nothing, it stays bound and returns
    /// true. pre: no run is in flight.
    virtual bool unbind() = 0;
    /// As Prepared::bind. After an error no run may start before a rebind succeeds.
    virtual Result<void> rebind(std::span<const Buffers> buffers) = 0;
};

/// A Prepared of one array that can move it within one call.
class AtOnce {
public:
    virtual ~AtOnce() = default;
    /// False if the next move needs a run. `agrees`: the ranks agree before it. Ranks may differ in this.
    [[nodiscard]] virtual bool moves_at_once(bool agrees) const = 0;
    /// A run from start to end. If `agreed` is not null, it begins as Bound::start_if. An interrupt ends the wait.
    /// Errors: as a run; then the caller abandons the Prepared. pre: moves_at_once, and no run is in flight.
    virtual Result<void> move_at_once(const Buffers& buffers, const Agreed* agreed) = 0;
};

}  // namespace reshard
