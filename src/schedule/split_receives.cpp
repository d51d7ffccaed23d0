#include "src/schedule/split_receives.hpp"

#include <cassert>

namespace reshard {
namespace {

bool is_empty(const Box& box) { return count(box) == 0; }

// Returns `box` without `hole`, as disjoint boxes. Takes the parts below and above the hole in each dimension, then
// goes inwards. pre: hole in box.
std::vector<Box> around(Box box, const Box& hole) {
    assert(intersect(box, hole) == hole);
    std::vector<Box> rest;
    const auto add = [&](std::size_t k, Interval side) {
        if (side.size() == 0) return;
        rest.push_back(box);
        rest.back()[k] = side;
    };
    for (std::size_t k = 0; k < box.size(); ++k) {
        add(k, {box[k].begin, hole[k].begin});
        add(k, {hole[k].end, box[k].end});
        box[k] = hole[k];
    }
    return rest;
}

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
            for (Box& outside : around(part, common)) left.push_back(std::move(outside));
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
