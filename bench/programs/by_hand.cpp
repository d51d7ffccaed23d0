#include "bench/programs/by_hand.hpp"

#include <chrono>
#include <map>
#include <thread>

#include "bench/programs/asleep.hpp"

namespace reshard::program {

ByHand::ByHand(const Judged<ProgramSchedule>& made, Index rank) : rank_(rank) {
    const std::vector<Task>& tasks = made.program().tasks;
    std::map<std::size_t, std::size_t> step_of;  // each task of this rank
    std::map<std::string, std::size_t> maker;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        for (const ProgramArray& array : tasks[t].makes) maker[array.name] = t;
        if (!position_of(tasks[t].mesh, rank)) continue;
        step_of[t] = steps_.size();
        steps_.push_back({tasks[t].picoseconds});
    }
    int tag = 0;
    for (const ProgramMove& move : made.schedule().moves) {
        const Plan& plan = move.plan.plan();
        const Index from = device_at(plan.source.mesh, 0);
        const Index to = device_at(plan.target.mesh, 0);
        Message message{from == rank ? to : from, tag++, move.array, plan.target,
                        std::vector<std::byte>(static_cast<std::size_t>(tile_bytes(plan.target)))};
        if (from == rank) {
            steps_[step_of.at(maker.at(move.array))].sends.push_back(sends_.size());
            sends_.push_back(std::move(message));
        } else if (to == rank) {
            steps_[step_of.at(move.users.front().task)].receives.push_back(receives_.size());
            receives_.push_back(std::move(message));
        }
    }
}

void ByHand::post() {
    for (Message& one : receives_)
        MPI_Irecv(one.bytes.data(), static_cast<int>(one.bytes.size()), MPI_BYTE, static_cast<int>(one.peer), one.tag,
                  MPI_COMM_WORLD, &one.request);
}

// MPI moves messages only while it has the thread.
void ByHand::look() {
    for (Message& one : receives_) {
        int done = 0;
        if (one.request == MPI_REQUEST_NULL) continue;
        MPI_Test(&one.request, &done, MPI_STATUS_IGNORE);
        if (done == 0) return;
    }
}

// Ranks share cores, so a rank that waits sleeps between two looks, as the runs of schedules do.
void ByHand::wait(MPI_Request& request) {
    for (int done = 0;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done != 0) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

Index ByHand::run() {
    post();
    Index wrong = 0;
    for (const Step& step : steps_) {
        for (const std::size_t k : step.receives) wait(receives_[k].request);
        const double begin = MPI_Wtime();
        for (const std::size_t k : step.receives)
            wrong += count_wrong(receives_[k].array, receives_[k].layout, rank_, receives_[k].bytes);
        for (const std::size_t k : step.sends)
            write_values(sends_[k].array, sends_[k].layout, sends_[k].peer, sends_[k].bytes);
        sleep_until(begin, step.picoseconds, [this] { look(); });
        for (const std::size_t k : step.sends) {
            Message& one = sends_[k];
            MPI_Issend(one.bytes.data(), static_cast<int>(one.bytes.size()), MPI_BYTE, static_cast<int>(one.peer),
                       one.tag, MPI_COMM_WORLD, &one.request);
            wait(one.request);
        }
    }
    return wrong;
}

}  // namespace reshard::program
