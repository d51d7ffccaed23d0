// How ranks that read and write files learn of each other's failures, and add up checksums.
#pragma once

#include "reshard/redistribute.hpp"

namespace reshard::files {

class Company {
public:
    explicit Company(Backend& backend) : backend_(&backend), talk_(backend) {}

    [[nodiscard]] Backend& backend() const { return *backend_; }

    /// Collective. This rank's failure; where it has none, that of the first rank that failed, by its number.
    [[nodiscard]] Result<void> all_well(const Result<void>& own);
    /// Collective: all_well, with the value.
    template <class T>
    [[nodiscard]] Result<T> all_have(Result<T> own) {
        auto well = all_well(own ? Result<void>() : tl::unexpected(own.error()));
        if (!well) return tl::unexpected(std::move(well.error()));
        return own;
    }
    /// Collective. Errors: mismatch (`what` differs between ranks).
    [[nodiscard]] Result<void> agree(std::uint64_t number, std::string_view what);
    /// Collective: of each number the exclusive or over all ranks.
    [[nodiscard]] Result<std::vector<std::uint32_t>> combined(std::span<const std::uint32_t> numbers);

private:
    /// What all ranks bring, one after another; each as many bytes.
    [[nodiscard]] Result<std::vector<std::byte>> gathered(std::span<const std::byte> own);

    Backend* backend_;
    Redistributor talk_;
};

}  // namespace reshard::files
