// Fills by GHEX (generic halo exchanges), prepared once. Two and three dimensions.
#include "bench/halos/ways.hpp"

#include <array>
#include <memory>

#include <ghex/communication_object.hpp>
#include <ghex/structured/pattern.hpp>
#include <ghex/structured/regular/domain_descriptor.hpp>
#include <ghex/structured/regular/field_descriptor.hpp>
#include <ghex/structured/regular/halo_generator.hpp>
#include <ghex/structured/regular/make_pattern.hpp>

namespace reshard::bench {
namespace {

// `Map`: the dimensions of the array in memory, the last one dense.
template <int dims, class Map>
Fill fill_of(const Setting& setting, double* array) {
    using Count = std::integral_constant<int, dims>;
    using Domain = ghex::structured::regular::domain_descriptor<int, Count>;
    using Halos = ghex::structured::regular::halo_generator<int, Count>;
    using Place = std::array<int, dims>;
    Place first{}, last{}, before{}, shape{}, whole_first{}, whole_last{};
    std::array<int, 2 * dims> halos{};
    std::array<bool, dims> periodic{};
    for (std::size_t k = 0; k < dims; ++k) {
        const int block = setting.extents[k] / setting.grid[k];
        first[k] = setting.at[k] * block;
        last[k] = first[k] + block - 1;
        whole_last[k] = setting.extents[k] - 1;
        before[k] = halos[2 * k] = halos[2 * k + 1] = setting.halo;
        shape[k] = block + 2 * setting.halo;
        periodic[k] = true;
    }
    int rank = 0;
    MPI_Comm_rank(setting.grid_ranks, &rank);
    auto context = std::make_shared<ghex::context>(setting.grid_ranks, false);
    const std::vector<Domain> domains = {Domain(rank, first, last)};
    auto made =
        ghex::make_pattern<ghex::structured::grid>(*context, Halos(whole_first, whole_last, halos, periodic), domains);
    auto pattern = std::make_shared<decltype(made)>(std::move(made));
    auto object = std::make_shared<decltype(ghex::make_communication_object<decltype(made)>(*context))>(
        ghex::make_communication_object<decltype(made)>(*context));
    auto field = ghex::wrap_field<ghex::cpu, Map>(domains.front(), array, before, shape);
    return [context, pattern, object, field]() mutable { object->exchange((*pattern)(field)).wait(); };
}

}  // namespace

Fill ghex_fill(const Setting& setting, double* array) {
    if (setting.extents.size() == 2) return fill_of<2, ::gridtools::layout_map<0, 1>>(setting, array);
    if (setting.extents.size() == 3) return fill_of<3, ::gridtools::layout_map<0, 1, 2>>(setting, array);
    return {};
}

}  // namespace reshard::bench
