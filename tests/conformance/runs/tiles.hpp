// The tiles of one executor on one rank: in whose memory they lie, what they hold before a run and must hold after it.
#pragma once

#include <memory>

#include "schedule.hpp"

namespace reshard::runs {

class Tiles {
public:
    Tiles(const Schedule& schedule, std::size_t executor, Index rank);

    /// Memory to bind, the caller's or the backend's, as it is drawn for each rank and array. What was bound before
    /// stays.
    Result<void> take(Backend& backend, const Executor& executor);
    [[nodiscard]] std::vector<Buffers> buffers();
    void fill(int run);                 ///< with what the run starts from
    [[nodiscard]] std::string wrong();  ///< empty when all is as it must be after the run
    void give_back();

private:
    [[nodiscard]] conformance::Workbench bench(std::size_t array, int run) const;

    const Schedule& schedule_;
    const List& list_;
    std::size_t executor_;
    Index rank_;
    std::vector<Index> workspace_bytes_;
    std::vector<conformance::Workbench> benches_;  // of each array
    std::vector<conformance::Lent> lent_;
    std::vector<std::unique_ptr<Memory>> workspaces_;
    std::vector<conformance::Workbench> benches_before_;  // of what was bound before
    std::vector<std::unique_ptr<Memory>> memory_before_;
};

}  // namespace reshard::runs
