// Where ranks that are threads of one process count their answers.
#pragma once

#include <condition_variable>
#include <mutex>

#include "reshard/planner/integer.hpp"

namespace reshard::test {

class Ballot {
public:
    /// Meets all `ranks`; the number of true answers. Any number of times, always by the same ranks.
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
