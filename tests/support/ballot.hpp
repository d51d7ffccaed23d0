// A vote between ranks that are threads of one process.
#pragma once

#include <condition_variable>
#include <mutex>

#include "reshard/planner/integer.hpp"

namespace reshard::test {

class Ballot {
public:
    /// Waits for all `ranks` and returns the number of true answers. The same ranks may call it again and again.
    Index count_true(Index ranks, bool answer) {
        std::unique_lock lock(mutex_);
        const Index generation = generation_;
        if (answer) ++true_answers_;
        if (++answers_ == ranks) {
            result_ = true_answers_;
            answers_ = true_answers_ = 0;
            ++generation_;
            changed_.notify_all();
            return result_;
        }
        changed_.wait(lock, [&] { return generation_ != generation; });
        return result_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    Index answers_ = 0;
    Index true_answers_ = 0;
    Index result_ = 0;
    Index generation_ = 0;
};

}  // namespace reshard::test
