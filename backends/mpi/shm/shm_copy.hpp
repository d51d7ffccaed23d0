// Moves a whole list of arrays between the ranks of a node in one pass. Each rank reads its source once, in memory
// order, and writes it straight into the targets that it reaches. It reads sources that it reaches into its own target.
// All other data goes through bounce buffers. One barrier comes before and one after. Small lists go through mailboxes,
// with one meeting. There is no MPI.
#pragma once

#include <optional>

#include "backends/mpi/shm/bounce_buffers.hpp"
#include "backends/mpi/shm/registry.hpp"
#include "backends/mpi/shm/shm_run.hpp"
#include "reshard/backends/mpi.hpp"
#include "src/copy/multi_copy.hpp"

namespace reshard::mpi {

/// The prepared copies between the ranks of one node.
class ShmCopyPlan {
public:
    /// Collective. All ranks return an error if one does: backend if peers cannot reach each other's memory.
    [[nodiscard]] static Result<std::unique_ptr<ShmCopyPlan>> make(MPI_Comm communicator, std::shared_ptr<Arena> arena,
                                                                   std::span<const ArrayStep> steps,
                                                                   const Options& options);

    /// Addresses to publish for so many arrays: source and target, for this run and the next one.
    [[nodiscard]] static std::size_t signal_addresses(std::size_t arrays) { return 4 * arrays; }

    [[nodiscard]] Index bounce_bytes() const { return signals_->taken_bytes(); }
    [[nodiscard]] Index held_bytes() const { return bounce_bytes() + signals_->own_bytes(); }
    /// How it moves data, for people.
    [[nodiscard]] std::string describe() const;
    [[nodiscard]] Signals& signals() const { return *signals_; }
    [[nodiscard]] Arena& arena() const { return *arena_; }
    /// The regions that peers read of a registered source and write of a registered target. Null if peers reach
    /// neither.
    [[nodiscard]] const PeerRegions* reached() const { return is_small() ? nullptr : &reached_; }
    [[nodiscard]] bool is_small() const { return mailboxes_.has_value(); }
    /// True if this rank exchanges nothing with others, and not through mailboxes either.
    [[nodiscard]] bool is_alone() const { return partners_.empty() && !is_small(); }
    /// Copies the parts of the only array, which all stay on this rank. It meets nobody. pre: is_alone.
    void copy_alone(const Buffers& buffers);
    /// Runs count there which buffers bounced. Null: nowhere.
    void count_in(std::shared_ptr<RepeatedMemory> repeated) { repeated_ = std::move(repeated); }

private:
    friend class ShmCopy;
    struct Array {
        bool moves = false;
        std::size_t step = 0;  // its number in the plan, for errors
        bool stays = false;    // some part of it stays on this rank
        MultiCopy push{MultiCopy::Kind::push};
        MultiCopy pull{MultiCopy::Kind::pull};
    };
    // The memory that the current run reads and writes. It is kept from run to run: a run with the same buffers on all
    // sides looks nothing up again.
    struct Paths {
        std::vector<std::vector<std::byte*>> targets;        // per array, per rank; null: not reached
        std::vector<std::vector<const std::byte*>> sources;  // as targets; null unless this rank pulls from there
        std::vector<std::vector<char>> to_stage;             // per rank, per array: goes through a bounce buffer
        std::vector<std::vector<char>> from_stage;
        std::vector<char> staged;                                  // per array: to some rank
        std::vector<std::pair<std::size_t, std::size_t>> written;  // arrays, and the peers that write their targets
        std::vector<std::size_t> leaving;  // peers that use this rank's buffers, or whose it uses
        std::vector<char> pushes;          // per array: to some rank, or on this one
        std::vector<char> pulls;           // per array: from some rank
        bool bounces = false;              // something goes through a bounce buffer
        Views views;                       // of the peers' buffers
        std::vector<Address> addresses;    // these paths are for: this rank's, and each partner's
        std::vector<std::byte*> own;       // targets that these paths are for
        bool shadows = false;              // what peers write comes to shadows first

        void begin(std::size_t arrays, std::size_t ranks);
    };
    ShmCopyPlan() = default;
    Result<bool> choose(MPI_Comm communicator, const PeerRegions& parts, const Options& options);
    [[nodiscard]] PackStores pack_stores(const Options& options) const;

    std::shared_ptr<Arena> arena_;
    std::unique_ptr<Signals> signals_;
    std::vector<Array> arrays_;
    PeerRegions reached_;
    std::vector<std::size_t> partners_;   // ranks that this one sends to or receives from
    std::optional<Mailboxes> mailboxes_;  // all goes through them
    BounceBuffers bounce_buffers_;        // without mailboxes
    Paths paths_;
    std::vector<std::byte*> alone_;  // per rank; only the target of this one, for copy_alone
    std::shared_ptr<RepeatedMemory> repeated_;
    Store store_ = Store::cached;
    bool casts_ = false;  // some array
    std::uint64_t runs_ = 0;
};

class ShmCopy final : public MailedRun {
public:
    ShmCopy(ShmCopyPlan& plan, const ShmAddresses& buffers);

private:
    enum class Phase { keeping, entering, staging, leaving };

    Result<bool> next(Slice most) override;
    Result<void> resolve();
    [[nodiscard]] bool is_resolved() const;  // for these buffers
    [[nodiscard]] bool is_resolved_here() const;
    [[nodiscard]] bool is_only_pulled() const;
    void remember();
    Result<bool> resolve(std::size_t peer, std::size_t array);  // true if one of the two reads or writes the other's
    void while_on_their_way() override;
    void read() override;
    void push();
    Result<void> sweep();
    void count_bounced() const;

    ShmCopyPlan& plan_;
    Phase phase_ = Phase::keeping;
    bool has_own_ = false;  // the parts that stay on this rank are copied
    ShmCopyPlan::Paths& paths_;
};

}  // namespace reshard::mpi
