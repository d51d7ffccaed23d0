#include "backends/mpi/shm/shm_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

ShmRun::ShmRun(Signals& signals, const ShmAddresses& buffers, std::uint64_t run, Ranks peers)
    : signals_(signals), buffers_(buffers), run_(run), waiting_(signals), uses_(buffers.use()) {
    for (const ShadowCopy& one : buffers.read_by_peers) std::memcpy(one.shadow, one.own, one.bytes);
    for (std::size_t i = 0; !peers.empty() && i < buffers.addresses.size(); ++i) {
        Address& mine = published(signals.rank(), i);
        if (mine != buffers.addresses[i]) mine = buffers.addresses[i];  // a write would take the line from the peers
    }
    say(&SignalLine::entered, run, peers);
}

// A rank that sent to a peer only through a bounce buffer may begin its next run while that peer still reads this run's
// addresses. It cannot begin the run after that.
Address& ShmRun::published(std::size_t rank, std::size_t index) const {
    return signals_.address(rank, (run_ % 2) * buffers_.addresses.size() + index);
}

Result<std::byte*> ShmRun::reach(Arena& arena, std::size_t rank, std::size_t index, std::size_t step,
                                 Views& held) const {
    auto reached = arena.reach(published(rank, index), held);
    if (reached) return reached;
    return fail(Code::backend, fmt::format("array {}, step {}: reaching the memory of rank {}: {}", index / 2, step + 1,
                                           rank, reached.error().message));
}

void ShmRun::bring_back(std::size_t array, std::size_t peer) const {
    for (const ShadowCopy& one : buffers_.written_by_peers) {
        if (one.array == array && one.peer == peer) std::memcpy(one.own, one.shadow, one.bytes);
    }
}

void ShmRun::say(Counter SignalLine::*counter, std::uint64_t value, Ranks peers) {
    (signals_.line(signals_.rank()).*counter).store(value, std::memory_order_release);
    if (!peers.empty()) signals_.wake(peers);
}

Result<bool> ShmRun::wait(Counter SignalLine::*counter, std::uint64_t least, Ranks peers, Slice most) {
    return waiting_.on(signals_.counters(counter, least, peers), Signals::Need::all, most);
}

Result<bool> ShmRun::advance(Slice most) {
    while (!over_) {
        auto moved = next(most);
        if (!moved) {
            signals_.fail_all(moved.error());
            end();
            return moved;
        }
        if (!*moved) return false;
    }
    return true;
}

Result<void> ShmRun::finish() {
    for (bool over = false; !over;) {
        RESHARD_ASSIGN(over, advance(long_slice));
        if (!over && Interrupt::raised()) return fail(Code::backend, Interrupt::words);
    }
    return {};
}

void MailedRun::send(const Presence& own) {
    if (!std::ranges::all_of(mailboxes_->free_for(run_), &Signals::Wanted::there)) return;
    mailboxes_->send(run_, buffers_.sources, own);
    mail_ = Mail::sent;
}

bool MailedRun::all_have(const Presence& own, std::chrono::microseconds most) {
    come_ = come_ || signals_.poll(mailboxes_->come_for(run_), Signals::Need::all, most);
    return come_ && mailboxes_->all_have(run_, own);
}

Result<void> MailedRun::finish() {
    if (!come_ || mail_ != Mail::sent) return ShmRun::finish();
    while_on_their_way();
    read();
    end();
    return {};
}

Result<bool> MailedRun::next_by_mail(Slice most) {
    if (mail_ == Mail::sending) {
        const auto free = waiting_.on(mailboxes_->free_for(run_), Signals::Need::all, most);
        if (!free || !*free) return free;
        send({});
    }
    if (mail_ == Mail::sent) {
        while_on_their_way();
        mail_ = Mail::reading;
    }
    if (!come_) {
        const auto come = waiting_.on(mailboxes_->come_for(run_), Signals::Need::all, most);
        if (!come || !*come) return come;
    }
    read();
    end();
    return true;
}

}  // namespace reshard::mpi
