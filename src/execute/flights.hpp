// The runs that one thread has started and that are not over. Peers may wait for them in another order than this rank
// does, so a wait for one of them advances the others too.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/home.hpp"

namespace reshard {

/// A run that others may advance, one at a time.
class Flight {
public:
    virtual ~Flight() = default;
    /// Never blocks; does nothing while another thread advances the run. True when it is over.
    virtual bool advance_if_free() = 0;
};

class Flights {
public:
    [[nodiscard]] static const std::shared_ptr<Flights>& of_this_thread() {
        thread_local auto own = std::make_shared<Flights>();
        thread_local Home home;
        if (!home.here()) {  // forked off: what was in flight is the parent's
            own = std::make_shared<Flights>();
            home = Home();
        }
        return own;
    }

    void add(Flight& run) {
        const std::lock_guard lock(mutex_);
        runs_.push_back(&run);
        count();
    }
    /// Does nothing when it is not there.
    void remove(const Flight& run) {
        const std::lock_guard lock(mutex_);
        std::erase(runs_, &run);
        count();
    }
    [[nodiscard]] bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

    /// True when there is another one.
    [[nodiscard]] bool has_others(const Flight& run) const {
        return !empty() && only_.load(std::memory_order_relaxed) != &run;
    }

    void advance_all() { advance_others(nullptr); }
    void advance_others(const Flight* run) {
        const std::lock_guard lock(mutex_);
        std::erase_if(runs_, [&](Flight* one) { return one != run && one->advance_if_free(); });
        count();
    }

private:
    // pre: the mutex is held.
    void count() {
        only_.store(runs_.size() == 1 ? runs_.front() : nullptr, std::memory_order_relaxed);
        count_.store(runs_.size(), std::memory_order_relaxed);
    }

    mutable std::mutex mutex_;
    std::vector<Flight*> runs_;
    std::atomic<std::size_t> count_ = 0;
    std::atomic<const Flight*> only_ = nullptr;  // if there is one
};

}  // namespace reshard
