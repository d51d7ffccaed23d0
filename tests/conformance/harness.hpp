// What a backend must offer for the suite to run on it. One program is linked with one harness: its ranks are threads
// of this process, or this process is one rank of an MPI job. Every process runs every test, in the same order.
#pragma once

#include <functional>

#include "reshard/backends/backend.hpp"

namespace reshard::conformance {

class Harness {
public:
    virtual ~Harness() = default;
    [[nodiscard]] virtual Index ranks() const = 0;
    /// Runs the body once per rank, at the same time. When one rank's expectations fail, the test fails everywhere.
    virtual void on_every_rank(const std::function<void(Backend&)>& body) = 0;
    /// What rank 0 makes, on every rank.
    virtual std::string from_rank_0(const std::function<std::string()>& make) = 0;
    /// The number of true answers over all ranks. Called from within on_every_rank.
    virtual Index count_true(Backend& backend, bool answer) = 0;
};

Harness& harness();

}  // namespace reshard::conformance
