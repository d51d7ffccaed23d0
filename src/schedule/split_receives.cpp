#include "src/schedule/split_receives.hpp"

#include "src/schedule/box_cut.hpp"

namespace reshard {
namespace {

bool is_empty(const Box& box) { return count(box) == 0; }

// Cuts `box` by the disjoint boxes that are covered already, and adds the new parts to them.
std::vector<SplitReceive> cut(const Box& box, std::vector<Box>& covered) {
    std::vector<SplitReceive> cuts;
    std::vector<Box> fresh = {box};
    for (const Box& known : covered) {
        std::vector<Box> left;
        for (const Box& part : fresh) {
            const Box common = intersect(part, known);
            if (is_empty(common)) {
                left.push_back(part);
                continue;
            }
            cuts.push_back({common, true});
            for (Box& outside : without(part, common)) left.push_back(std::move(outside));
        }
        fresh = std::move(left);
    }
    for (const Box& part : fresh) {
        cuts.push_back({part, false});
        covered.push_back(part);
    }
    return cuts;
}

}  // namespace

std::vector<std::vector<SplitReceive>> arrivals(const Schedule& schedule) {
    std::vector<std::vector<SplitReceive>> all;
    std::vector<Box> covered;
    for (const Transfer& receive : schedule.receives) {
        if (is_empty(receive.box)) {
            all.emplace_back();
        } else if (schedule.combine == Combine::copy) {
            all.push_back({{receive.box, false}});
        } else {
            all.push_back(cut(receive.box, covered));
        }
    }
    return all;
}

}  // namespace reshard
