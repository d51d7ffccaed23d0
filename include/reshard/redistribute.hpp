// The front door: one call moves an array from one layout to another. It plans, remembers what it prepared, and has a
// workspace of its own.
#pragma once

#include <list>

#include "reshard/elements.hpp"
#include "reshard/execute.hpp"
#include "reshard/planner/plan_cache.hpp"

namespace reshard {

/// Moves this rank's tile of `source` from `in` to its tile of `target` in `out`; returns when `out` is complete. Both
/// tiles are dense and row-major, tile_count elements each; 0 on ranks that hold nothing.
/// Collective: the ranks of a backend call with the same layouts in the same order. What a pair of layouts needs is
/// prepared by its first call and kept with the backend, for the 64 pairs that were used last (Redistributor).
/// Errors, on all ranks before any byte moves: mismatch when `in` or `out` has other elements than the layout's or
/// another number of them, when they overlap, when ranks bring different layouts, or when the backend has too few
/// ranks; whatever synthesize says; backend. After an error nothing is kept and the next call prepares anew.
[[nodiscard]] Result<void> redistribute(Backend& backend, const Layout& source, const Layout& target, ConstElements in,
                                        Elements out);

/// Collective: this rank's part in a call of redistribute(backend, ...) whose arguments it has refused before the call.
/// The other ranks, in redistribute, fail with this code and these words. Nothing is kept, as after its errors.
void refuse(Backend& backend, const Error& why);

/// Gives back what redistribute keeps with the backend. All ranks call it between the same calls.
void clear(Backend& backend);

/// What redistribute keeps for one rank of a backend: executors by their pair of layouts, plans, and one workspace as
/// large as the largest needs. The backend must outlive it. Not for several threads at once.
class Redistributor : NonCopyable {
public:
    static constexpr std::size_t executors_max = 64;  ///< the least recently used one goes first, on all ranks alike

    /// Plans with these options, the same on all ranks; `in` is the caller's, so nothing is donated.
    explicit Redistributor(Backend& backend, Options options = {});

    /// The one that hangs on a backend, behind redistribute(backend, ...); made by the first who asks.
    [[nodiscard]] static Redistributor& of(Backend& backend);

    /// As redistribute(backend, ...).
    [[nodiscard]] Result<void> redistribute(const Layout& source, const Layout& target, ConstElements in, Elements out);
    /// The same, but does not wait for the end; nothing else is called on it until the ticket is done. A caller whose
    /// ticket fails calls clear.
    [[nodiscard]] Result<std::unique_ptr<Ticket>> start(const Layout& source, const Layout& target, ConstElements in,
                                                        Elements out);
    /// Gives all back but the plans. All ranks call it between the same calls.
    void clear();

    [[nodiscard]] std::size_t executor_count() const { return entries_.size(); }  ///< kept
    [[nodiscard]] Index workspace_bytes() const;                                  ///< kept for all of them

private:
    struct Entry {
        Layout source;
        Layout target;
        std::uint64_t number;  // what ranks compare
        Executor executor;
    };
    [[nodiscard]] Result<std::unique_ptr<Ticket>> try_start(const Layout& source, const Layout& target,
                                                            ConstElements in, Elements out);
    [[nodiscard]] Result<Entry*> find_or_prepare(const Layout& source, const Layout& target, ConstElements in,
                                                 Elements out);
    [[nodiscard]] Result<std::span<std::byte>> workspace_of(const Executor& executor);

    Backend& backend_;
    Options options_;
    PlanCache plans_;
    std::list<Entry> entries_;  // the one that was used last first
    std::unique_ptr<Memory> workspace_;
};

}  // namespace reshard
