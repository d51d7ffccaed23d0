#include "python/bindings/door.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace reshard::python {
namespace {

// Never freed: threads may move while the process ends.
struct Turns {
    std::mutex mutex;
    std::condition_variable given_back;
    std::map<const Backend*, std::thread::id> taken;
};

Turns& turns() {
    static auto* const only = new Turns;
    return *only;
}

}  // namespace

Turn::Turn(const Backend& backend) : backend_(&backend) {
    const bool taken = [&] {
        const std::lock_guard lock(turns().mutex);
        return turns().taken.emplace(backend_, std::this_thread::get_id()).second;
    }();
    if (!taken)  // raising runs Python, which lets threads go on that wait for the mutex
        raise({Code::usage, "another thread moves on this communicator; calls on one are in one order"});
}

Turn::~Turn() { give_back(*backend_); }

bool Turn::wait(const Backend& backend) {
    std::unique_lock lock(turns().mutex);
    const auto taken = turns().taken.find(&backend);
    if (taken != turns().taken.end() && taken->second == std::this_thread::get_id()) return false;
    turns().given_back.wait(lock, [&] { return !turns().taken.contains(&backend); });
    turns().taken.emplace(&backend, std::this_thread::get_id());
    return true;
}

void Turn::give_back(const Backend& backend) {
    const std::lock_guard lock(turns().mutex);
    turns().taken.erase(&backend);
    turns().given_back.notify_all();
}

}  // namespace reshard::python
