// What of a run is still to be sent: of two pieces that share a link, the first arrives when it would alone only if the
// second sets out behind it.
#pragma once

namespace reshard {

/// What a Ticket of a backend is besides, where a transport takes messages in their order.
class SendingTicket {
public:
    virtual ~SendingTicket() = default;
    /// True when the transport has all that this rank sends in the run's first step: what a run sends that starts now
    /// comes after it.
    [[nodiscard]] virtual bool has_sent() const = 0;
};

}  // namespace reshard
