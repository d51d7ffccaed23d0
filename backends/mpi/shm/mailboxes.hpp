// Small moves between the ranks of a node. A rank has boxes for each peer that sends to it, one for even runs and one
// for odd runs. The last bytes of a message share a cache line with the mark that it has come. So a small message is
// one transfer of a cache line, and a run is one meeting. A peer that polls takes the line of the mark away, so that
// line is written last.
#pragma once

#include <array>

#include "backends/mpi/base/board.hpp"
#include "backends/mpi/shm/bounce_pieces.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

/// The end of a message. The data come before it.
struct MailMark {
    Counter run;        ///< the run that the message belongs to, once all of it is there
    Presence presence;  ///< of the sender
};

/// A box is free for a run when its owner has read the message of the run before the last one. If two ranks send to
/// each other, each message shows that the run before it is over. If only one of two ranks sends, the other one counts
/// its runs in SignalLine::done.
class Mailboxes {
public:
    /// Bytes of the boxes of a rank of so many `ranks` that receives these parts.
    [[nodiscard]] static Index bytes(const std::vector<PeerRegion>& receives, std::size_t ranks);

    /// Collective. All ranks return an error if one does: backend if peers cannot reach each other's memory. `signals`
    /// takes the memory of this rank's boxes, and outlives this object.
    Result<void> make(MPI_Comm communicator, Signals& signals, Arena& arena, const PeerRegions& parts);

    /// The counters to wait for before the boxes are free for `run`.
    [[nodiscard]] const Signals::Wanteds& free_for(std::uint64_t run);
    /// Sends all messages of `run`, and wakes the peers that sleep. pre: the boxes are free for it.
    void send(std::uint64_t run, const std::vector<const std::byte*>& sources, const Presence& own);
    /// The counters to wait for before all messages of `run` have come.
    [[nodiscard]] const Signals::Wanteds& come_for(std::uint64_t run);
    /// True if all other ranks send to this one and have the presence `own`. pre: all messages of `run` have come.
    [[nodiscard]] bool all_have(std::uint64_t run, const Presence& own) const;
    /// Copies the parts that stay on this rank to the targets.
    void copy_own(const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& targets) const;
    /// Copies the messages to the targets, and frees the boxes. pre: all messages of `run` have come.
    void read(std::uint64_t run, const std::vector<std::byte*>& targets);
    /// Sets the place of each sender to its message, in place of read(). Call free() after the last use.
    void find(std::uint64_t run, std::vector<const std::byte*>& messages) const;
    void free(std::uint64_t run);

private:
    struct Pair {
        std::size_t peer;
        std::byte* boxes;  // for even runs and for odd runs
        Index box_bytes;
        Index mark;  // where it is in a box
        PackedParts parts;
        [[nodiscard]] std::byte* box(std::uint64_t run) const {
            return boxes + static_cast<Index>(run % 2) * box_bytes;
        }
        [[nodiscard]] MailMark& mark_of(std::uint64_t run) const {
            return *reinterpret_cast<MailMark*>(box(run) + mark);
        }
    };
    static void add_pair(std::vector<Pair>& pairs, std::size_t peer, std::byte* boxes, PackedParts parts);
    void find_one_way();

    Signals* signals_ = nullptr;
    Views views_;  // of the peers' boxes
    std::vector<Pair> outgoing_;
    std::vector<Pair> incoming_;
    std::vector<std::pair<std::size_t, BoxCopy>> staying_;  // arrays and their copies
    Signals::Ranks receivers_;                              // of messages of this rank
    Signals::Ranks unanswered_;                             // ranks that send to this one and receive nothing from it
    Signals::Wanteds free_;                                 // the counters of the receivers that send nothing back
    std::array<Signals::Wanteds, 2> come_;                  // of even runs and of odd runs
};

}  // namespace reshard::mpi
