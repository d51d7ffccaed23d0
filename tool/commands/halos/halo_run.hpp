// A fill of halos on one rank, for `run` and `bench`: the array, the values that belong there, and the exchange.
#pragma once

#include <memory>

#include "reshard/halo/exchange.hpp"
#include "tool/data/values.hpp"
#include "tool/data/verify.hpp"
#include "tool/ranks/ranks.hpp"
#include "tool/request/halo_request.hpp"

namespace reshard::cli {

class HaloRun {
public:
    /// Collective. Errors, on all ranks: as HaloExchange::prepare; infeasible (the machine lacks the memory);
    /// unsupported (memory on a device).
    [[nodiscard]] static Result<std::unique_ptr<HaloRun>> make(Rank& rank, const HaloRequest& asked, HaloWay way);

    /// Collective: writes the blocks and marks all other cells, then fills once. Returns the seconds from the barrier
    /// before the fill to the slowest rank's end.
    [[nodiscard]] Result<double> fill(Rank& rank);

    /// Collective: compares every cell with the whole array. Cells beyond open borders must still have their marks.
    [[nodiscard]] Verified verify(Rank& rank) const;

    /// Collective: bytes that came from other ranks, of the rank with most.
    [[nodiscard]] Index received_bytes(Rank& rank) const;
    [[nodiscard]] std::string transport() const { return exchange_.describe(); }

private:
    HaloRun(HaloExchange exchange, HaloMove move) : exchange_(std::move(exchange)), move_(std::move(move)) {}
    [[nodiscard]] Result<void> take_memory(Rank& rank);
    [[nodiscard]] std::span<std::byte> array() const { return array_->bytes().first(expected_.size()); }

    HaloExchange exchange_;
    HaloMove move_;
    std::unique_ptr<Values> values_;
    std::unique_ptr<Memory> array_;
    std::unique_ptr<Memory> source_;
    std::vector<std::byte> start_;     // the array before a fill
    std::vector<std::byte> expected_;  // and after it
    std::unique_ptr<Bound> bound_;     // last, because it refers to the memory
};

}  // namespace reshard::cli
