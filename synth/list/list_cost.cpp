// The time of a list on a machine: the sum over buckets of the time of the busiest device.
#include <algorithm>

#include "reshard/synthesize.hpp"
#include "src/judge/list_loads.hpp"

namespace reshard {

Index list_picoseconds(const Judged<ListPlan>& judged, const Machine& machine) {
    const ListPlan& list = judged.list();
    const std::vector<Verdict>& verdicts = judged.verdict().plans;
    const auto alone = [&](std::size_t array) {
        return run_picoseconds(list.plans[array], execution_of(list, array), verdicts[array], machine);
    };
    ListLoads loads(list, verdicts, machine);
    Index all = 0;
    for (const std::vector<std::size_t>& bucket : list.buckets) {
        // Steps of one array wait for each other, so that no bucket is done before the slowest of its arrays would be.
        Index longest = 0;
        for (const std::size_t array : bucket) longest = std::max(longest, alone(array));
        if (bucket.size() > 1) longest = std::max(longest, loads.picoseconds_of(bucket));
        all = saturating_add(all, longest);
    }
    return all;
}

}  // namespace reshard
