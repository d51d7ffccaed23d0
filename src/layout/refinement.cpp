#include "reshard/planner/refinement.hpp"

namespace reshard {

void append_borders(const Layout& layout, std::vector<Index>& borders) {
    for (const Dim& dim : layout.dims) append_borders(dim.atoms, borders);
    append_borders(layout.unreduced, borders);
}

bool commensurable(const Layout& a, const Layout& b) {
    std::vector<Index> borders;
    append_borders(a, borders);
    append_borders(b, borders);
    return form_chain(borders);
}

std::optional<AtomList> refinement(std::vector<Index> borders) {
    if (!form_chain(borders)) return std::nullopt;
    AtomList digits;
    for (std::size_t i = borders.size(); i-- > 1;)
        if (borders[i] != borders[i - 1]) digits.push_back({borders[i] / borders[i - 1], borders[i - 1]});
    return digits;
}

}  // namespace reshard
