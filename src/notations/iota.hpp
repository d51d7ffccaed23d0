// XLA's iota lists of devices: 0, 1, ... in some shape, its axes in some order, read row-major.
#pragma once

#include <optional>
#include <vector>

#include "src/text/scanner.hpp"

namespace reshard::notation {

/// Lists of devices beyond this length are refused.
inline constexpr Index listed_devices_max = Index{1} << 20;

/// open n {"," n} close, each at least `least`.
[[nodiscard]] Result<std::vector<Index>> scan_list(Scanner& scanner, char open, char close, std::string_view what,
                                                   Index least);

/// "[" n {"," n} "]" ["T" "(" i {"," i} ")"]: the order is required for two or more axes' worth of a change and must be
/// a permutation; it is left empty where axes stay in order.
[[nodiscard]] Result<void> scan_iota(Scanner& scanner, std::vector<Index>& shape, std::vector<Index>& order);

/// The atoms of the axes of an iota in their order.
[[nodiscard]] std::vector<Atom> iota_atoms(const std::vector<Index>& shape, const std::vector<Index>& order);

/// The list itself; nullopt when it has not `count` entries.
[[nodiscard]] std::optional<std::vector<Index>> iota_devices(const std::vector<Index>& shape,
                                                             const std::vector<Index>& order, Index count);

}  // namespace reshard::notation
