// A gather whose rows a product uses, or a product whose rows are added up and scattered, in several ways.
#pragma once

#include "overlap/common.hpp"

namespace reshard::overlap {

struct ProductProblem {
    bool scatter = false;  // the product makes what is added up and scattered; else it uses what is gathered
    Index rows = 0;        // of a rank
    Index width = 0;       // elements of a row that is transferred
    double ratio = 1;      // product / transfer, in time
    bool asleep = false;   // a core waits for most of its product, as for an accelerator's
};

/// Collective. Returns the measurements and the number of wrong elements.
[[nodiscard]] nlohmann::json measure(const ProductProblem& problem, const Machine& machine, Backend& backend,
                                     int rounds);

}  // namespace reshard::overlap
