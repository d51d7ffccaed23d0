#include "backends/mpi/base/abandoned.hpp"

#include <mutex>
#include <vector>

namespace reshard::mpi {
namespace {

struct Abandoned {
    MPI_Request request;
    std::shared_ptr<const void> kept;
};

// Of this process, never freed: MPI may come to them as long as it runs.
struct All {
    std::mutex mutex;
    std::vector<Abandoned> requests;
};

All& all() {
    static auto* const only = new All;
    return *only;
}

bool is_done(Abandoned& one) {
    int done = 0;
    return MPI_Test(&one.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
}

}  // namespace

void abandon(MPI_Request request, std::shared_ptr<const void> kept) {
    std::vector<Abandoned> done;  // freed when the mutex is not held
    const std::lock_guard lock(all().mutex);
    std::vector<Abandoned>& requests = all().requests;
    requests.push_back({request, std::move(kept)});
    std::erase_if(requests, [&](Abandoned& one) {
        if (!is_done(one)) return false;
        done.push_back(std::move(one));
        return true;
    });
}

}  // namespace reshard::mpi
