// The module reshard._core: layouts, plans, lists and ranks in this process.
#include "python/bindings/core.hpp"

#include "python/bindings/gil.hpp"

NB_MODULE(_core, module) {
    module.doc() = "Layouts, plans, lists of plans, and ranks in this process. Use it through the package reshard.";
    reshard::python::watch_exit();
    reshard::python::add_layouts(module);
    reshard::python::add_plans(module);
    reshard::python::add_lists(module);
    reshard::python::add_overlap(module);
    reshard::python::add_rows(module);
    reshard::python::add_portable(module);
    reshard::python::add_local(module);
}
