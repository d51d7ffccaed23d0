// A list of plans as Python has it.
#pragma once

#include "python/bindings/plans.hpp"

namespace reshard::python {

struct PlannedList {
    std::vector<Problem> asked;
    ListSynthesis made;
    std::vector<std::string> names;
    Options options;  ///< of each array
};

}  // namespace reshard::python
