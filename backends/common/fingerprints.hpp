// Whether all ranks are about to run the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "reshard/result.hpp"

namespace reshard {

/// An error where ranks that brought these fingerprints cannot run together. By rank; 0: it could not prepare its plan,
/// null: it has not come yet.
[[nodiscard]] inline Result<void> same_plans(std::span<const std::optional<std::uint64_t>> brought) {
    std::optional<std::size_t> first;
    std::optional<std::size_t> other;
    for (std::size_t rank = 0; rank < brought.size(); ++rank) {
        if (brought[rank] == std::uint64_t{0})
            return fail(Code::mismatch, fmt::format("rank {} could not prepare its plan", rank));
        if (!first && brought[rank]) first = rank;
        if (!other && brought[rank] && brought[rank] != brought[*first]) other = rank;
    }
    if (!other) return {};
    return fail(Code::mismatch,
                fmt::format("rank {} brings another plan, execution or memory policy than rank {}", *other, *first));
}

}  // namespace reshard
