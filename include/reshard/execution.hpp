// How a plan runs. It is decided once, from what the backend can do and from the memory there is; it is judged,
// fingerprinted and printed with the plan, and the executor follows it.
#pragma once

#include <variant>

#include "reshard/capabilities.hpp"
#include "reshard/plan.hpp"

namespace reshard {

/// What a device may hold, of one plan or of a whole list. The same on all ranks.
struct MemoryPolicy {
    /// Sources, targets, workspace and staging, in bytes a device; no bound when empty.
    std::optional<Index> footprint_bytes_max = std::nullopt;
    /// The source's memory takes tiles between steps, where they fit and nothing reads it any more. Of a list of
    /// several buckets sources are freed when their bucket is done, and targets taken just before it starts; else all
    /// ends are held all the time.
    bool donate = false;
    Index staging_bytes = 0;  ///< of the bound, kept free for the backend
    friend bool operator==(const MemoryPolicy&, const MemoryPolicy&) = default;
};

/// Which steps a plan may have.
enum class Vocabulary {
    all,          ///< with the universal exchange
    collectives,  ///< slice, all_gather, all_to_all, permute and the reductions only
};

/// Each step by itself, one after the other.
struct AsSteps {
    friend bool operator==(const AsSteps&, const AsSteps&) = default;
};

/// One exchange from source to target, whatever the steps of the plan are.
struct AsOneExchange {
    friend bool operator==(const AsOneExchange&, const AsOneExchange&) = default;
};

/// All steps for one piece of the array after the other, so that what lies between source and target is as small as a
/// piece. In blocks of `block` indices of dimension `dim` no layout cuts, so no step tells the indices of a block
/// apart: each piece has `extent` indices of every block, the last one maybe fewer.
struct Split {
    std::size_t dim = 0;  ///< that is cut
    Index block = 1;      ///< indices that no layout cuts
    Index extent = 1;     ///< of each block in one piece
    friend bool operator==(const Split&, const Split&) = default;
};

/// How a plan runs.
using Execution = std::variant<AsSteps, AsOneExchange, Split>;

/// steps, one_exchange or split.
[[nodiscard]] std::string_view name(const Execution& execution);
[[nodiscard]] Index piece_count(const Execution& execution);  ///< 1 of all but a split run

/// The exchange that does what the whole plan does. nullopt when the plan reduces or fills: that takes its steps.
[[nodiscard]] std::optional<Plan> as_one_exchange(const Plan& plan);

/// The one rule. A plan that reduces nothing runs as one exchange where the backend says that this is as good as any
/// steps, and where the workspace of its steps does not fit; the vocabulary `collectives` means that steps run as
/// steps. What reduces and does not fit runs in the fewest pieces that do. What fits in no way, and what is no plan,
/// is left as steps, for the judge to refuse.
[[nodiscard]] Execution choose_execution(const Plan& plan, const Capabilities& capabilities,
                                         const MemoryPolicy& memory = {}, Vocabulary vocabulary = Vocabulary::all);

/// As that of the plan, which it equals for steps under no policy: what ranks must agree on to run it.
[[nodiscard]] std::uint64_t fingerprint(const Plan& plan, const Execution& execution, const MemoryPolicy& memory = {});

}  // namespace reshard
