// How a plan runs. It is decided once, from what the backend can do and from the memory there is; it is judged,
// fingerprinted and printed with the plan, and the executor follows it.
#pragma once

#include <variant>

#include "reshard/plan.hpp"
#include "reshard/planner/capabilities.hpp"

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

/// A run cut into pieces, each of which does all steps. Dimension `dim` is seen as blocks of `block` indices, counted
/// from its first; a piece has the same indices of every block: the k-th those from ends[k - 1] (0 for the first) to
/// ends[k]. Where blocks are as long as a tile's side, a piece is a slab of every tile, the k-th of all ranks together.
/// Runs so: any plan no layout of which cuts the blocks, so that no step tells the indices of a block apart and a piece
/// is a plan of its own; and, in pieces that overlap, any plan of at most one step that copies, which is cut box by
/// box.
struct Split {
    std::size_t dim = 0;                  ///< that is cut
    Index block = 1;                      ///< indices of a block
    std::vector<Index> ends = {1};        ///< ascending, from 1 on; the last one is `block`
    std::vector<std::size_t> order = {};  ///< in which pieces travel, each once; as they are numbered where it is empty
    /// At most two pieces are on their way at once, each with a workspace of its own; on a device's queue all are,
    /// which has them one after the other. A run says which have arrived (Ticket::arrived), and takes their sources one
    /// by one (Ticket::offer). Of a plan by itself, not of a list. Else pieces go one after the other in the workspace
    /// of one: a split run, whose memory is the least.
    bool overlapped = false;
    friend bool operator==(const Split&, const Split&) = default;
};

/// Pieces that a split has at most; past it a run would be all beginnings.
inline constexpr Index split_pieces_max = Index{1} << 20;

/// Pieces of `extent` indices of each block, the last one maybe fewer. pre: 1 <= extent <= block, and no
/// more than split_pieces_max pieces.
[[nodiscard]] Split even_split(std::size_t dim, Index block, Index extent);

/// So many pieces that overlap, as even as can be. pre: 1 <= count <= min(block, split_pieces_max).
[[nodiscard]] Split even_pieces(std::size_t dim, Index block, Index count);

/// The number of the piece that travels as the `place`-th. pre: both below the number of pieces.
[[nodiscard]] std::size_t piece_at(const Split& split, std::size_t place);

/// What a piece has of a tile (of source, target or between), in global indices: a slab where blocks are as long as the
/// tile's side. pre: there is such a piece, and the tile has the dimension.
[[nodiscard]] Tile piece_of(const Tile& tile, const Split& split, std::size_t piece);

/// How a plan runs.
using Execution = std::variant<AsSteps, AsOneExchange, Split>;

/// steps, one_exchange or split.
[[nodiscard]] std::string_view name(const Execution& execution);
[[nodiscard]] Index piece_count(const Execution& execution);  ///< 1 of all but a split
[[nodiscard]] bool overlaps(const Execution& execution);      ///< in pieces of which two are on their way at once

/// Whether the ends ascend to the block, and the order names each piece once. Errors: plan, with the reason.
[[nodiscard]] Result<void> check_pieces(const Split& split);

/// Whether the plan runs cut so. Errors: plan, with the reason: no such dimension, ends or an order that are none, or a
/// plan that cannot be cut there. pre: the plan is typed.
[[nodiscard]] Result<void> can_split(const Plan& plan, const Split& split);

/// execution := "steps" | "one_exchange" | "split dim" n "block" n "ends" n {"," n} ["order" n {"," n}] ["overlapped"].
/// Errors: syntax, overflow.
[[nodiscard]] Result<Execution> parse_execution(std::string_view text);
/// The text that parse_execution reads.
[[nodiscard]] std::string format(const Execution& execution);

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
