// Whether all ranks are about to run the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "reshard/result.hpp"

namespace reshard {

/// A rank's part in an agreement: the fingerprint of the plans it is about to run, or the error that prevents it.
using Brought = Result<std::uint64_t>;

/// The error that the other ranks get if one rank fails: its code and its words.
[[nodiscard]] inline Error failure_of(std::size_t rank, const Error& own) {
    return {own.code, fmt::format("rank {} could not prepare: {}", rank, own.message)};
}

/// Fails if ranks with these fingerprints cannot run together. By rank; null: it has not come yet.
[[nodiscard]] inline Result<void> same_plans(std::span<const std::optional<Brought>> brought) {
    std::optional<std::size_t> first;
    std::optional<std::size_t> other;
    for (std::size_t rank = 0; rank < brought.size(); ++rank) {
        if (!brought[rank]) continue;
        if (!*brought[rank]) return tl::unexpected(failure_of(rank, brought[rank]->error()));
        if (!first) first = rank;
        if (!other && **brought[rank] != **brought[*first]) other = rank;
    }
    if (!other) return {};
    return fail(Code::mismatch,
                fmt::format("rank {} brings another plan, execution or memory policy than rank {}", *other, *first));
}

}  // namespace reshard
