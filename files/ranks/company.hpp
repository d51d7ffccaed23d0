// Ranks that read or write files together. They learn of each other's failures, and combine checksums.
#pragma once

#include "reshard/redistribute.hpp"

namespace reshard::files {

class Company {
public:
    explicit Company(Backend& backend) : backend_(&backend), talk_(backend) {}

    [[nodiscard]] Backend& backend() const { return *backend_; }

    /// Collective. Returns this rank's failure. If it has not failed, returns the failure of the lowest rank that has.
    [[nodiscard]] Result<void> all_well(const Result<void>& own);
    /// Collective. As all_well, with the value.
    template <class T>
    [[nodiscard]] Result<T> all_have(Result<T> own) {
        auto well = all_well(own ? Result<void>() : tl::unexpected(own.error()));
        if (!well) return tl::unexpected(std::move(well.error()));
        return own;
    }
    /// Collective. Returns the numbers of all ranks, in rank order.
    [[nodiscard]] Result<std::vector<std::uint64_t>> numbers(std::uint64_t own);
    /// Collective. Errors: mismatch (`what` differs between ranks).
    [[nodiscard]] Result<void> agree(std::uint64_t number, std::string_view what);
    /// Collective. Returns the exclusive or over all ranks, for each number.
    [[nodiscard]] Result<std::vector<std::uint32_t>> combined(std::span<const std::uint32_t> numbers);

private:
    /// Gathers the bytes of all ranks, in rank order. Each brings equally many.
    [[nodiscard]] Result<std::vector<std::byte>> gathered(std::span<const std::byte> own);

    Backend* backend_;
    Redistributor talk_;
};

}  // namespace reshard::files
