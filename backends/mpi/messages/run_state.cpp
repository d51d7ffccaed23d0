#include "backends/mpi/messages/run_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/common/buffer_memory.hpp"

namespace reshard::mpi {

int RunState::tag() const {
    constexpr std::size_t tag_max = 32767;  // every MPI allows so much
    return static_cast<int>(stage_ % tag_max);
}

const std::byte* RunState::read(std::size_t array, BufferId where) const {
    return where == BufferId::staging ? write(array, where) : readable_memory(plan_.buffers[array], where);
}

std::byte* RunState::write(std::size_t array, BufferId where) const {
    return where == BufferId::staging ? plan_.staging->bytes().data() : writable_memory(plan_.buffers[array], where);
}

void RunState::copy(const LocalCopy& local, Store store) const {
    local.copy.run(read(local.array, local.from), write(local.array, local.to), store);
}

void RunState::copy(const std::vector<LocalCopy>& copies, Store store) const {
    for (const LocalCopy& local : copies) copy(local, store);
}

void RunState::fail(std::string message) {
    if (error_) return;
    error_ = Error{Code::backend, std::move(message)};
    for (std::size_t i = stage_; i < plan_.stages->size(); ++i) {
        const Stage& stage = (*plan_.stages)[i];
        if (stage.node) stage.node->signals().fail_all(*error_);
        for (const auto& sum : stage.sums) sum->signals().fail_all(*error_);
    }
}

void RunState::note(const Pending& pending, std::string_view what) {
    std::set<int> peers;
    add_peers(pending, peers);
    const std::string peer = pending.peer != Pending::collective ? fmt::format(" rank {}", pending.peer)
                             : peers.empty()                     ? std::string()
                                             : fmt::format(" among ranks {}", fmt::join(peers, ", "));
    fail(fmt::format("{}: {}{}: {}", stage().steps[pending.step].name, pending.doing, peer, what));
}

void RunState::add_peers(const Pending& pending, std::set<int>& peers) const {
    if (pending.peer != Pending::collective) {
        peers.insert(pending.peer);
        return;
    }
    const MessageStep& step = stage().steps[pending.step];
    if (step.reduction) peers.insert(step.reduction->members.begin(), step.reduction->members.end());
}

bool RunState::note_code(const Pending& pending, int code) {
    if (code != MPI_SUCCESS) note(pending, text_of(code));
    return code == MPI_SUCCESS;
}

bool RunState::counted(const Pending& pending, const MPI_Status& status) {
    if (pending.bytes < 0) return true;
    MPI_Count got = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    if (got != pending.bytes) note(pending, fmt::format("got {} of {} bytes", got, pending.bytes));
    return got == pending.bytes;
}

}  // namespace reshard::mpi
