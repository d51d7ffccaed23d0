// The listed name that a faulty line was probably meant for.
#pragma once

#include "reshard/model/rules.hpp"
#include "src/model/rules/name_pattern.hpp"

namespace reshard::notation {

/// Returns "; the nearest name is '...'" for an error, or an empty text if no listed name is near. A name is near if at
/// most a third of the pattern's bytes must be added, removed or changed. A * or {name} of the pattern matches as in
/// NamePattern. Looks at names in the order of the list, as many as about a second allows.
[[nodiscard]] std::string nearest_name(const NamePattern& pattern, std::span<const ListedTensor> tensors);

/// The same for a name without * and {name}.
[[nodiscard]] std::string nearest_name(std::string_view name, std::span<const ListedTensor> tensors);

}  // namespace reshard::notation
