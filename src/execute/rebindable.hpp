// Bound buffers that are used again. A small move takes about as long as the allocation of its objects, so an executor
// keeps these objects from run to run.
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

}  // namespace reshard
