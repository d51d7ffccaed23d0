// A rank that is ahead of its peers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "conformance/harness.hpp"
#include "reshard/backends/run.hpp"

namespace reshard::conformance {

/// Runs a prepared exchange of one array in place. All ranks start. Then rank 0 alone advances, and overwrites the
/// array as soon as its run is over. If a peer reads the array after that, it reads other values. Returns whether this
/// rank has overwritten its array.
template <class Exchange>
bool run_ahead(Backend& backend, Exchange& exchange, std::span<std::byte> array) {
    const Buffers buffers{{}, array, {}};
    const auto bound = exchange.bind(std::span(&buffers, 1)).value();
    const auto ticket = bound->start().value();
    harness().count_true(backend, true);  // waits until all have started
    bool over = false;
    for (int i = 0; i < 100 && backend.rank() == 0 && !over; ++i) over = ticket->test().value();
    if (over) std::ranges::fill(array, std::byte{0xff});
    harness().count_true(backend, true);  // waits for rank 0
    EXPECT_TRUE(over || ticket->wait());
    return over;
}

}  // namespace reshard::conformance
