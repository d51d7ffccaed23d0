#include "python/bindings/door.hpp"

#include <mutex>
#include <set>

namespace reshard::python {
namespace {

std::mutex turns_mutex;
std::set<const Backend*> turns;  // taken

}  // namespace

Turn::Turn(const Backend& backend) : backend_(&backend) {
    const std::lock_guard lock(turns_mutex);
    if (!turns.insert(backend_).second)
        raise({Code::usage, "another thread moves on this communicator; calls on one are in one order"});
}

Turn::~Turn() {
    const std::lock_guard lock(turns_mutex);
    turns.erase(backend_);
}

}  // namespace reshard::python
