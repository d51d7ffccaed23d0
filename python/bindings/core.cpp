// The module reshard._core: layouts, plans, lists and ranks in this process.
#include "python/bindings/core.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/gil.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::python {
namespace {

std::vector<std::map<std::string, std::string_view>> dtypes() {
    std::vector<std::map<std::string, std::string_view>> rows;
    for (const tables::DTypeRow& row : tables::dtypes)
        rows.push_back({{"name", row.name},
                        {"long_name", row.long_name},
                        {"numpy", row.numpy},
                        {"safetensors", row.safetensors},
                        {"stablehlo", row.stablehlo}});
    return rows;
}

}  // namespace
}  // namespace reshard::python

NB_MODULE(_core, module) {
    module.doc() = "Layouts, plans, lists of plans, and ranks in this process. Use it through the package reshard.";
    reshard::python::watch_exit();
    module.def(
        "dtypes", reshard::python::dtypes,
        "The names of each element type: name (short), long_name (numpy's or ml_dtypes'), numpy (the typestr, empty "
        "if numpy alone lacks the type), safetensors and stablehlo (empty if missing).");
    reshard::python::add_layouts(module);
    reshard::python::add_plans(module);
    reshard::python::add_lists(module);
    reshard::python::add_overlap(module);
    reshard::python::add_rows(module);
    reshard::python::add_digests(module);
    reshard::python::add_row_transport(module);
    reshard::python::add_portable(module);
    reshard::python::add_axis_moves(module);
    reshard::python::add_programs(module);
    reshard::python::add_schedules(module);
    reshard::python::add_local(module);
}
