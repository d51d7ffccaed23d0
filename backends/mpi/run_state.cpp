#include "backends/mpi/run_state.hpp"

#include <fmt/format.h>

namespace reshard::mpi {

int RunState::tag() const {
    constexpr std::size_t tag_max = 32767;  // what every MPI grants
    return static_cast<int>(wave_ % tag_max);
}

const std::byte* RunState::read(std::size_t array, Where where) const {
    return where == Where::source ? plan_.buffers[array].source.data() : write(array, where);
}

std::byte* RunState::write(std::size_t array, Where where) const {
    const Buffers& buffers = plan_.buffers[array];
    if (where == Where::staging) return plan_.staging;
    if (where == Where::source) return buffers.donated.data();
    return where == Where::target ? buffers.target.data() : buffers.workspace.data();
}

void RunState::copy(const std::vector<LocalCopy>& copies, Store store) const {
    for (const LocalCopy& local : copies) {
        local.copy.run(read(local.array, local.from), write(local.array, local.to), store);
    }
}

void RunState::fail(std::string message) {
    if (error_) return;
    error_ = Error{Code::backend, std::move(message)};
    for (std::size_t i = wave_; i < plan_.waves->size(); ++i) {
        const Wave& wave = (*plan_.waves)[i];
        if (wave.node) wave.node->fail_all(*error_);
        for (const auto& sum : wave.sums) sum->fail_all(*error_);
    }
}

void RunState::note(const Pending& pending, std::string_view what) {
    const std::string peer =
        pending.peer == Pending::collective ? std::string() : fmt::format(" rank {}", pending.peer);
    fail(fmt::format("{}: {}{}: {}", wave().steps[pending.step].name, pending.doing, peer, what));
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
