// How a plan runs. The choice is made once, from the backend's capabilities and the memory limit. It is judged,
// fingerprinted and printed with the plan, and the executor follows it.
#pragma once

#include <variant>

#include "reshard/plan.hpp"
#include "reshard/planner/capabilities.hpp"

namespace reshard {

/// How much memory a device may hold for one plan or a whole list. The same on all ranks.
struct MemoryPolicy {
    /// The limit for sources, targets, workspace and staging together, in bytes per device; no limit when empty.
    std::optional<Index> footprint_bytes_max = std::nullopt;
    /// True: the source's memory holds tiles between steps once nothing reads the source any more, if they fit. In a
    /// list of several buckets, sources are freed when their bucket is done, and targets are allocated just before it
    /// starts. False: all sources and targets are held all the time.
    bool donate = false;
    Index staging_bytes = 0;  ///< this part of the limit stays free for the backend
    friend bool operator==(const MemoryPolicy&, const MemoryPolicy&) = default;
};

/// Which steps a plan may have.
enum class Vocabulary {
    all,          ///< every kind, the universal exchange included
    collectives,  ///< slice, all_gather, all_to_all, permute and the reductions only
};

/// The steps run one after the other.
struct AsSteps {
    friend bool operator==(const AsSteps&, const AsSteps&) = default;
};

/// One exchange from source to target replaces all steps of the plan.
struct AsOneExchange {
    friend bool operator==(const AsOneExchange&, const AsOneExchange&) = default;
};

/// A run cut into pieces; each piece does all steps. Dimension `dim` is divided into blocks of `block` indices, counted
/// from its first index. A piece takes the same indices from every block: piece k takes indices ends[k - 1] (0 for the
/// first piece) to ends[k]. If blocks are as long as a tile's side, a piece is a slab of every tile.
/// A plan can be split if (a) no layout on the way cuts a block: then no step tells the indices of a block apart, and
/// each piece is a plan of its own. It can also be split if (b) the pieces overlap and the plan has at most one step,
/// a copy: then its boxes are cut.
struct Split {
    std::size_t dim = 0;                  ///< the dimension that is cut
    Index block = 1;                      ///< indices of a block
    std::vector<Index> ends = {1};        ///< ascending, from 1 on; the last one is `block`
    std::vector<std::size_t> order = {};  ///< pieces in travelling order, each once; empty: by number
    /// True: at most two pieces travel at once, each with its own workspace. On a device's queue all pieces are in
    /// flight, and the queue runs them one after another. A run reports which pieces have arrived (Ticket::arrived),
    /// and takes their sources one by one (Ticket::offer). A plan in a list cannot overlap.
    /// False: pieces travel one after another in the workspace of a single piece, which needs the least memory.
    bool overlapped = false;
    friend bool operator==(const Split&, const Split&) = default;
};

/// A split has at most this many pieces. With more, a run would spend its time on starting them.
inline constexpr Index split_pieces_max = Index{1} << 20;

/// Pieces of `extent` indices of each block; the last piece may have fewer. pre: 1 <= extent <= block, and at most
/// split_pieces_max pieces.
[[nodiscard]] Split even_split(std::size_t dim, Index block, Index extent);

/// `count` overlapping pieces, as even as possible. pre: 1 <= count <= min(block, split_pieces_max).
[[nodiscard]] Split even_pieces(std::size_t dim, Index block, Index count);

/// The number of the piece that travels at place `place` in the order. pre: place < the number of pieces.
[[nodiscard]] std::size_t piece_at(const Split& split, std::size_t place);

/// The part of a tile that a piece moves, in global indices: a slab if blocks are as long as the tile's side. The tile
/// may be of the source, the target or a layout between. pre: the piece exists, and the tile has the dimension.
[[nodiscard]] Tile piece_of(const Tile& tile, const Split& split, std::size_t piece);

/// How a plan runs.
using Execution = std::variant<AsSteps, AsOneExchange, Split>;

/// steps, one_exchange or split.
[[nodiscard]] std::string_view name(const Execution& execution);
[[nodiscard]] Index piece_count(const Execution& execution);  ///< 1 unless it is a split
[[nodiscard]] bool overlaps(const Execution& execution);      ///< true for a split with overlapped pieces

/// Fails unless the ends ascend to the block, and the order names each piece once. Errors: plan, with the reason.
[[nodiscard]] Result<void> check_pieces(const Split& split);

/// Fails unless the plan can run in these pieces. Errors: plan, with the reason: the dimension does not exist, the ends
/// or the order are invalid, or the plan cannot be cut there. pre: the plan is typed.
[[nodiscard]] Result<void> can_split(const Plan& plan, const Split& split);

/// Parses execution :=
/// "steps" | "one_exchange" | "split dim" n "block" n "ends" n {"," n} ["order" n {"," n}] ["overlapped"].
/// Errors: syntax, overflow.
[[nodiscard]] Result<Execution> parse_execution(std::string_view text);
/// The text that parse_execution reads.
[[nodiscard]] std::string format(const Execution& execution);

/// One exchange with the effect of the whole plan. nullopt when the plan reduces or fills, which only its steps can do.
[[nodiscard]] std::optional<Plan> as_one_exchange(const Plan& plan);

/// Chooses how a plan runs; this is the only rule for it. A plan that reduces nothing runs as one exchange if the
/// backend says that one exchange is as good as any steps, or if the workspace of its steps does not fit. With the
/// vocabulary `collectives`, a plan never runs as one exchange. Any other plan that does not fit runs in the fewest
/// pieces that fit. A plan that fits in no way, or is invalid, is left as steps for the judge to refuse.
[[nodiscard]] Execution choose_execution(const Plan& plan, const Capabilities& capabilities,
                                         const MemoryPolicy& memory = {}, Vocabulary vocabulary = Vocabulary::all);

/// A 64-bit hash of all that ranks must agree on to run the plan. It equals fingerprint(plan) for AsSteps under the
/// default policy.
[[nodiscard]] std::uint64_t fingerprint(const Plan& plan, const Execution& execution, const MemoryPolicy& memory = {});

}  // namespace reshard
