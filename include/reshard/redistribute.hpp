// The front door: one call moves an array from one layout to another. It plans, remembers what it prepared, and has a
// workspace of its own.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "reshard/elements.hpp"
#include "reshard/execute.hpp"
#include "reshard/move_options.hpp"
#include "reshard/planner/plan_cache.hpp"

namespace reshard {

struct Padding;

/// Moves this rank's tile of `source` from `in` to its tile of `target` in `out`. Returns when `out` is complete. Both
/// tiles are dense and row-major, with tile_count elements each. A rank that holds no tile passes 0 elements.
///
/// Collective: the ranks of a backend call with the same layouts in the same order. The first call with a pair of
/// layouts prepares the move. The backend keeps the 64 moves that were used last (Redistributor).
///
/// Errors, on all ranks before any byte moves: mismatch if `in` or `out` has another element type or size than the
/// layout, if they overlap, if ranks bring different layouts or options, or if the backend has too few ranks;
/// the errors of permuted, common_extents and synthesize; backend. After an error nothing is kept and the next call
/// prepares anew.
[[nodiscard]] Result<void> redistribute(Backend& backend, const Layout& source, const Layout& target, ConstElements in,
                                        Elements out, const MoveOptions& options = {});

/// Collective: takes this rank's part in a call of redistribute(backend, ...) if it refuses its arguments before the
/// call. The other ranks, in redistribute, fail with this code and these words. As after its errors, nothing is kept.
void refuse(Backend& backend, const Error& why);

/// Gives back everything that redistribute keeps with the backend. All ranks call it between the same calls.
void clear(Backend& backend);

/// A move between two layouts, and where this rank's tiles lie.
struct Redistribution {
    Layout source;             ///< before the move
    Layout target;             ///< after it
    Storages storages = {};    ///< on this rank
    MoveOptions options = {};  ///< how the array changes on the way
};

/// Executors that one rank of a backend keeps, with plans and one workspace as large as the largest needs. The backend
/// must outlive it. Not for several threads at once.
class Redistributor : NonCopyable {
public:
    static constexpr std::size_t executors_max = 64;  ///< all ranks drop the least recently used one first

    /// Plans with these options, the same on all ranks. `in` is the caller's, so no source is donated. On a machine of
    /// several levels a move through nodes runs if it takes less time than the plan (faster_through_nodes).
    explicit Redistributor(Backend& backend, Options options = {});

    /// The Redistributor that redistribute(backend, ...) uses. The first call makes it.
    [[nodiscard]] static Redistributor& of(Backend& backend);

    /// As redistribute(backend, ...).
    [[nodiscard]] Result<void> redistribute(const Layout& source, const Layout& target, ConstElements in, Elements out,
                                            const MoveOptions& options = {});
    /// The same, but does not wait for the end. Call nothing else on the Redistributor until the ticket is done. If the
    /// ticket fails, call clear.
    [[nodiscard]] Result<std::unique_ptr<Ticket>> start(const Layout& source, const Layout& target, ConstElements in,
                                                        Elements out, const MoveOptions& options = {});
    /// For tiles that lie otherwise, and for ranks that do not all know the layouts. Collective. `name` is this rank's
    /// own name for the move, not empty. If all ranks find the executor of one earlier call under their names, returns
    /// it. Otherwise calls `ask` on all ranks, which may communicate, and prepares the move that it returns. The
    /// executor is valid until the next call of this object. With a fill value the caller pads its target
    /// (fill_padding). Needs a backend whose agree waits for all ranks, so not the local one. Errors: those of `ask`,
    /// synthesize and Executor::prepare; after an error nothing is kept.
    [[nodiscard]] Result<Executor*> executor_of(std::string_view name,
                                                const std::function<Result<Redistribution>()>& ask);
    /// Gives back everything but the plans. All ranks call it between the same calls.
    void clear();

    [[nodiscard]] std::size_t executor_count() const { return entries_.size(); }  ///< kept
    [[nodiscard]] Index workspace_bytes() const;                                  ///< kept for all of them

private:
    struct Entry {
        Redistribution move;
        std::string name;      // empty if the caller gave the layouts
        std::uint64_t number;  // ranks compare it
        std::size_t in_bytes;  // of this rank's dense tiles
        std::size_t out_bytes;
        std::shared_ptr<const Padding> padding;  // null: the run writes all of `out`
        Executor executor;
        [[nodiscard]] bool fits(ConstElements in, Elements out) const;
    };
    [[nodiscard]] Result<std::unique_ptr<Ticket>> try_start(const Layout& source, const Layout& target,
                                                            ConstElements in, Elements out, const MoveOptions& options);
    [[nodiscard]] Entry* find(const Layout& source, const Layout& target, ConstElements in, Elements out,
                              const MoveOptions& options);
    template <class Move>
    [[nodiscard]] auto agree_with(const Entry& entry, const Move& move);
    [[nodiscard]] Result<std::unique_ptr<Ticket>> start_known(Entry& entry, ConstElements in, Elements out);
    [[nodiscard]] Result<void> run_known(Entry& entry, ConstElements in, Elements out);
    [[nodiscard]] Result<std::unique_ptr<Bound>> bind(Executor& executor, ConstElements in, Elements out);
    [[nodiscard]] Entry& use(std::list<Entry>::iterator known);
    [[nodiscard]] Result<Executor*> prepare(Result<Redistribution> move, std::string_view name, std::uint64_t number);
    [[nodiscard]] Result<std::span<std::byte>> workspace_of(const Executor& executor);

    Backend& backend_;
    Options options_;
    PlanCache plans_;
    std::list<Entry> entries_;  // the most recently used one first
    std::uint64_t calls_ = 0;   // of executor_of
    std::unique_ptr<Memory> workspace_;
};

}  // namespace reshard
