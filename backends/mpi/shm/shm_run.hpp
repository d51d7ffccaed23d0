// The common part of runs in the memory of a node. Each rank publishes where its buffers lie, says how far it is, and
// waits until its peers are as far.
#pragma once

#include "backends/mpi/base/board.hpp"
#include "backends/mpi/shm/mailboxes.hpp"
#include "backends/mpi/shm/shm_addresses.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

/// A state machine of phases. After the first failure it tells all ranks and does nothing more.
class ShmRun {
public:
    /// False while it waits for a peer; true when it is over.
    Result<bool> advance(Slice most);
    /// Advances to the end. An interrupt ends the wait.
    Result<void> finish();

protected:
    using Ranks = std::span<const std::size_t>;

    /// Begins run number `run`, and wakes the ranks in `peers` that sleep until it begins.
    ShmRun(Signals& signals, const ShmAddresses& buffers, std::uint64_t run, Ranks peers);
    ~ShmRun() = default;

    virtual Result<bool> next(Slice most) = 0;  ///< one phase; false when it waits for a peer
    void end() { over_ = true; }

    /// An address that a rank published; there are two per array.
    [[nodiscard]] Address& published(std::size_t rank, std::size_t index) const;
    /// A pointer to the memory at that address, valid while `held` has its view. Errors name `step`, the step of the
    /// plan that moves it.
    [[nodiscard]] Result<std::byte*> reach(Arena& arena, std::size_t rank, std::size_t index, std::size_t step,
                                           Views& held) const;
    /// Copies the bytes that a peer wrote into an array's shadows to where they belong. Call it after the peer has said
    /// that it is done.
    void bring_back(std::size_t array, std::size_t peer) const;
    /// Sets this rank's counter and wakes the peers.
    void say(Counter SignalLine::*counter, std::uint64_t value, Ranks peers);
    /// Waits until the counters of all peers reach `least`.
    Result<bool> wait(Counter SignalLine::*counter, std::uint64_t least, Ranks peers, Slice most);

    Signals& signals_;
    const ShmAddresses& buffers_;
    std::uint64_t run_;
    Waiting waiting_;

private:
    std::vector<RegisteredPages::Use> uses_;
    bool over_ = false;
};

/// A run whose messages may go through mailboxes. Then it is one meeting.
class MailedRun : public ShmRun, public Carrier {
public:
    /// Sends the messages unless it must wait for a peer. Writes no target. pre: there are mailboxes.
    void send(const Presence& own) override;
    [[nodiscard]] bool all_have(const Presence& own, std::chrono::microseconds most) override;
    /// As ShmRun::finish. Messages that have come are read at once.
    Result<void> finish();

protected:
    /// `mailboxes` is null if the data go another way. Then the run wakes `partners` when it begins.
    MailedRun(Signals& signals, const ShmAddresses& buffers, std::uint64_t run, Ranks partners, Mailboxes* mailboxes)
        : ShmRun(signals, buffers, run, mailboxes != nullptr ? Ranks() : partners), mailboxes_(mailboxes) {}
    ~MailedRun() override = default;

    [[nodiscard]] bool is_mailed() const { return mailboxes_ != nullptr; }
    /// In place of next(), if there are mailboxes.
    Result<bool> next_by_mail(Slice most);
    virtual void while_on_their_way() {}  ///< the peers' messages
    virtual void read() = 0;              ///< all messages, which have come

private:
    enum class Mail { sending, sent, reading };

    Mailboxes* mailboxes_;
    Mail mail_ = Mail::sending;
    bool come_ = false;  // all messages
};

}  // namespace reshard::mpi
