// The interface of backends. A backend moves boxes between ranks; it never plans and never sees a layout.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "reshard/backends/run.hpp"
#include "reshard/planner/capabilities.hpp"
#include "reshard/planner/schedule.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard {

class Redistributor;

/// One step on this rank: its schedule, and the tiles it reads and writes. `from` may be a larger tile than the
/// schedule's source tile (slices are views, not copies); boxes are global, so nothing else changes.
struct RankStep {
    std::size_t step = 0;  ///< its number in the plan, from 0; the same on every rank
    Schedule schedule;     ///< what it sends, receives and fills
    Slot from;             ///< the tile that it reads
    Slot to;               ///< the tile that it writes
    DType from_dtype;      ///< of the elements that it reads; without a default, so that each step names its type
    DType to_dtype;        ///< of the elements that it writes; it differs if the step casts
};

/// True if the step casts its elements. It is a copy then: it reduces, fills and scales nothing.
[[nodiscard]] inline bool casts(const RankStep& step) { return step.from_dtype != step.to_dtype; }

/// The type of the elements that move between ranks: the narrower one if the step casts, from_dtype if both have one
/// size. So the sender casts if that narrows, and the receiver casts otherwise.
[[nodiscard]] inline DType sent_dtype(const RankStep& step) {
    return size_of(step.to_dtype) < size_of(step.from_dtype) ? step.to_dtype : step.from_dtype;
}

/// One array on this rank.
struct RankPlan {
    DType dtype = DType::f32;     ///< of the source's elements
    std::vector<RankStep> steps;  ///< in order; a slice that is a view has none
    Index source_bytes = 0;       ///< least size of the source that is bound
    Index target_bytes = 0;       ///< of the target
    Index workspace_bytes = 0;    ///< of the workspace
    /// Plans of one turn have separate parts of the workspace and may run step by step together. Turns run one after
    /// another. 0: the plan has the whole workspace while it runs.
    std::size_t turn = 0;
    DType target_dtype = DType::f32;  ///< of the target's elements
};

/// The caller's memory for one array. A source is only read. If the plan was prepared with donate, the caller gives the
/// source as `donated`, and it may be written. A backend then gets both: `source` and `donated` refer to the same
/// memory.
struct Buffers {
    std::span<const std::byte> source;  ///< at least RankPlan::source_bytes
    std::span<std::byte> target;        ///< at least RankPlan::target_bytes
    std::span<std::byte> workspace;     ///< at least RankPlan::workspace_bytes
    std::span<std::byte> donated = {};  ///< the source, if it may be written
};

/// Communicators, datatypes and staging for a list of arrays, made once. All ranks drop it in the same order.
class Prepared : NonCopyable {
public:
    virtual ~Prepared() = default;
    [[nodiscard]] virtual Index staging_bytes() const = 0;             ///< held beyond the caller's buffers
    [[nodiscard]] virtual std::string describe() const { return {}; }  ///< for people: how bytes will move
    /// Binds these buffers, one entry per array. Errors: backend.
    virtual Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) = 0;
    /// Says that this rank takes part in no further run. Ranks that wait for it in a run are told why. They are also
    /// told if it drops this object before it has started that run.
    virtual void abandon(const Error&) {}
    /// Says that this rank could not bind or start. Ranks that wait for it are told why, unless it starts a run within
    /// a second.
    virtual void report_failure(const Error&) {}
};

/// Memory that peers may reach faster than any other. Freed with the handle.
class Memory : NonCopyable {
public:
    virtual ~Memory() = default;
    [[nodiscard]] virtual std::span<std::byte> bytes() = 0;  ///< all of it
};

/// A registration of the caller's memory, as a backend implements it.
class Registered : NonCopyable {
public:
    virtual ~Registered() = default;
    virtual Result<void> end() = 0;  ///< undoes it; called again after a failure
};

/// Memory of the caller's while peers may reach it: see Backend::register_memory. Dropping it ends the registration.
class Registration {
public:
    Registration() = default;  ///< of no memory
    Registration(std::span<std::byte> memory, std::unique_ptr<Registered> held)
        : memory_(memory), held_(std::move(held)) {}             ///< of a backend
    Registration(Registration&&) noexcept = default;             ///< leaves nothing
    Registration& operator=(Registration&&) noexcept = default;  ///< ends what it was

    /// Makes the memory ordinary again and keeps its contents. Does nothing if it was ended before. No run may use the
    /// memory. Errors: usage while a run uses it; backend if the memory was freed or mapped anew, which is left as it
    /// is now, or if the system does not say. Then it stays registered as far as possible, and may be ended again.
    Result<void> end() {
        if (!held_) return {};
        auto ended = held_->end();
        if (ended) held_.reset();
        return ended;
    }
    [[nodiscard]] std::span<std::byte> bytes() const { return memory_; }  ///< as it was registered

private:
    std::span<std::byte> memory_;
    std::unique_ptr<Registered> held_;
};

/// Whether a process that this one forks sees registered memory.
enum class OnFork {
    share,    ///< it does, and both see writes to it, until either ends the registration for itself
    withhold  ///< it has no such memory (MADV_DONTFORK): an access there ends the process
};

