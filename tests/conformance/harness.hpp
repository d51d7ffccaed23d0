// The interface that a backend needs to run the suite. Each program is linked with one harness: its ranks are threads
// of this process, or this process is one rank of an MPI job. Every process runs every test, in the same order.
#pragma once

#include <functional>

#include "reshard/backends/backend.hpp"

namespace reshard::conformance {

class Harness {
public:
    virtual ~Harness() = default;
    [[nodiscard]] virtual Index ranks() const = 0;
    /// Runs the body on all ranks at the same time. If one rank's expectations fail, the test fails everywhere.
    virtual void on_every_rank(const std::function<void(Backend&)>& body) = 0;
    /// Returns on every rank the text that rank 0 makes.
    virtual std::string from_rank_0(const std::function<std::string()>& make) = 0;
    /// The number of true answers over all ranks. Call it from within on_every_rank.
    virtual Index count_true(Backend& backend, bool answer) = 0;
};

Harness& harness();

}  // namespace reshard::conformance
