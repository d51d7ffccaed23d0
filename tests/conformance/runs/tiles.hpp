// The tiles of one executor on one rank: the owner of their memory, and their contents before and after a run.
#pragma once

#include <memory>

#include "schedule.hpp"

namespace reshard::runs {

class Tiles {
public:
    Tiles(const Schedule& schedule, std::size_t executor, Index rank);

    /// Takes memory to bind, the caller's or the backend's, as drawn for each rank and array. Memory bound before
    /// stays.
    Result<void> take(Backend& backend, const Executor& executor);
    [[nodiscard]] std::vector<Buffers> buffers();
    void fill(int run);                 ///< fills the tiles for the start of the run
    [[nodiscard]] std::string wrong();  ///< empty if all contents are right after the run
    void give_back();

private:
    [[nodiscard]] conformance::Workbench bench(std::size_t array, int run) const;

    const Schedule& schedule_;
    const List& list_;
    std::size_t executor_;
    Index rank_;
    std::vector<Index> workspace_bytes_;
    std::vector<conformance::Workbench> benches_;  // one per array
    std::vector<conformance::Lent> lent_;
    std::vector<std::unique_ptr<Memory>> workspaces_;
    std::vector<conformance::Workbench> benches_before_;  // for memory bound before
    std::vector<std::unique_ptr<Memory>> memory_before_;
};

}  // namespace reshard::runs