/// Bytes that a backend handed out or holds for itself: tiles, workspaces, staging, windows.
struct MemoryUse {
    Index held_bytes = 0;        ///< now
    Index most_bytes = 0;        ///< high-water mark
    Index registered_bytes = 0;  ///< of the caller's memory, now; not counted in the other two
};

/// The ranks among which plans run, and what moves boxes between them.
class Backend : NonCopyable {
public:
    virtual ~Backend() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;           ///< local, mpi, nccl
    [[nodiscard]] virtual MemoryUse memory_use() const { return {}; }  ///< of this rank; zero if not counted
    [[nodiscard]] virtual Index rank() const = 0;                      ///< this rank, from 0
    [[nodiscard]] virtual Index size() const = 0;                      ///< how many ranks there are
    /// For the planner.
    [[nodiscard]] virtual Capabilities capabilities() const { return {}; }
    /// Collective: succeeds if every rank brings the same number. Otherwise Code::mismatch names the first rank that
    /// differs. A rank that failed brings its error and gets it back; the others fail with the code and the words of
    /// the first rank that failed. Each collective call agrees equally often on every rank, whatever is wrong with its
    /// arguments. If ranks share one thread, this call cannot wait: it compares with the ranks that came before, and
    /// those get the error when they start.
    virtual Result<void> agree(const Result<std::uint64_t>& own) = 0;
    /// Collective. Every rank must call it in the same order with schedules of the same plans.
    virtual Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) = 0;
    /// The same, with at most this many bytes beyond the caller's buffers on this rank. If that is little, data moves
    /// in smaller pieces. Errors: infeasible if it is not enough, and backend on the other ranks.
    virtual Result<std::unique_ptr<Prepared>> prepare_within(std::vector<RankPlan> plans, Index staging_bytes_max) {
        auto prepared = prepare(std::move(plans));
        if (prepared && (*prepared)->staging_bytes() > staging_bytes_max) {
            return fail(Code::infeasible, "the backend cannot hold its staging within the footprint limit");
        }
        return prepared;
    }
    /// A backend of `ranks` alone: its rank i is ranks[i]. It is valid as long as this backend. The first call for
    /// these ranks makes it, and is collective over them only. Peers reach memory of both backends equally fast.
    /// Errors: usage unless the ranks ascend and have this rank; unsupported if the backend has no groups; backend.
    [[nodiscard]] Result<Backend*> group(std::span<const Index> ranks);
    /// Registered memory of this many bytes, with unspecified contents. Not collective. Ranks that allocate at the same
    /// time do so in turn, so that no two ranks count on the same bytes. Errors: backend, with both numbers and before
    /// any of it is allocated, if the machine or the control group of the process has less available.
    virtual Result<std::unique_ptr<Memory>> allocate(Index bytes) = 0;
    /// Makes memory of the caller's as fast as memory from allocate, at any offset and of any size. Call it before a
    /// loop, and end it before the memory is freed or resized. Not collective. Each start recognizes buffers that lie
    /// wholly inside. The pointer and the contents stay. During the call other threads may read the memory but not
    /// write it. Under MPI its whole pages become shared with the ranks of the node, in steps of 8 MiB, the most that
    /// is held beside it. Backends that gain nothing do nothing. docs/memory.md has the rules and the price. Errors:
    /// usage with the reason if the memory is not private, anonymous and writable; backend if memory or a limit does
    /// not suffice. After an error the memory is as it was.
    virtual Result<Registration> register_memory(std::span<std::byte> memory, OnFork on_fork = OnFork::share);
    /// True when buffers lie on a device: the program reaches them by put and get only.
    [[nodiscard]] virtual bool on_device() const { return false; }
    /// Copies from the program's own memory to memory that a run may use. The two differ on a GPU. Blocks.
    /// pre: equal sizes.
    virtual Result<void> put(std::span<const std::byte> own, std::span<std::byte> memory);
    /// The other way.
    virtual Result<void> get(std::span<const std::byte> memory, std::span<std::byte> own);
    /// Sets elements of a tile that lies in `memory` as the slot says. Runs that start later see them. pre: `element`
    /// has the bytes of one element; the tile contains the boxes. Errors: backend.
    virtual Result<void> fill(std::span<std::byte> memory, const Slot& slot, std::span<const Box> boxes,
                              std::span<const std::byte> element);

protected:
    /// Makes a group. pre: `ranks` ascend, are ranks of this backend, and have this rank. By default unsupported.
    virtual Result<std::unique_ptr<Backend>> make_group(std::span<const Index> ranks);
    /// Drops the groups, and the executors that redistribute keeps. They refer to members of the backend, so its
    /// destructor does this first.
    void drop_kept() {
        kept_.reset();
        groups_.clear();
    }

private:
    friend class Redistributor;
    std::shared_ptr<void> kept_;
    std::map<std::vector<Index>, std::unique_ptr<Backend>> groups_;  // by their ranks
};

}  // namespace reshard
